mod draws;
mod limiter;
mod store;
mod trees;

use super::{Priority, Replay, Shape};
use crate::data::{Choice, End, Final, Forced, Fragment, NO_OPTION, Transition};

const SHAPE: Shape = Shape { obs: 2, action: 1, options: 3, fragment: 4 };

/// A fragment whose step n (counted from `number`) observes (n, -n), acts `n / 1000` in option `option(n)`, gets n.
fn fragment(number: u64, steps: usize, ends: &[(usize, End)], option: impl Fn(u64) -> u8) -> Fragment {
    let observe = |n: u64| [n as f32, -(n as f32)];
    let end = |at: usize| ends.iter().find(|(step, _)| *step == at).map_or(End::None, |(_, end)| *end);
    let numbers = (0..steps).map(|at| number + at as u64);
    Fragment {
        env: 0,
        first: number,
        obs_size: 2,
        steps: numbers
            .clone()
            .enumerate()
            .map(|(at, n)| Transition {
                version: 1,
                episode: 0,
                t: at as u32,
                stamp_secs: 0.0,
                choice: Choice {
                    option_prev: if at == 0 { NO_OPTION } else { option(n - 1) },
                    option: option(n),
                    option_terminated: at == 0,
                    forced: if at == 0 { Forced::Init } else { Forced::Free },
                    option_age: at as u32,
                    proposal: vec![n as f32 / 1000.0],
                    action: vec![(n as f32 / 1000.0).tanh()],
                    log_prob_action: 0.0,
                    log_prob_option: 0.0,
                    log_prob_termination: 0.0,
                    log_prob_mixture: 0.0,
                    termination_prob: 0.5,
                },
                filtered: false,
                intervened: false,
                reward: n as f32,
                end: end(at),
            })
            .collect(),
        observations: numbers.chain([number + steps as u64]).flat_map(observe).collect(),
        finals: ends.iter().map(|(step, _)| Final { step: *step, observation: vec![0.5, *step as f32] }).collect(),
    }
}

/// One step for each priority, all of option 0 unless told.
fn with_priorities(priorities: &[f64], option: impl Fn(u64) -> u8) -> Replay {
    let mut replay = Replay::new(SHAPE, 4096, Priority::Proportional { alpha: 1.0 }).unwrap();
    for number in 0..priorities.len() as u64 {
        replay.insert(&fragment(number, 1, &[], &option)).unwrap();
    }
    let ids: Vec<_> = every(&replay);
    let errors: Vec<f64> = priorities.iter().map(|priority| priority - 1e-6).collect();
    assert_eq!(replay.update(&ids, &errors), 0);
    replay
}

/// Every step, in the order of its reward.
fn every(replay: &Replay) -> Vec<super::StepId> {
    let rows = (0..replay.rows.len() as u32)
        .map(|row| super::StepId { row, generation: replay.rows[row as usize].generation });
    let mut found: Vec<_> = rows.filter_map(|id| replay.step(id).map(|step| (step.reward, id))).collect();
    found.sort_by(|a, b| a.0.total_cmp(&b.0));
    found.into_iter().map(|(_, id)| id).collect()
}
