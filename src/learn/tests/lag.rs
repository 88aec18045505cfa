//! Another policy over options behaved, with other terminations (T2 of the option level): the learner's targets settle at
//! the values of its own policy, and elsewhere where the options' ratios are left out.

use super::tabular::{Step, contract, one_hot, parameters, row};
use super::{acting, config};
use crate::config::{HsPpo as Config, Seed};
use crate::data::Fragment;
use crate::learn::{HsPpo, State};
use crate::option::tests::all_close;
use crate::option::tests::off_policy::{Path, behaviour, paths, settle};
use crate::option::tests::oracle::{Charge, GAMMA, Logits, M3, OPTIONS, STATES, index, pairs, target};
use crate::policy::Policy;

/// A path as the behaviour recorded it. The two actions are proposals of -1 and 1; their densities stand to the learner's
/// as their chances do.
fn recorded(path: &Path, policy: &Policy, target: &Logits, behaviour: &Logits) -> Fragment {
    let mut running = None;
    let step = |&(state, option, action): &(usize, usize, usize)| {
        let proposal = [2.0 * action as f32 - 1.0, 0.0];
        let density = policy.outputs(&one_hot(state)).unwrap().log_prob_action(0, option, &proposal);
        let ratio = target.policy(option, state)[action] / behaviour.policy(option, state)[action];
        let before = running.replace(option);
        let choice = behaviour.transition(state, before)[option];
        let log_probs = [density - ratio.ln(), choice.ln()];
        Step { state, running: before, option, proposal, reward: M3.reward[state][action], log_probs }
    };
    let steps: Vec<Step> = path.steps.iter().map(step).collect();
    row(&steps, path.end)
}

/// Where the learner's targets settle, learned from again and again.
fn learned(behaviour: &Logits, config: &Config) -> Vec<f64> {
    let target = target();
    let mut learner = HsPpo::new(contract(), config, Seed::root(1)).unwrap();
    let mut values = vec![0.0; STATES * OPTIONS];
    let know = |learner: &mut HsPpo, values: &[f64]| {
        let parameters = parameters(&target, values, |_, _, _| 0.0);
        learner.restore(State { parameters, ..learner.state() }).unwrap();
    };
    know(&mut learner, &values);
    let policy = acting(&learner, 1);
    let (mut rows, mut weights) = (Vec::new(), Vec::new());
    for (state, option) in pairs() {
        for path in paths(behaviour, state, option) {
            rows.push(recorded(&path, &policy, &target, behaviour));
            weights.push((index(state, option), path.probability));
        }
    }
    for _ in 0..50 {
        know(&mut learner, &values);
        let prepared = learner.prepare(&rows, 1).unwrap();
        values.fill(0.0);
        let mut first = 0;
        for (row, (pair, probability)) in rows.iter().zip(&weights) {
            values[*pair] += probability * prepared.estimated.estimates[first].target;
            first += row.steps.len();
        }
    }
    values
}

fn uncut() -> Config {
    Config {
        gamma: GAMMA,
        lam: 1.0,
        lam_option: 1.0,
        rho_clip: 1e6,
        normalise_reward: false,
        min_option_steps: 0,
        ..config()
    }
}

#[test]
fn lagging_options_are_corrected_and_without_their_ratios_values_go_astray() {
    let want = target().solve(Charge::Change(0.0));
    all_close(&learned(&behaviour(), &uncut()), &want, 1e-4);
    let without = learned(&behaviour(), &Config { option_ratios: false, ..uncut() });
    all_close(&without, &settle(&behaviour(), &target(), &target(), false), 1e-4);
    let astray = without.iter().zip(&want).map(|(found, want)| (found / want - 1.0).abs()).fold(0.0, f64::max);
    assert!(0.02 < astray, "{without:?} is within 2 % of {want:?}");
}

#[test]
fn lagging_actions_are_corrected_and_without_their_ratios_values_go_astray() {
    let mut other = target();
    other.actions = [[[1.0, 0.0], [-0.4, 0.3], [0.0, 0.2]], [[0.5, 0.1], [0.9, -0.3], [-0.6, 0.4]]];
    let want = target().solve(Charge::Change(0.0));
    all_close(&learned(&other, &uncut()), &want, 1e-4);
    let without = learned(&other, &Config { action_ratios: false, ..uncut() });
    let behaviours = other.solve(Charge::Change(0.0));
    all_close(&without, &behaviours, 1e-4);
    let astray = behaviours.iter().zip(&want).map(|(found, want)| (found / want - 1.0).abs()).fold(0.0, f64::max);
    assert!(0.02 < astray, "{behaviours:?} is within 2 % of {want:?}");
}
