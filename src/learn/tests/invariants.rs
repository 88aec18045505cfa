use super::{World, acting, config, fresh, learner, norm, together};
use crate::config::HsPpo as Config;
use crate::contract::{Contract, Group};
use crate::data::{Forced, Fragment, NO_OPTION};
use crate::learn::beside::Beside;
use crate::learn::loss::{Losses, losses};
use crate::learn::{HsPpo, State};
use crate::policy::Network;
use crate::policy::tests::contract;
use tch::Tensor;

fn loss_of(learner: &HsPpo, rows: &[Fragment], config: &Config) -> (Network, Losses) {
    let prepared = learner.prepare(rows, 9).unwrap();
    let snapshot = learner.snapshot(uuid::Uuid::nil(), 1, 1);
    let network = Network::new(&snapshot.contract, &snapshot.parameters, true).unwrap();
    let losses = together(&network, &prepared.batch, &prepared.anchor, config);
    (network, losses)
}

fn gradient(contract: &Contract, network: &mut Network, loss: &Tensor) -> Vec<f32> {
    let mut gradient = vec![0.0; contract.layout().len()];
    loss.backward();
    network.take_gradient(&mut gradient);
    gradient
}

#[test]
fn the_critic_beside_gives_the_gradient_of_the_sum() {
    let config = Config { value_loss_coef: 0.7, ..config() };
    let (learner, rows) = fresh(4, &config);
    let contract = contract(4, &[16, 16]);
    let prepared = learner.prepare(&rows, 9).unwrap();
    let (mut network, all) = loss_of(&learner, &rows, &config);
    let sum = gradient(&contract, &mut network, &all.total(&config));
    let beside = Beside::new(network.share_critic().unwrap(), config.value_loss_coef).unwrap();
    for _ in 0..2 {
        beside.start(&prepared.batch).unwrap();
        let apart = losses(&network, &prepared.batch, &prepared.anchor, &config, || beside.loss()).unwrap();
        assert_eq!(apart.value.double_value(&[]), all.value.double_value(&[]));
        apart.total(&config).backward();
        beside.finish().unwrap();
        let mut found = vec![0.0; sum.len()];
        network.take_gradient(&mut found);
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
    let (_, losses) = loss_of(&learner, &rows, &config);
    for log in [losses.log_ratio_action, losses.options.unwrap().log_ratio] {
        let worst = log.abs().max().double_value(&[]);
        assert!(worst < 1e-5, "the worst log ratio to the proximal policy is {worst}");
    }
}

/// A loss, and the groups that it may move.
type Part = (&'static str, fn(&Losses) -> Tensor, fn(Group) -> bool);

#[test]
fn each_loss_moves_its_own_parameters_only() {
    let config = Config { min_option_steps: 100_000, ..config() };
    let (learner, rows) = fresh(3, &config);
    let contract = contract(3, &[16, 16]);
    let parts: [Part; 6] = [
        ("policy", |l| l.policy.shallow_clone(), |g| matches!(g, Group::Trunk | Group::Option(_))),
        ("value", |l| l.value.shallow_clone(), |g| g == Group::Critic),
        ("entropy", |l| l.entropy.shallow_clone(), |g| matches!(g, Group::Option(_))),
        (
            "option policy",
            |l| l.options.as_ref().unwrap().policy.shallow_clone(),
            |g| matches!(g, Group::Trunk | Group::Termination | Group::OverOptions),
        ),
        (
            "option entropy",
            |l| l.options.as_ref().unwrap().entropy.shallow_clone(),
            |g| matches!(g, Group::Trunk | Group::OverOptions),
        ),
        (
            "load balance",
            |l| l.options.as_ref().unwrap().load_balance.shallow_clone(),
            |g| matches!(g, Group::Trunk | Group::Termination | Group::OverOptions),
        ),
    ];
    let groups =
        [Group::Trunk, Group::Option(0), Group::Option(2), Group::Termination, Group::OverOptions, Group::Critic];
    for (name, pick, touches) in parts {
        let (mut network, losses) = loss_of(&learner, &rows, &config);
        let gradient = gradient(&contract, &mut network, &pick(&losses));
        for group in groups {
            let norm = norm(&contract, &gradient, |other| other == group);
            assert_eq!(norm > 1e-6, touches(group), "{name} on {group:?}: gradient norm {norm}");
            assert!(touches(group) || norm == 0.0, "{name} on {group:?}: gradient norm {norm}");
        }
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
        let (mut network, losses) = loss_of(&learner, &rows, &config);
        let loss = losses.options.unwrap().policy;
        let found = gradient(&contract, &mut network, &loss);
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
    let (mut network, losses) = loss_of(&learner, &rows, &config);
    let gradient = gradient(&contract, &mut network, &losses.options.unwrap().policy);
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
    let (mut network_a, a) = loss_of(&plain, &rows, &config);
    let (mut network_b, b) = loss_of(&other, &other_rows, &config);
    assert!(a.anchor.is_some(), "a rare option is part of the test");
    let (a_options, b_options) = (a.options.as_ref().unwrap(), b.options.as_ref().unwrap());
    for (name, a, b) in [
        ("policy", &a.policy, &b.policy),
        ("value", &a.value, &b.value),
        ("entropy", &a.entropy, &b.entropy),
        ("option policy", &a_options.policy, &b_options.policy),
        ("option entropy", &a_options.entropy, &b_options.entropy),
        ("load balance", &a_options.load_balance, &b_options.load_balance),
    ] {
        let (a, b) = (a.double_value(&[]), b.double_value(&[]));
        assert!((a - b).abs() < 1e-6 * (1.0 + a.abs()), "{name}: {a} and relabelled {b}");
    }
    let a = relabelled(&contract, &gradient(&contract, &mut network_a, &a.total(&config)));
    let b = gradient(&contract, &mut network_b, &b.total(&config));
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
