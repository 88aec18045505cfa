use super::{World, acting, autograd, closed, config, fresh, learner, norm};
use crate::config::HsPpo as Config;
use crate::contract::{Contract, Group};
use crate::data::{Forced, Fragment, NO_OPTION};
use crate::learn::beside::Beside;
use crate::learn::loss::{Clipped, Losses, Weights};
use crate::learn::{HsPpo, State};
use crate::policy::Network;
use crate::policy::tests::contract;
use tch::{Kind, Tensor};

/// No loss counts.
pub(super) const NOTHING: Weights =
    Weights { policy: 0.0, entropy: 0.0, option_policy: 0.0, option_entropy: 0.0, load_balance: 0.0, anchor: 0.0 };
const OPTION_POLICY: Weights = Weights { option_policy: 1.0, ..NOTHING };

/// The losses, and the gradient of their sum with these weights; the last is the critic's.
fn losses_of(
    learner: &HsPpo,
    rows: &[Fragment],
    config: &Config,
    weights: &Weights,
    value: f64,
) -> (Losses, f64, Vec<f32>) {
    let prepared = learner.prepare(rows, 9).unwrap();
    let snapshot = learner.snapshot(uuid::Uuid::nil(), 1, 1);
    let network = Network::new(&snapshot.contract, &snapshot.parameters, false).unwrap();
    closed(&network, &prepared.batch, &prepared.anchor, config, weights, value)
}

#[test]
fn the_critic_beside_gives_the_gradient_of_the_sum() {
    let config = Config { value_loss_coef: 0.7, ..config() };
    let (learner, rows) = fresh(4, &config);
    let prepared = learner.prepare(&rows, 9).unwrap();
    let (_, value, sum) = losses_of(&learner, &rows, &config, &NOTHING, config.value_loss_coef);
    let network = Network::new(&contract(4, &[16, 16]), &learner.state().parameters, false).unwrap();
    let beside = Beside::new(network.share_critic().unwrap(), config.value_loss_coef).unwrap();
    for _ in 0..2 {
        let mut found = vec![0.0; sum.len()];
        beside.start(&prepared.batch.select(&(0..prepared.batch.len()).collect::<Vec<_>>())).unwrap();
        assert_eq!(beside.finish(&mut found).unwrap(), value);
        assert!(found == sum && found.iter().any(|&part| part != 0.0));
    }
}

#[test]
fn fresh_data_has_ratio_one_at_both_levels() {
    let config = config();
    let (mut learner, rows) = fresh(4, &config);
    learner.update(&rows, 1).unwrap();
    let rows = World::new(8).collect(&acting(&learner, 2), 64);
    let prepared = learner.prepare(&rows, 2).unwrap();
    for kind in [Forced::Free, Forced::Init, Forced::MinSteps, Forced::MaxSteps] {
        assert!(prepared.gathered.steps.iter().any(|step| step.choice.forced == kind), "{kind:?} was seen");
    }
    for logs in [&prepared.estimated.log_rho_action, &prepared.estimated.log_rho_option] {
        let worst = logs.iter().map(|log| log.abs()).fold(0.0, f64::max);
        assert!(worst < 1e-5, "the worst log ratio to the record is {worst}");
    }
    let (losses, ..) = losses_of(&learner, &rows, &config, &NOTHING, 0.0);
    for worst in [losses.policy.most, losses.options.unwrap().policy.most] {
        assert!(worst < 1e-5, "the worst log ratio to the proximal policy is {worst}");
    }
}

/// A loss, and the groups that it may move.
type Part = (&'static str, Weights, f64, fn(Group) -> bool);

#[test]
fn each_loss_moves_its_own_parameters_only() {
    let config = Config { min_option_steps: 100_000, ..config() };
    let (learner, rows) = fresh(3, &config);
    let contract = contract(3, &[16, 16]);
    let trunk_and_options = |g| matches!(g, Group::Trunk | Group::Option(_));
    let choice = |g| matches!(g, Group::Trunk | Group::Termination | Group::OverOptions);
    let parts: [Part; 6] = [
        ("policy", Weights { policy: 1.0, ..NOTHING }, 0.0, trunk_and_options),
        ("value", NOTHING, 1.0, |g| g == Group::Critic),
        ("entropy", Weights { entropy: 1.0, ..NOTHING }, 0.0, |g| matches!(g, Group::Option(_))),
        ("option policy", OPTION_POLICY, 0.0, choice),
        ("option entropy", Weights { option_entropy: 1.0, ..NOTHING }, 0.0, |g| {
            matches!(g, Group::Trunk | Group::OverOptions)
        }),
        ("load balance", Weights { load_balance: 1.0, ..NOTHING }, 0.0, choice),
    ];
    let groups =
        [Group::Trunk, Group::Option(0), Group::Option(2), Group::Termination, Group::OverOptions, Group::Critic];
    for (name, weights, value, touches) in parts {
        let (.., gradient) = losses_of(&learner, &rows, &config, &weights, value);
        for group in groups {
            let norm = norm(&contract, &gradient, |other| other == group);
            assert_eq!(norm > 1e-6, touches(group), "{name} on {group:?}: gradient norm {norm}");
            assert!(touches(group) || norm == 0.0, "{name} on {group:?}: gradient norm {norm}");
        }
    }
}

/// Every loss and its gradient as autograd takes it, on all kinds of decisions, clipped and anchored ones among them.
#[test]
fn the_closed_form_is_that_of_autograd() {
    for options in [1, 2, 4] {
        let config = Config {
            clip_param: 0.02,
            option_clip_param: 0.01,
            entropy_coef: 0.01,
            option_entropy_coef: 0.02,
            load_balance_coef: 0.5,
            anchor_coef: 0.3,
            min_option_steps: 512 / options,
            value_loss_coef: 0.7,
            ..config()
        };
        let contract = contract(options, &[16, 16]);
        let (learner, rows) = fresh(options, &config);
        let prepared = learner.prepare(&rows, 9).unwrap();
        // Not the proximal policy: ratios on both sides of the clip; a log_std beyond either bound.
        let mut parameters: Vec<f32> =
            learner.state().parameters.iter().enumerate().map(|(at, p)| p + 0.02 * (at as f32 * 0.7).sin()).collect();
        let log_std = contract.layout().segments.iter().find(|s| s.name == "option.0.log_std").unwrap().offset;
        if 1 < options {
            (parameters[log_std], parameters[log_std + 1]) = (2.5, -5.5);
        }
        let network = Network::new(&contract, &parameters, false).unwrap();
        let (found, value, gradient) = closed(
            &network,
            &prepared.batch,
            &prepared.anchor,
            &config,
            &Weights::new(&config),
            config.value_loss_coef,
        );

        // what is clamped counts as if it lay at its bound, and moves only back from there
        let mut bounded = parameters.clone();
        if 1 < options {
            (bounded[log_std], bounded[log_std + 1]) = (2.0, -5.0);
        }
        let mut oracle = Network::new(&contract, &bounded, true).unwrap();
        let all = prepared.batch.select(&(0..prepared.batch.len()).collect::<Vec<_>>());
        let want = autograd::losses(&oracle, &all, &prepared.anchor, &config);
        want.total(&config).backward();
        let mut want_gradient = vec![0.0; gradient.len()];
        oracle.take_gradient(&mut want_gradient);
        if 1 < options {
            want_gradient[log_std] = want_gradient[log_std].max(0.0);
            want_gradient[log_std + 1] = want_gradient[log_std + 1].min(0.0);
        }

        let number = |tensor: &Tensor| tensor.double_value(&[]);
        let mut pairs = vec![
            (found.policy.loss, number(&want.policy)),
            (found.entropy, number(&want.entropy)),
            (value, number(&want.value)),
            (found.policy.most, number(&want.log_ratio_action.abs().max())),
        ];
        let by_option = |found: &[Clipped], log_ratios: &Tensor, clip: f64| {
            let log_ratios = Vec::<f64>::try_from(log_ratios.to_kind(Kind::Double).contiguous()).unwrap();
            for (option, found) in found.iter().enumerate() {
                let mine = all.rows.iter().zip(&log_ratios).filter(|(row, _)| all.steps.option[**row] == option);
                let mine: Vec<f64> = mine.map(|(_, log)| *log).collect();
                let mean = |of: &dyn Fn(f64) -> f64| mine.iter().map(|&log| of(log)).sum::<f64>() / mine.len() as f64;
                let kl = mean(&|log| log.exp() - 1.0 - log);
                let outside = mean(&|log| f64::from(u8::from(clip < (log.exp() - 1.0).abs())));
                assert!((found.kl / found.steps - kl).abs() < 1e-5 * (1.0 + kl), "{} is not {kl}", found.kl);
                // a ratio at the edge may be on either side for floats
                assert!((found.share / found.steps - outside).abs() < 1.5 / mine.len() as f64, "{found:?}: {outside}");
            }
        };
        by_option(&found.policy_by_option, &want.log_ratio_action, config.clip_param);
        assert_eq!(found.options.is_some(), 1 < options);
        if let (Some(found), Some(want)) = (&found.options, &want.options) {
            by_option(&found.policy_by_option, &want.log_ratio, config.option_clip_param);
            pairs.extend([
                (found.policy.loss, number(&want.policy)),
                (found.entropy, number(&want.entropy)),
                (found.load_balance, number(&want.load_balance)),
                (found.policy.most, number(&want.log_ratio.abs().max())),
            ]);
            assert!((0.1..0.9).contains(&found.policy.share), "the option clip binds: {}", found.policy.share);
        }
        assert!((0.1..0.95).contains(&found.policy.share), "the clip binds: {}", found.policy.share);
        assert_eq!(found.anchor.is_some(), 1 < options, "a rare option is part of the test");
        pairs.extend(found.anchor.zip(want.anchor.as_ref().map(number)));
        for (found, want) in pairs {
            assert!((found - want).abs() < 1e-5 * (1.0 + want.abs()), "{found} is not {want}");
        }
        for segment in &contract.layout().segments {
            let (found, want) = (&gradient[segment.range()], &want_gradient[segment.range()]);
            let most = want.iter().fold(0.0f32, |most, slope| most.max(slope.abs()));
            for (found, want) in found.iter().zip(want) {
                assert!((found - want).abs() < 1e-6 + 1e-4 * most, "{}: {found} is not {want}", segment.name);
            }
        }
        assert_eq!(gradient[log_std] == 0.0, 1 < options, "a parameter beyond its range rests");
    }
}

/// Parameters with option 0's heads and values in every option.
fn cloned(learner: &HsPpo, contract: &Contract) -> State {
    let mut state = learner.state();
    let layout = contract.layout();
    let range = |name: &str| layout.segments.iter().find(|segment| segment.name == name).unwrap().range();
    for option in 1..contract.options.count {
        for part in ["mean.weight", "mean.bias", "log_std"] {
            let first = state.parameters[range(&format!("option.0.{part}"))].to_vec();
            state.parameters[range(&format!("option.{option}.{part}"))].copy_from_slice(&first);
        }
    }
    for part in ["critic.value.weight", "critic.value.bias"] {
        let floats = &mut state.parameters[range(part)];
        let width = floats.len() / contract.options.count;
        let first = floats[..width].to_vec();
        floats.chunks_exact_mut(width).for_each(|chunk| chunk.copy_from_slice(&first));
    }
    state
}

#[test]
fn identical_heads_leave_nothing_to_choose() {
    let contract = contract(3, &[16, 16]);
    for lam_option in [0.0, 1.0] {
        let config = Config { lam_option, ..config() };
        let mut learner = learner(&contract, &config, 0.3);
        learner.restore(cloned(&learner, &contract)).unwrap();
        let rows = World::new(8).collect(&acting(&learner, 1), 64);
        let prepared = learner.prepare(&rows, 1).unwrap();
        // What the choice adds to the action's own advantage is nothing.
        for estimate in &prepared.estimated.estimates {
            let action = lam_option * estimate.rho_action * estimate.advantage_action;
            assert!((estimate.advantage_option - action).abs() < 1e-6);
        }
        let (.., found) = losses_of(&learner, &rows, &config, &OPTION_POLICY, 0.0);
        let found = norm(&contract, &found, |group| matches!(group, Group::Termination | Group::OverOptions));
        // With lam_option > 0 the action's advantage stays as noise: 0 in expectation only.
        if lam_option == 0.0 {
            assert!(found < 1e-6, "gradient norm {found}");
        } else {
            assert!(found > 1e-4, "the bound above can fail: {found}");
        }
    }
}

#[test]
fn a_deliberation_cost_alone_makes_clones_stay() {
    let contract = contract(3, &[16, 16]);
    let config = Config { lam_option: 0.0, deliberation_cost: 0.5, ..config() };
    let mut learner = learner(&contract, &config, 0.3);
    learner.restore(cloned(&learner, &contract)).unwrap();
    let rows = World::new(8).collect(&acting(&learner, 1), 64);
    let (.., gradient) = losses_of(&learner, &rows, &config, &OPTION_POLICY, 0.0);
    let layout = contract.layout();
    let bias = layout.segments.iter().find(|segment| segment.name == "termination.bias").unwrap();
    assert!(gradient[bias.range()].iter().all(|&slope| slope > 0.0), "a descent lowers every termination");
}

/// Option o becomes ORDER[o].
const ORDER: [usize; 3] = [2, 0, 1];

fn relabel(learner: &HsPpo, contract: &Contract, rows: &mut [Fragment]) -> State {
    for step in rows.iter_mut().flat_map(|row| &mut row.steps) {
        step.choice.option = ORDER[usize::from(step.choice.option)] as u8;
        if step.choice.option_prev != NO_OPTION {
            step.choice.option_prev = ORDER[usize::from(step.choice.option_prev)] as u8;
        }
    }
    let mut state = learner.state();
    state.parameters = relabelled(contract, &state.parameters);
    state
}

fn relabelled(contract: &Contract, floats: &[f32]) -> Vec<f32> {
    let mut out = floats.to_vec();
    let layout = contract.layout();
    for segment in &layout.segments {
        let from = &floats[segment.range()];
        if let Group::Option(option) = segment.group {
            let name = segment.name.replacen(&option.to_string(), &ORDER[option].to_string(), 1);
            let to = layout.segments.iter().find(|other| other.name == name).unwrap();
            out[to.range()].copy_from_slice(from);
        } else if segment.shape[0] == 3
            && ["termination", "over_options", "critic.value"].iter().any(|head| segment.name.starts_with(head))
        {
            let width = from.len() / 3;
            for option in 0..3 {
                let to = segment.offset + ORDER[option] * width;
                out[to..to + width].copy_from_slice(&from[option * width..(option + 1) * width]);
            }
        }
    }
    out
}

#[test]
fn relabelling_the_options_changes_no_loss_and_no_gradient() {
    let config = Config {
        deliberation_cost: 0.3,
        entropy_coef: 0.01,
        load_balance_coef: 0.5,
        min_option_steps: 150,
        ..config()
    };
    let (mut plain, rows) = fresh(3, &config);
    let contract = contract(3, &[16, 16]);
    let mut other_rows = rows.clone();
    let mut other = learner(&contract, &config, 0.3);
    other.restore(relabel(&plain, &contract, &mut other_rows)).unwrap();
    let weights = Weights::new(&config);
    let (a, a_value, a_gradient) = losses_of(&plain, &rows, &config, &weights, 0.5);
    let (b, b_value, b_gradient) = losses_of(&other, &other_rows, &config, &weights, 0.5);
    assert!(a.anchor.is_some(), "a rare option is part of the test");
    let (a_options, b_options) = (a.options.as_ref().unwrap(), b.options.as_ref().unwrap());
    for (name, a, b) in [
        ("policy", a.policy.loss, b.policy.loss),
        ("value", a_value, b_value),
        ("entropy", a.entropy, b.entropy),
        ("option policy", a_options.policy.loss, b_options.policy.loss),
        ("option entropy", a_options.entropy, b_options.entropy),
        ("load balance", a_options.load_balance, b_options.load_balance),
    ] {
        assert!((a - b).abs() < 1e-6 * (1.0 + a.abs()), "{name}: {a} and relabelled {b}");
    }
    let (a, b) = (relabelled(&contract, &a_gradient), b_gradient);
    let apart: Vec<f32> = a.iter().zip(&b).map(|(a, b)| a - b).collect();
    let (apart, size) = (norm(&contract, &apart, |_| true), norm(&contract, &a, |_| true));
    assert!(apart < 1e-5 * size, "gradients differ by {apart} of {size}");

    let (a, b) = (plain.update(&rows, 1).unwrap(), other.update(&other_rows, 1).unwrap());
    let close = |name: &str, relabelled: &str| {
        let (a, b) = (a.get(name).unwrap(), b.get(relabelled).unwrap());
        assert!((a - b).abs() < 1e-3 * (0.01 + a.abs()), "{name}: {a} and relabelled {b}");
    };
    close("losses/policy_loss", "losses/policy_loss");
    close("options/switch_rate", "options/switch_rate");
    close("options/1/beta_mean", "options/0/beta_mean");
}
