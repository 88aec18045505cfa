//! Other terminations and another policy over options behaved: the half-step chain finds the target's values,
//! action ratios alone do not.

use super::all_close;
use super::oracle::{Charge, GAMMA, Logits, M3, OPTIONS, index, pairs, target};
use crate::option::{HalfStep, Traces, arrival_value, half_step};

pub(crate) const STEPS: usize = 3;

/// One trajectory that starts in (state, option), and its probability under the behaviour.
pub(crate) struct Path {
    pub(crate) probability: f64,
    /// (state, option, action), one a step.
    pub(crate) steps: Vec<(usize, usize, usize)>,
    /// Where the last step led; none where it terminated.
    pub(crate) end: Option<usize>,
}

pub(crate) fn paths(behaviour: &Logits, state: usize, option: usize) -> Vec<Path> {
    let mut open = vec![Path { probability: 1.0, steps: Vec::new(), end: Some(state) }];
    let mut done = Vec::new();
    for t in 0..STEPS {
        let mut grown = Vec::new();
        for path in open {
            let here = path.end.unwrap();
            let law = match path.steps.last() {
                None => std::array::from_fn(|o| if o == option { 1.0 } else { 0.0 }),
                Some(&(_, running, _)) => behaviour.transition(here, Some(running)),
            };
            for (chosen, share) in law.into_iter().enumerate().filter(|(_, share)| *share > 0.0) {
                for (action, likely) in behaviour.policy(chosen, here).into_iter().enumerate() {
                    let goes_on: f64 = M3.next[here][action].iter().sum();
                    let mut steps = path.steps.clone();
                    steps.push((here, chosen, action));
                    let probability = path.probability * share * likely;
                    if goes_on < 1.0 {
                        let probability = probability * (1.0 - goes_on);
                        done.push(Path { probability, steps: steps.clone(), end: None });
                    }
                    for (to, reached) in M3.next[here][action].into_iter().enumerate().filter(|(_, p)| *p > 0.0) {
                        let path = Path { probability: probability * reached, steps: steps.clone(), end: Some(to) };
                        if t + 1 == STEPS { done.push(path) } else { grown.push(path) }
                    }
                }
            }
        }
        open = grown;
    }
    done
}

/// The value that repeated V-trace regression settles at. `judged` gives arrival values; `ratios` whether rho^H counts.
pub(crate) fn settle(behaviour: &Logits, target: &Logits, judged: &Logits, ratios: bool) -> Vec<f64> {
    let starts: Vec<Vec<Path>> = pairs().map(|(state, option)| paths(behaviour, state, option)).collect();
    let traces = Traces { lam_action: 1.0, lam_option: 1.0, rho_clip: f64::INFINITY };
    let mut values = vec![0.0; starts.len()];
    let worth = |values: &[f64], state: usize, running: usize| {
        let law = judged.transition(state, Some(running));
        arrival_value(&law, &values[index(state, 0)..index(state, OPTIONS)], Some(running), 0.0)
    };
    for _ in 0..90 {
        values = starts
            .iter()
            .map(|paths| {
                let expected = |path: &Path| {
                    let mut row: Vec<HalfStep> = Vec::with_capacity(STEPS);
                    for (t, &(state, option, action)) in path.steps.iter().enumerate() {
                        let running = t.checked_sub(1).map(|before| path.steps[before].1);
                        let log_rho_option = match running {
                            Some(running) if ratios => (target.transition(state, Some(running))[option]
                                / behaviour.transition(state, Some(running))[option])
                                .ln(),
                            _ => 0.0,
                        };
                        let log_rho_action =
                            (target.policy(option, state)[action] / behaviour.policy(option, state)[action]).ln();
                        row.push(HalfStep {
                            reward: M3.reward[state][action],
                            cost: 0.0,
                            discount: GAMMA,
                            arrival_value: running.map_or(0.0, |running| worth(&values, state, running)),
                            value: values[index(state, option)],
                            bootstrap: None,
                            log_rho_option,
                            log_rho_action,
                        });
                    }
                    let last = row.last_mut().unwrap();
                    let option = path.steps.last().unwrap().1;
                    match path.end {
                        Some(state) => last.bootstrap = Some(worth(&values, state, option)),
                        None => (last.discount, last.bootstrap) = (0.0, Some(0.0)),
                    }
                    path.probability * half_step(&row, &traces).unwrap()[0].target
                };
                paths.iter().map(expected).sum()
            })
            .collect();
    }
    values
}

pub(crate) fn behaviour() -> Logits {
    Logits {
        termination: [[1.5, 1.0, -1.0], [-1.0, 1.0, 1.5]],
        over_options: [[-1.0, 1.0], [1.0, -1.0], [0.8, -0.8]],
        ..target()
    }
}

#[test]
fn the_chain_recovers_the_targets_values() {
    let want = target().solve(Charge::Change(0.0));
    all_close(&settle(&behaviour(), &target(), &target(), true), &want, 1e-7);
}

#[test]
fn the_chain_recovers_them_with_other_actions_too() {
    let mut behaviour = behaviour();
    behaviour.actions = [[[1.0, 0.0], [-0.4, 0.3], [0.0, 0.2]], [[0.5, 0.1], [0.9, -0.3], [-0.6, 0.4]]];
    let want = target().solve(Charge::Change(0.0));
    all_close(&settle(&behaviour, &target(), &target(), true), &want, 1e-7);
}

#[test]
fn action_ratios_alone_settle_elsewhere() {
    let found = settle(&behaviour(), &target(), &behaviour(), false);
    all_close(&found[..OPTIONS], &[7.66744266, 7.66834072], 1e-7);
}
