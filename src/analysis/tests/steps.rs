//! Steps that made-up policies decided, and the statistics of an episode.

use super::*;
use crate::config::Purpose;
use crate::data::{Final, Fragment, StreamId, Transition};
use crate::option::Running;
use crate::policy::Policy;

/// Steps that a policy decided on made-up observations, as one batch. Every 50th ends an episode.
pub(super) fn transitions(acting: &Snapshot, steps: usize) -> Batch {
    transitions_by(acting, steps, Sampling::Stochastic)
}

pub(super) fn transitions_by(acting: &Snapshot, steps: usize, sampling: Sampling) -> Batch {
    let (policy, size) = (Policy::new(acting).unwrap(), acting.contract.obs_size());
    let observations: Vec<f32> = (0..(steps + 1) * size).map(|at| (at as f32 * 0.37).sin()).collect();
    let (mut running, mut rows, mut finals) = (Running::default(), Vec::new(), Vec::new());
    for t in 0..steps {
        let mut draws = [Seed::root(2).of(Purpose::Decisions).rng(t as u64)];
        let observation = &observations[t * size..(t + 1) * size];
        let decided = policy.decide(observation, &[running], &mut draws, sampling).unwrap();
        let decision = decided.into_iter().next().unwrap();
        let ends = t % 50 == 49;
        running = if ends { Running::default() } else { decision.next };
        if ends {
            finals.push(Final { step: t, observation: vec![0.1; size] });
        }
        rows.push(Transition {
            version: acting.version,
            episode: t as u64 / 50,
            t: t as u32 % 50,
            stamp_secs: t as f64 * 0.05,
            choice: decision.choice,
            filtered: false,
            intervened: false,
            reward: 0.5,
            end: if ends { End::Terminated } else { End::None },
        });
    }
    Batch {
        run: acting.run,
        life: 1,
        stream: StreamId { rollout: "r0".into(), incarnation: 1 },
        seq: 0,
        base: 0,
        first_step: 0,
        phase: 0,
        contract_hash: acting.contract.hash(),
        fragments: vec![Fragment { env: 0, first: 0, obs_size: size, steps: rows, observations, finals }],
        episodes: vec![],
    }
}

pub(super) fn recorded(batch: &Batch) -> Recording {
    let mut bag = Recording::new();
    let topic = bag.topic("/transitions", "handoff/msg/TransitionBatch");
    bag.add(topic, ns(1.0), recording::batch(batch));
    bag
}

/// The same with this log standard deviation of every action.
pub(super) fn deviating(snapshot: &Snapshot, log_std: f32) -> Arc<Snapshot> {
    let mut parameters = snapshot.parameters.to_vec();
    let layout = snapshot.contract.layout();
    for segment in layout.segments.iter().filter(|segment| segment.name.ends_with(".log_std")) {
        parameters[segment.range()].fill(log_std);
    }
    Arc::new(Snapshot { parameters: parameters.into(), ..snapshot.clone() })
}

/// A policy whose outputs are its biases, the same in all states.
pub(super) fn constant(mean: f32, over_options: [f32; 4], value: f32) -> Arc<Snapshot> {
    let mut snapshot = (*snapshot(1, 0.0)).clone();
    let layout = snapshot.contract.layout();
    let mut parameters = vec![0.0; layout.len()];
    for segment in &layout.segments {
        let range = segment.range();
        match segment.name.as_str() {
            name if name.starts_with("option.") && name.ends_with(".mean.bias") => parameters[range].fill(mean),
            "over_options.bias" => parameters[range].copy_from_slice(&over_options),
            "termination.bias" => parameters[range].fill(-6.0),
            "critic.value.bias" => parameters[range].fill(value),
            _ => {}
        }
    }
    snapshot.parameters = parameters.into();
    Arc::new(snapshot)
}

pub(super) fn stats() -> EpisodeStats {
    EpisodeStats {
        stamp_secs: 1.0,
        rollout: "r0".into(),
        env: 0,
        episode: 0,
        version: 1,
        episode_return: -3.0,
        length: 50,
        end: End::Truncated,
        final_error: 0.1,
        success: true,
        success_strict: false,
        first_success_step: 40,
        option_steps: vec![50, 0, 0, 0],
        option_runs: vec![1, 0, 0, 0],
        forced_ends: 0,
    }
}
