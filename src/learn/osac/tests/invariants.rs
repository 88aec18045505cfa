use super::{ALPHAS, Parameters, ROWS, config, critics_layout, drawn, off_policy, picked};
use crate::config::Osac as Config;
use crate::contract::{Contract, Group};
use crate::learn::osac::actor::{Picked, actor_losses};
use crate::learn::osac::losses::{Drawn, Networks, Temperatures, critic_loss, targets};
use crate::policy::floats;

/// Every number that the losses come to.
fn numbers(networks: &mut Networks, batch: &Drawn, picked: &Picked, config: &Config) -> Vec<f64> {
    let wanted = targets(networks, batch, ALPHAS, config);
    let critic = critic_loss(&mut networks.critics, batch, &wanted, config);
    let mut gradient = vec![0.0; networks.actor.parameters().len()];
    let actor = actor_losses(networks, picked, ALPHAS, config, &mut gradient);
    let options = actor.options.unwrap();
    let mut all = vec![critic.loss, actor.policy, actor.log_prob];
    all.extend([options.over_options, options.termination, options.entropy, options.balance, options.spread]);
    all.extend(&critic.errors);
    all
}

/// Moves row blocks of a flat vector's option-wise segments: block `to` takes what `order[to]` had.
fn relabelled(contract: &Contract, parameters: &Parameters, order: &[usize]) -> Parameters {
    let options = order.len();
    let blocks = |floats: &mut [f32]| {
        let old = floats.to_vec();
        let size = floats.len() / options;
        for (to, &from) in order.iter().enumerate() {
            floats[to * size..(to + 1) * size].copy_from_slice(&old[from * size..(from + 1) * size]);
        }
    };
    let actor = |flat: &[f32]| {
        let mut moved = flat.to_vec();
        let layout = contract.layout();
        for segment in &layout.segments {
            match segment.group {
                Group::Termination | Group::OverOptions => blocks(&mut moved[segment.range()]),
                Group::Option(to) => {
                    let name = segment.name.replace(&format!("option.{to}."), &format!("option.{}.", order[to]));
                    let from = layout.segments.iter().find(|segment| segment.name == name).unwrap();
                    moved[segment.range()].copy_from_slice(&flat[from.range()]);
                }
                _ => {}
            }
        }
        moved
    };
    let critics = |flat: &[f32]| {
        let mut moved = flat.to_vec();
        let layout = critics_layout(contract);
        for segment in &layout.segments[layout.segments.len() - 2..] {
            let size = segment.len() / 2;
            moved[segment.range()].chunks_exact_mut(size).for_each(blocks);
        }
        moved
    };
    Parameters {
        actor: actor(&parameters.actor),
        slow_actor: actor(&parameters.slow_actor),
        critics: critics(&parameters.critics),
        slow_critics: critics(&parameters.slow_critics),
    }
}

#[test]
fn relabelling_options_changes_no_loss() {
    let contract = off_policy(3, &[16, 8]);
    let parameters = Parameters::new(&contract);
    let (batch, chosen) = (drawn(&contract), picked(&contract));
    let config = Config { deliberation_cost: 0.1, ..config() };
    let want = numbers(&mut parameters.networks(&contract), &batch, &chosen, &config);
    let order = [2, 0, 1];
    let batch = Drawn {
        executed: batch.executed.iter().map(|old| order.iter().position(|from| from == old).unwrap()).collect(),
        noise: by_option(&batch.noise, &order),
        ..batch
    };
    let chosen = Picked {
        responsibility: by_option(&chosen.responsibility, &order),
        running: by_option(&chosen.running, &order),
        noise: by_option(&chosen.noise, &order),
        ..chosen
    };
    let mut networks = relabelled(&contract, &parameters, &order).networks(&contract);
    for (found, want) in numbers(&mut networks, &batch, &chosen, &config).iter().zip(&want) {
        assert!((found - want).abs() < 1e-5 * want.abs().max(1.0), "{found} is not {want}");
    }
}

/// Numbers of each row and option, the options in another order.
fn by_option<N: Copy>(numbers: &[N], order: &[usize]) -> Vec<N> {
    let options = order.len();
    let size = numbers.len() / ROWS / options;
    let rows = numbers.chunks_exact(options * size);
    rows.flat_map(|row| order.iter().flat_map(|&from| &row[from * size..(from + 1) * size])).copied().collect()
}

/// Options with the same heads, draws and values: nothing to choose, and nothing to end but for the cost.
#[test]
fn clones_leave_nothing_to_choose_and_only_the_cost_to_end() {
    let contract = off_policy(3, &[16, 8]);
    let parameters = relabelled(&contract, &Parameters::new(&contract), &[1, 1, 1]);
    let mut chosen = picked(&contract);
    chosen.noise = by_option(&chosen.noise, &[0, 0, 0]);
    let alphas = Temperatures { option: 0.0, ..ALPHAS };
    for cost in [0.0, 0.2] {
        let config =
            Config { deliberation_cost: cost, termination_temperature: 0.0, load_balance_coef: 0.0, ..config() };
        let mut gradient = vec![0.0; parameters.actor.len()];
        actor_losses(&parameters.networks(&contract), &chosen, alphas, &config, &mut gradient);
        let norm = |group: Group| {
            let layout = contract.layout();
            let segments = layout.segments.iter().filter(|segment| segment.group == group);
            segments.flat_map(|segment| &gradient[segment.range()]).map(|x| x * x).sum::<f32>().sqrt()
        };
        assert!(norm(Group::OverOptions) < 1e-6, "{}", norm(Group::OverOptions));
        assert_eq!(norm(Group::Termination) < 1e-6, cost == 0.0, "cost {cost}: {}", norm(Group::Termination));
    }
}

/// Each loss moves what it shall move, and nothing else: not the trunk by the option level, not the critics by the actor,
/// not the slow networks at all.
#[test]
fn losses_touch_their_own_parameters_only() {
    let contract = off_policy(3, &[16, 8]);
    let parameters = Parameters::new(&contract);
    let usual = Config { load_balance_coef: 0.0, ..config() };
    let wide = Config { deliberation_cost: 0.9, termination_temperature: 0.9, load_balance_coef: 0.9, ..config() };
    let gradient = |picked: &Picked, config: &Config, alphas: Temperatures| {
        let networks = parameters.networks(&contract);
        let mut gradient = vec![0.0; parameters.actor.len()];
        actor_losses(&networks, picked, alphas, config, &mut gradient);
        let mut critics = vec![0.0; parameters.critics.len()];
        networks.critics.take_gradient(&mut critics);
        assert!(critics.iter().all(|&float| float == 0.0), "the actor's losses move the critics");
        gradient
    };
    let chosen = picked(&contract);
    let moves = |change: &str, other: Vec<f32>, touches: fn(Group) -> bool| {
        let before = gradient(&chosen, &usual, ALPHAS);
        for segment in &contract.layout().segments {
            let differs = before[segment.range()] != other[segment.range()];
            assert_eq!(differs, touches(segment.group), "{change} moves {}", segment.name);
        }
    };
    let nobody = Picked { responsibility: vec![0.0; chosen.responsibility.len()], ..picked(&contract) };
    let policy = |group: Group| matches!(group, Group::Trunk | Group::Option(_));
    moves("responsibility", gradient(&nobody, &usual, ALPHAS), policy);
    let stopped = Picked { running: vec![0.0; chosen.running.len()], ..picked(&contract) };
    moves("what runs", gradient(&stopped, &usual, ALPHAS), |group| group == Group::Termination);
    let warm = Temperatures { option: 0.9, ..ALPHAS };
    moves("alpha of P", gradient(&chosen, &usual, warm), |group| group == Group::OverOptions);
    moves("the option level", gradient(&chosen, &wide, ALPHAS), |group| {
        matches!(group, Group::OverOptions | Group::Termination)
    });

    let (mut actor, mut critics) = (vec![0.0; parameters.actor.len()], vec![0.0; parameters.critics.len()]);
    let mut networks = parameters.networks(&contract);
    let batch = drawn(&contract);
    let wanted = targets(&networks, &batch, ALPHAS, &config());
    let _ = critic_loss(&mut networks.critics, &batch, &wanted, &config());
    networks.actor.take_gradient(&mut actor);
    networks.critics.take_gradient(&mut critics);
    assert!(actor.iter().all(|&float| float == 0.0), "the critics' loss moves the actor");
    assert!(critics_layout(&contract).segments.iter().all(|s| critics[s.range()].iter().any(|&x| x != 0.0)));
    networks.slow_critics.take_gradient(&mut critics);
    assert!(critics.iter().all(|&float| float == 0.0), "the critics' loss moves the slow critics");
}

#[test]
fn slow_networks_go_a_share_of_the_way() {
    let contract = off_policy(2, &[8]);
    let parameters = Parameters::new(&contract);
    let mut networks = parameters.networks(&contract);
    networks.slow_critics.follow(&networks.critics, 0.25);
    networks.slow_actor.follow(&networks.actor, 0.25);
    let check = |found: Vec<f32>, slow: &[f32], learned: &[f32]| {
        for ((found, slow), learned) in found.iter().zip(slow).zip(learned) {
            assert!((found - (0.75 * slow + 0.25 * learned)).abs() < 1e-6);
        }
    };
    check(networks.slow_critics.parameters(), &parameters.slow_critics, &parameters.critics);
    check(networks.slow_actor.parameters(), &parameters.slow_actor, &parameters.actor);
    assert_eq!(networks.critics.parameters(), parameters.critics);
}

/// A Huber loss of errors far over its delta is linear in them; the weights of the options are as told.
#[test]
fn the_critics_loss_weighs_options_and_bounds_errors() {
    let contract = off_policy(3, &[8]);
    let mut networks = Parameters::new(&contract).networks(&contract);
    for (executed_weight, delta) in [(0.0, 1.0), (1.0, 0.5), (0.3, 0.0)] {
        let batch = drawn(&contract);
        let config = Config { huber_delta: delta, executed_weight, ..config() };
        let wanted: Vec<f64> = targets(&networks, &batch, ALPHAS, &config).iter().map(|value| value * 3.0).collect();
        let critics = critic_loss(&mut networks.critics, &batch, &wanted, &config);
        let found = critics.loss;
        let values = floats(&networks.critics.pass(&batch.input, &batch.action).values);
        let mut want = 0.0;
        for (at, value) in values.iter().enumerate() {
            let (pair, row, option) = (at % (3 * ROWS), at / 3 % ROWS, at % 3);
            let error = (f64::from(*value) - wanted[pair]).abs();
            let loss = if delta == 0.0 || error < delta { error * error / 2.0 } else { delta * (error - delta / 2.0) };
            let share = (1.0 - executed_weight) / 3.0 + if option == row % 3 { executed_weight } else { 0.0 };
            want += batch.weight[row] * share * loss / ROWS as f64;
        }
        assert!((found - want).abs() < 1e-5 * want, "{found} is not {want}");

        // Of the acting options' targets, the share that the twins' mean says.
        let acted: Vec<usize> = (0..ROWS).map(|row| 3 * row + row % 3).collect();
        let variance = |of: &dyn Fn(usize) -> f64| {
            let mean = acted.iter().map(|&at| of(at)).sum::<f64>() / ROWS as f64;
            acted.iter().map(|&at| (of(at) - mean).powi(2)).sum::<f64>()
        };
        let said = |at: usize| f64::from(values[at] + values[3 * ROWS + at]) / 2.0;
        let explained = 1.0 - variance(&|at| wanted[at] - said(at)) / variance(&|at| wanted[at]);
        assert!((critics.explained - explained).abs() < 1e-5, "{} is not {explained}", critics.explained);
    }
}
