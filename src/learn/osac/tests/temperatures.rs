//! Temperatures: where they go, what entropies they aim at, and the step that moves them.

use super::values::fragment;
use super::{Parameters, config, learner, off_policy};
use crate::config::Osac as Config;
use crate::contract::Normaliser;
use crate::data::{End, Forced, NO_OPTION};
use crate::learn::osac::actor::{ActorLosses, OptionLosses, temperature_gradient};
use crate::learn::osac::watch::Watched;

/// At these entropies of the actions and of the policy over options.
fn losses(action: f64, option: Option<f64>) -> ActorLosses {
    let options = option.map(|entropy| OptionLosses {
        over_options: 0.0,
        termination: 0.0,
        entropy,
        balance: 0.0,
        beta: vec![],
        spread: 0.0,
    });
    ActorLosses { policy: 0.0, log_prob: -action, entropies: vec![], options }
}

/// Descent goes against the gradient: below its target the temperature must rise.
#[test]
fn an_entropy_below_its_target_raises_its_temperature() {
    assert_eq!(temperature_gradient(&losses(-3.0, Some(0.25)), (-2.0, 0.5)), [-1.0, -0.25]);
    assert_eq!(temperature_gradient(&losses(1.0, Some(1.0)), (-2.0, 0.5)), [3.0, 0.5]);
    assert_eq!(temperature_gradient(&losses(-2.0, None), (-2.0, 0.5)), [0.0, 0.0]);
}

#[test]
fn target_entropies_go_by_joints_options_and_steps() {
    let config = Config {
        target_entropy: -1.5,
        option_entropy_start: 0.5,
        option_entropy_end: 0.1,
        anneal_steps: 200,
        ..config()
    };
    let contract = off_policy(3, &[4]);
    assert_eq!(contract.action_size(), 2);
    let mut learner = learner(&contract, &config);
    // ln 3 = 1.0986; halfway the share is 0.3, and after 200 steps it stays at 0.1.
    for (steps, annealed, option) in
        [(0, 0.0, 0.549_306), (100, 0.5, 0.329_584), (200, 1.0, 0.109_861), (999, 1.0, 0.109_861)]
    {
        learner.env_steps = steps;
        let (action, found) = learner.target_entropies();
        assert_eq!((action, learner.annealed()), (-3.0, annealed));
        assert!((found - option).abs() < 1e-6, "after {steps} steps {found}");
    }
}

#[test]
fn a_gradient_step_moves_both_temperatures_and_both_slow_networks() {
    let steps = [
        (NO_OPTION, 1, Forced::Init, End::None),
        (1, 1, Forced::MinSteps, End::None),
        (1, 0, Forced::Free, End::None),
        (0, 2, Forced::Free, End::Terminated),
    ];
    let fragment = fragment(&steps, &[true, false, true, true]);
    // Entropies that no policy has: far above, far below.
    for (per_joint, share, direction) in [(50.0, 3.0, 1.0), (-50.0, -3.0, -1.0)] {
        let contract = off_policy(3, &[8]);
        let config = Config {
            target_entropy: per_joint,
            option_entropy_start: share,
            option_entropy_end: share,
            lr: 0.01,
            tau: 0.2,
            ..config()
        };
        let mut learner = learner(&contract, &config);
        let elsewhere = Parameters::new(&contract);
        learner.networks.slow_actor.load(&elsewhere.slow_actor);
        learner.networks.slow_critics.load(&elsewhere.slow_critics);
        learner.replay.insert(&fragment).unwrap();
        let before = learner.temperatures.parameters.clone();
        let learned = learner.actor.parameters.clone();
        learner.gradient_step(&Normaliser::identity(3, 10.0), &mut Watched::default()).unwrap();

        for (after, before) in learner.temperatures.parameters.iter().zip(before) {
            // Adam's first step is its rate, whatever the gradient.
            assert!((after - before - 0.01 * direction).abs() < 1e-5, "{before} to {after}");
        }
        assert!(learned != learner.actor.parameters && learner.skipped == 0);
        let slow = [
            (learner.networks.slow_actor.parameters(), elsewhere.slow_actor, &learner.actor.parameters),
            (learner.networks.slow_critics.parameters(), elsewhere.slow_critics, &learner.critics.parameters),
        ];
        for (found, slow, learned) in slow {
            for ((found, slow), learned) in found.iter().zip(slow).zip(learned) {
                assert!((found - (0.8 * slow + 0.2 * learned)).abs() < 1e-6);
            }
        }
    }
}
