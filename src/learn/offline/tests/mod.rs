//! Truth tests of learning from recorded steps.

mod cloning;
mod dataset;
mod fixed_point;
mod losses;

use super::{Dataset, Offline};
use crate::config::{self, Seed};
use crate::contract::Contract;
use crate::data::{Choice, End, Final, Forced, Fragment, Logged, NO_OPTION, StreamId, Transition};
use std::sync::Arc;
use uuid::Uuid;

/// Everything is trained on.
fn config() -> config::Learner {
    let offline = config::Offline { validation: 0.0, test: 0.0, batch_size: 128, ..config::Offline::default() };
    config::Learner { offline, ..config::Learner::default() }
}

fn learner(contract: &Arc<Contract>, config: &config::Learner, logged: &[Logged], cloning: bool) -> Offline {
    let dataset = Dataset::new(contract, logged, config).unwrap();
    Offline::new(Arc::clone(contract), config, dataset, cloning, Seed::root(3)).unwrap()
}

fn stream() -> StreamId {
    StreamId { rollout: "r".into(), incarnation: 4 }
}

/// One step of option 0 at the start of an episode; `env` tells the steps apart.
fn step(env: u32, observation: &[f32], action: &[f32], reward: f32, next: &[f32], end: End) -> Logged {
    let choice = Choice {
        option_prev: NO_OPTION,
        option: 0,
        option_terminated: true,
        forced: Forced::Init,
        option_age: 0,
        proposal: action.iter().map(|action| action.atanh()).collect(),
        action: action.to_vec(),
        log_prob_action: 0.0,
        log_prob_option: 0.0,
        log_prob_termination: 0.0,
        log_prob_mixture: 0.0,
        termination_prob: 1.0,
    };
    let step = Transition {
        version: 1,
        episode: u64::from(env),
        t: 0,
        stamp_secs: 0.0,
        choice,
        filtered: false,
        intervened: false,
        reward,
        end,
    };
    let finals = if end == End::None { vec![] } else { vec![Final { step: 0, observation: next.to_vec() }] };
    let observations = [observation, next].concat();
    let fragment = Fragment { env, first: 0, obs_size: observation.len(), steps: vec![step], observations, finals };
    Logged { run: Uuid::nil(), stream: stream(), fragment }
}
