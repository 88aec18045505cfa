//! Small contracts, fragments and statuses for the tests.

use crate::config::UpdateMode;
use crate::contract::{ActionMeaning, Architecture, Contract, Field, Network, Options, Told};
use crate::data::{
    Choice, End, Final, Forced, Fragment, LearnerStatus, NO_OPTION, Origin, RolloutStatus, StreamId, Transition,
};
use crate::robot::Robot;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

pub(super) const RUN: Uuid = Uuid::from_u128(7);

pub(super) fn secs(secs: f64) -> Duration {
    Duration::from_secs_f64(secs)
}

/// One action, two floats of observation, three options.
pub(super) fn contract() -> Arc<Contract> {
    Arc::new(Contract {
        robot: Robot::Panda,
        joints: vec!["joint".into()],
        task: "reach".into(),
        observation: vec![Field { name: "position".into(), len: 2 }],
        action: ActionMeaning::JointDelta { scale_rad: 0.1 },
        control_period_secs: 0.05,
        options: Options { count: 3, min_steps: 1, max_steps: 1000 },
        network: Network { architecture: Architecture::OnPolicy, hidden: vec![4] },
        told: Told::default(),
    })
}

pub(super) fn stream(rollout: &str, incarnation: u64) -> StreamId {
    StreamId { rollout: rollout.into(), incarnation }
}

pub(super) fn origin(life: u32, phase: u64) -> Origin {
    Origin { run: RUN, life, phase, contract_hash: contract().hash() }
}

/// Steps `first..first + len` of one environment whose episodes have `period` steps; the observation that step n
/// answered is (env, n), and the last one of an episode is (env, -n).
pub(super) fn fragment(env: u32, first: u64, len: u64, period: u64, version: u64) -> Fragment {
    let row = |n: u64| [env as f32, n as f32];
    let steps: Vec<Transition> = (first..first + len)
        .map(|n| {
            let t = (n % period) as u32;
            Transition {
                version,
                episode: n / period,
                t,
                stamp_secs: n as f64 * 0.05,
                choice: Choice {
                    option_prev: if t == 0 { NO_OPTION } else { 1 },
                    option: 1,
                    option_terminated: t == 0,
                    forced: if t == 0 { Forced::Init } else { Forced::Free },
                    option_age: t,
                    proposal: vec![0.5],
                    action: vec![0.25],
                    log_prob_action: -0.5,
                    log_prob_option: -1.0,
                    log_prob_termination: 0.0,
                    log_prob_mixture: -0.7,
                    termination_prob: 0.1,
                },
                filtered: false,
                intervened: false,
                reward: -1.0,
                end: if (n + 1).is_multiple_of(period) { End::Truncated } else { End::None },
            }
        })
        .collect();
    let ends = steps.iter().enumerate().filter(|(_, step)| step.end != End::None);
    let finals = ends.map(|(step, _)| Final { step, observation: vec![env as f32, -((first as usize + step) as f32)] });
    Fragment {
        env,
        first,
        obs_size: 2,
        finals: finals.collect(),
        observations: (first..=first + len).flat_map(row).collect(),
        steps,
    }
}

pub(super) fn learner_status(life: u32, version: u64, phase: u64, quota: u64, members: &[StreamId]) -> LearnerStatus {
    LearnerStatus {
        run: RUN,
        life,
        version,
        hash: [version as u8; 32],
        update_mode: if quota == 0 { UpdateMode::Async } else { UpdateMode::Sync },
        phase,
        quota,
        members: members.to_vec(),
        paused: false,
        activity: "waiting".into(),
        updates: 0,
        env_steps: 0,
        admitted: 0,
        lost: 0,
        refused: 0,
        dropped: 0,
        queue_batches: 0,
        gathered_steps: 0,
    }
}

pub(super) fn rollout_status(stream: &StreamId, life: u32, version: u64, steps: u64) -> RolloutStatus {
    RolloutStatus {
        run: Some(RUN),
        life,
        stream: stream.clone(),
        version,
        hash: [version as u8; 32],
        phase: 0,
        steps,
        phase_steps: 0,
        num_envs: 2,
        leaving: false,
        state: "acting".into(),
        in_flight: 0,
        queue_batches: 0,
        aborted_episodes: 0,
        refused_weights: 0,
        held_ticks: 0,
    }
}
