use super::{ALPHAS, Parameters, ROWS, config, critics_layout, drawn, off_policy, picked};
use crate::config::Osac as Config;
use crate::contract::{Contract, Group};
use crate::learn::osac::losses::{
    ActorLosses, Drawn, Networks, Picked, Temperatures, actor_losses, critic_loss, targets,
};
use crate::policy::floats;
use tch::{Kind, Tensor};

/// Every number that the losses come to.
fn numbers(networks: &mut Networks, batch: &Drawn, picked: &Picked, config: &Config) -> Vec<f64> {
    let wanted = targets(networks, batch, ALPHAS, config);
    let (value, errors) = critic_loss(&mut networks.critics, batch, &wanted, config);
    let actor = actor_losses(networks, picked, ALPHAS, config);
    let options = actor.options.as_ref().unwrap();
    let scalars =
        [&value, &actor.policy, &actor.log_prob, &options.over_options, &options.termination, &options.entropy];
    let mut all: Vec<f64> = scalars.iter().map(|scalar| scalar.double_value(&[])).collect();
    all.extend(floats(&errors).iter().map(|&error| f64::from(error)));
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
    let (batch, chosen) = (drawn(&contract, 0.5), picked(&contract));
    let config = Config { deliberation_cost: 0.1, ..config() };
    let want = numbers(&mut parameters.networks(&contract), &batch, &chosen, &config);
    let order = [2, 0, 1];
    let index = Tensor::from_slice(&order.map(|option| option as i64));
    let by_option = |tensor: &Tensor| tensor.index_select(1, &index);
    let batch = Drawn {
        share: by_option(&batch.share),
        executed: by_option(&batch.executed),
        forced: by_option(&batch.forced),
        noise: by_option(&batch.noise),
        ..batch
    };
    let chosen = Picked {
        responsibility: by_option(&chosen.responsibility),
        running: by_option(&chosen.running),
        noise: by_option(&chosen.noise),
        ..chosen
    };
    let mut networks = relabelled(&contract, &parameters, &order).networks(&contract);
    for (found, want) in numbers(&mut networks, &batch, &chosen, &config).iter().zip(&want) {
        assert!((found - want).abs() < 1e-5 * want.abs().max(1.0), "{found} is not {want}");
    }
}

/// Options with the same heads, draws and values: nothing to choose, and nothing to end but for the cost.
#[test]
fn clones_leave_nothing_to_choose_and_only_the_cost_to_end() {
    let contract = off_policy(3, &[16, 8]);
    let mut parameters = relabelled(&contract, &Parameters::new(&contract), &[1, 1, 1]);
    parameters.slow_critics = parameters.critics.clone();
    let mut chosen = picked(&contract);
    chosen.noise = chosen.noise.narrow(1, 0, 1).expand_as(&chosen.noise).contiguous();
    let alphas = Temperatures { option: 0.0, ..ALPHAS };
    for cost in [0.0, 0.2] {
        let config = Config { deliberation_cost: cost, termination_temperature: 0.0, ..config() };
        let mut networks = parameters.networks(&contract);
        let losses = actor_losses(&networks, &chosen, alphas, &config);
        let options = losses.options.as_ref().unwrap();
        (&options.over_options + &options.termination).backward();
        let mut gradient = vec![0.0; parameters.actor.len()];
        networks.actor.take_gradient(&mut gradient);
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
    let config = config();
    type Part = (&'static str, fn(&ActorLosses) -> Tensor, fn(Group) -> bool);
    let parts: [Part; 3] = [
        ("policy", |l| l.policy.shallow_clone(), |g| matches!(g, Group::Trunk | Group::Option(_))),
        ("over options", |l| l.options.as_ref().unwrap().over_options.shallow_clone(), |g| g == Group::OverOptions),
        ("termination", |l| l.options.as_ref().unwrap().termination.shallow_clone(), |g| g == Group::Termination),
    ];
    let mut critics = vec![0.0; parameters.critics.len()];
    let mut actor = vec![0.0; parameters.actor.len()];
    for (name, part, touches) in parts {
        let mut networks = parameters.networks(&contract);
        part(&actor_losses(&networks, &picked(&contract), ALPHAS, &config)).backward();
        networks.actor.take_gradient(&mut actor);
        networks.critics.take_gradient(&mut critics);
        assert!(critics.iter().all(|&float| float == 0.0), "{name} moves the critics");
        for segment in &contract.layout().segments {
            let norm = actor[segment.range()].iter().map(|x| x * x).sum::<f32>();
            assert_eq!(norm > 1e-12, touches(segment.group), "{name} on {}: {norm}", segment.name);
        }
    }
    let mut networks = parameters.networks(&contract);
    let batch = drawn(&contract, 0.5);
    let wanted = targets(&networks, &batch, ALPHAS, &config);
    assert!(!wanted.requires_grad());
    let _ = critic_loss(&mut networks.critics, &batch, &wanted, &config);
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
        let batch = drawn(&contract, executed_weight);
        let config = Config { huber_delta: delta, ..config() };
        let wanted = targets(&networks, &batch, ALPHAS, &config) * 3.0;
        let (found, _) = critic_loss(&mut networks.critics, &batch, &wanted, &config);
        let values = floats(&networks.critics.pass(&batch.input, &batch.action).values);
        let (wanted, weight, executed) = (floats(&wanted), floats(&batch.weight), floats(&batch.executed));
        let mut want = 0.0;
        for (at, value) in values.iter().enumerate() {
            let (pair, row) = (at % (3 * ROWS), at / 3 % ROWS);
            let error = f64::from(value - wanted[pair]).abs();
            let loss = if delta == 0.0 || error < delta { error * error / 2.0 } else { delta * (error - delta / 2.0) };
            let share = (1.0 - executed_weight) / 3.0 + executed_weight * f64::from(executed[pair]);
            want += f64::from(weight[row]) * share * loss / ROWS as f64;
        }
        assert!((found.double_value(&[]) - want).abs() < 1e-5 * want, "{found:?} is not {want}");
        assert_eq!(found.kind(), Kind::Float);
    }
}
