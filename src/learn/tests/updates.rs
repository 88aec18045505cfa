use super::{World, acting, closed, config, fresh, learner, norm};
use crate::config::HsPpo as Config;
use crate::config::Seed;
use crate::contract::{ActionMeaning, Contract, Group, Inheritance};
use crate::data::NO_OPTION;
use crate::learn::estimate::Scale;
use crate::learn::loss::Weights;
use crate::learn::{Algorithm, HsPpo, State};
use crate::option::{Arrival, Running};
use crate::policy::tests::contract;
use crate::policy::{Network, floats};
use std::sync::Arc;

#[test]
fn a_seeded_update_repeats_to_the_byte() {
    let config = config();
    let run = || {
        let (mut learner, rows) = fresh(3, &config);
        learner.update(&rows, 1).unwrap();
        learner.state()
    };
    let (a, b) = (run(), run());
    let bits = |state: &State| state.parameters.iter().map(|x| x.to_bits()).collect::<Vec<u32>>();
    assert_eq!(bits(&a), bits(&b));
    assert_eq!(a, b);
}

#[test]
fn a_resumed_learner_goes_on_exactly() {
    let config = config();
    let (mut first, rows) = fresh(3, &config);
    first.update(&rows, 1).unwrap();
    let stored = serde_json::to_string(&first.state()).unwrap();
    let mut second = HsPpo::new(contract(3, &[16, 16]), &config, Seed::root(4)).unwrap();
    second.restore(serde_json::from_str(&stored).unwrap()).unwrap();
    assert_eq!(first.snapshot(uuid::Uuid::nil(), 1, 2).hash(), second.snapshot(uuid::Uuid::nil(), 1, 2).hash());
    let rows = World::new(8).collect(&acting(&first, 2), 64);
    first.update(&rows, 2).unwrap();
    second.update(&rows, 2).unwrap();
    assert_eq!(first.state(), second.state());
    assert_eq!((second.updates(), second.env_steps()), (2, 2 * 8 * 64));
}

/// A critic's values are in units of the return's standard deviation: without them they would mean something else.
#[test]
fn a_run_started_from_another_has_its_values() {
    let config = config();
    let contract = contract(3, &[16, 16]);
    let (mut source, mut rows) = fresh(3, &config);
    rows.iter_mut().flat_map(|row| &mut row.steps).for_each(|step| step.reward *= 20.0);
    source.update(&rows, 1).unwrap();
    let snapshot = source.snapshot(uuid::Uuid::nil(), 1, 2);
    let started_in = |contract: &Arc<Contract>| {
        let mut started = HsPpo::new(contract.clone(), &config, Seed::root(4)).unwrap();
        let fits = Inheritance::new(&snapshot.contract, contract);
        Algorithm::inherit(&mut started, &fits, &snapshot, &source.save()).unwrap();
        started
    };
    let values = |learner: &HsPpo| -> Vec<f64> {
        let state = learner.state();
        let network = Network::new(&contract, &state.parameters, false).unwrap();
        let mut observations = rows[0].observations.clone();
        learner.snapshot(uuid::Uuid::nil(), 1, 1).normaliser.apply(&mut observations);
        let scale = Scale::of(&config, 3, &state.returns).reward;
        floats(&network.critic(&network.input(&observations))).iter().map(|&value| f64::from(value) * scale).collect()
    };
    assert!(5.0 < Scale::of(&config, 3, &source.state().returns).reward);
    assert_eq!(values(&started_in(&contract)), values(&source));

    let wider = Contract { action: ActionMeaning::JointDelta { scale_rad: 9.0 }, ..(*contract).clone() };
    let elsewhere = started_in(&Arc::new(wider)).state();
    let drawn = HsPpo::new(contract.clone(), &config, Seed::root(4)).unwrap().state();
    let critic = Network::new(&contract, &drawn.parameters, false).unwrap().share_critic().unwrap().range();
    assert_eq!(elsewhere.parameters[critic.clone()], drawn.parameters[critic]);
    assert_eq!(elsewhere.returns, drawn.returns);
}

#[test]
fn an_overflowing_minibatch_is_skipped_and_counted() {
    let config = Config { normalise_reward: false, ..config() };
    let (mut learner, mut rows) = fresh(3, &config);
    rows[2].steps[0].reward = 1e30;
    let metrics = learner.update(&rows, 1).unwrap();
    let skipped = metrics.get("losses/skipped_minibatches").unwrap();
    assert_eq!(skipped, config.num_learning_epochs as f64, "one minibatch an epoch holds the step");
    assert_eq!(metrics.get("losses/gradient_steps"), Some(3.0 * config.num_learning_epochs as f64));
    let state = learner.state();
    assert_eq!(state.skipped, skipped as u64);
    assert!(state.parameters.iter().all(|parameter| parameter.is_finite()));
    assert!(metrics.iter().all(|(name, value)| value.is_finite() || panic!("{name} is {value}")));
}

#[test]
fn a_rare_option_rests_and_is_held_where_it_was() {
    let config = Config { min_option_steps: 60, ..config() };
    let contract = contract(3, &[16, 16]);
    let mut learner = learner(&contract, &config, 0.3);
    let mut state = learner.state();
    let layout = contract.layout();
    let bias = layout.segments.iter().find(|segment| segment.name == "over_options.bias").unwrap();
    state.parameters[bias.offset + 1] = -4.0;
    learner.restore(state).unwrap();
    let before = learner.state();
    let rows = World::new(8).collect(&acting(&learner, 1), 64);
    let prepared = learner.prepare(&rows, 1).unwrap();
    assert_eq!(prepared.anchor.options, [1], "counts {:?}", prepared.counts);
    let told = learner.update(&rows, 1).unwrap().get("options/anchor_kl").unwrap();
    let after = learner.state();
    for segment in layout.segments.iter().filter(|segment| segment.group == Group::Option(1)) {
        assert_eq!(after.parameters[segment.range()], before.parameters[segment.range()]);
        assert!(after.adam.first[segment.range()].iter().all(|&moment| moment == 0.0));
    }
    let moved: Vec<f32> = after.parameters.iter().zip(&before.parameters).map(|(a, b)| a - b).collect();
    assert!(norm(&contract, &moved, |group| group == Group::Option(0)) > 0.0);

    // The trunk moved below the head at rest; the anchor is that motion's price.
    let anchored = |parameters: &[f32]| {
        let network = Network::new(&contract, parameters, false).unwrap();
        let weights = Weights::new(&config);
        closed(&network, &prepared.batch, &prepared.anchor, &config, &weights, 0.0).0.anchor.unwrap()
    };
    let (anchor, none) = (anchored(&after.parameters), anchored(&before.parameters));
    assert!(anchor > 1e-6 && none.abs() < 1e-6, "moved {anchor}, unmoved {none}");
    assert!(1e-7 < told && told < 2.0 * anchor, "told {told} on the way to {anchor}");
}

#[test]
fn an_update_stops_when_the_policy_has_gone_too_far() {
    for (desired_kl, desired_option_kl) in [(1e-4, 0.0), (0.0, 1e-4)] {
        let config = Config { desired_kl, desired_option_kl, lr: 5e-3, ..config() };
        let (mut learner, rows) = fresh(3, &config);
        let metrics = learner.update(&rows, 1).unwrap();
        assert_eq!(metrics.get("losses/stopped_early"), Some(1.0));
        let taken = metrics.get("losses/gradient_steps").unwrap();
        assert!((1.0..12.0).contains(&taken), "{taken} steps");
    }
}

#[test]
fn lagging_data_is_weighed_and_told() {
    let config = config();
    let (mut learner, rows) = fresh(3, &config);
    let mut rows_mixed = rows.clone();
    learner.update(&rows, 1).unwrap();
    for row in &mut rows_mixed[..2] {
        row.steps.iter_mut().for_each(|step| step.version = 0);
    }
    let prepared = learner.prepare(&rows_mixed, 4).unwrap();
    let policy = acting(&learner, 2);
    let mut apart = [0.0f64; 2];
    for (t, step) in rows[0].steps.iter().enumerate() {
        let outputs = policy.outputs(rows[0].observation(t)).unwrap();
        let option = usize::from(step.choice.option);
        let running = match step.choice.option_prev {
            NO_OPTION => Running::default(),
            prev => Running { option: Some(prev), age: step.choice.option_age },
        };
        let logit = running.option.map_or(0.0, |prev| outputs.termination(0, usize::from(prev)));
        let arrival = Arrival::new(logit, running, &policy.contract().options);
        let action = outputs.log_prob_action(0, option, &step.choice.proposal) - f64::from(step.choice.log_prob_action);
        let choice =
            arrival.log_transition(option, &outputs.log_over_options(0)) - f64::from(step.choice.log_prob_option);
        let estimate = &prepared.estimated.estimates[t];
        for (level, (want, log, rho)) in [
            (action, prepared.estimated.log_rho_action[t], estimate.rho_action),
            (choice, prepared.estimated.log_rho_option[t], estimate.rho_option),
        ]
        .into_iter()
        .enumerate()
        {
            assert!((log - want).abs() < 1e-4, "step {t}: log ratio {log}, by the policy {want}");
            assert!((rho - want.exp().min(1.0)).abs() < 1e-4);
            apart[level] = apart[level].max(want.abs());
        }
    }
    assert!(apart.iter().all(|apart| 1e-3 < *apart), "the policy has moved at both levels: {apart:?}");
    let metrics = learner.update(&rows_mixed, 4).unwrap();
    assert_eq!(metrics.get("lag/max"), Some(4.0));
    assert_eq!(metrics.get("lag/min"), Some(3.0));
    assert_eq!(metrics.get("lag/mean"), Some(3.25));
    assert_eq!(metrics.get("lag/histogram_2_3"), Some(0.75));
    assert_eq!(metrics.get("lag/histogram_4_7"), Some(0.25));
    assert!(metrics.get("lag/ess_action").unwrap() < 1.0 && metrics.get("lag/ess_option").unwrap() < 1.0);
}

/// What lags is weighed outside of the clip, whose ratio is that to the policy at the start of the update; or inside of it,
/// where the ratio is that to the policy that recorded.
#[test]
fn ratios_of_lagging_data_start_at_one() {
    for decoupled in [true, false] {
        ratios_start_at_one(decoupled);
    }
}

fn ratios_start_at_one(decoupled: bool) {
    let config = Config { decoupled, ..config() };
    let (mut learner, rows) = fresh(3, &config);
    learner.update(&rows, 1).unwrap();
    let prepared = learner.prepare(&rows, 2).unwrap();
    let lag = |logs: &[f64]| logs.iter().fold(0.0, |most: f64, log| most.max(log.abs()));
    let [by_action, by_option] = [lag(&prepared.estimated.log_rho_action), lag(&prepared.estimated.log_rho_option)];
    assert!(1e-3 < by_action && 1e-3 < by_option);
    let network = Network::new(acting(&learner, 2).contract(), &learner.state().parameters, false).unwrap();
    let weights = Weights::new(&config);
    let (losses, ..) = closed(&network, &prepared.batch, &prepared.anchor, &config, &weights, 0.0);
    for (worst, lag) in [(losses.policy.most, by_action), (losses.options.unwrap().policy.most, by_option)] {
        let want = if decoupled { 0.0 } else { lag };
        assert!((worst - want).abs() < 1e-5, "the worst log ratio is {worst}, not {want}");
    }
}

/// Adam's first step is as long as its rate, wherever there is a gradient.
#[test]
fn heads_of_the_option_level_have_a_rate_of_their_own() {
    let config = Config { lr: 1e-3, lr_option_scale: 0.1, num_learning_epochs: 1, minibatch_size: 10_000, ..config() };
    let (mut learner, rows) = fresh(3, &config);
    let before = learner.state().parameters;
    learner.update(&rows, 1).unwrap();
    let after = learner.state().parameters;
    let longest = |group: Group| {
        let layout = contract(3, &[16, 16]).layout();
        let segments = layout.segments.iter().filter(|segment| segment.group == group);
        segments.flat_map(|s| s.range()).map(|at| (after[at] - before[at]).abs()).fold(0.0f32, f32::max)
    };
    for (group, rate) in [(Group::Trunk, 1e-3), (Group::Termination, 1e-4), (Group::OverOptions, 1e-4)] {
        let found = longest(group);
        assert!((0.8 * rate..1.05 * rate).contains(&found), "{group:?} moved by {found}");
    }
}

#[test]
fn the_metrics_of_the_options_add_up() {
    let (mut learner, rows) = fresh(3, &config());
    let metrics = learner.update(&rows, 1).unwrap();
    let get = |name: &str| metrics.get(name).unwrap_or_else(|| panic!("{name} is missing"));
    let shares: f64 = (0..3).map(|option| get(&format!("options/{option}/share"))).sum();
    let weighed: f64 = (0..3).map(|o| get(&format!("options/{o}/share")) * get(&format!("options/{o}/weight"))).sum();
    assert!((shares - 1.0).abs() < 1e-12 && (weighed - 1.0).abs() < 1e-12);
    let steps: Vec<_> = rows.iter().flat_map(|row| &row.steps).collect();
    let arrivals = steps.iter().filter(|step| step.choice.option_prev != NO_OPTION);
    let switches = arrivals.clone().filter(|step| step.choice.option_prev != step.choice.option).count();
    assert!((get("options/switch_rate") - switches as f64 / arrivals.count() as f64).abs() < 1e-12);
    for name in [
        "losses/value_loss",
        "losses/explained_variance",
        "losses/approx_kl",
        "losses/clipfrac",
        "options/clipfrac",
        "options/approx_kl",
        "options/spread",
        "options/forced_share",
        "options/load_balance_kl",
        "charts/learning_rate",
        "options/2/entropy",
        "options/2/beta_p10",
        "options/2/beta_p90",
        "options/2/advantage_mean",
    ] {
        assert!(get(name).is_finite());
    }
    let ended = steps.iter().filter(|step| step.choice.option_prev == 1 && step.choice.option_terminated);
    let ages: Vec<f64> = ended.map(|step| f64::from(step.choice.option_age)).collect();
    assert!((get("options/1/duration_mean") - ages.iter().sum::<f64>() / ages.len() as f64).abs() < 1e-12);
    let names: Vec<&str> = metrics.iter().map(|(name, _)| name).collect();
    let mut unique = names.clone();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), names.len());
}

#[test]
fn the_normaliser_learns_after_the_update() {
    let config = config();
    let (mut learner, rows) = fresh(2, &config);
    assert_eq!(learner.snapshot(uuid::Uuid::nil(), 1, 1).normaliser.count, 0.0);
    learner.update(&rows, 1).unwrap();
    let normaliser = learner.snapshot(uuid::Uuid::nil(), 1, 2).normaliser;
    assert_eq!(normaliser.count, 8.0 * 64.0);
    let xs: Vec<f32> = rows.iter().flat_map(|row| (0..64).map(|t| row.observation(t)[0])).collect();
    assert!((normaliser.mean[0] - xs.iter().sum::<f32>() / 512.0).abs() < 1e-5);
}

#[test]
fn learner_and_policy_move_between_threads() {
    fn moves<T: Send>() {}
    moves::<HsPpo>();
    moves::<crate::policy::Policy>();
}

#[test]
fn the_learning_rate_falls_linearly_and_stays() {
    let config = Config { lr: 1e-3, lr_anneal_steps: 2048, lr_final: 0.25, ..config() };
    let (learner, _) = fresh(3, &config);
    let mut state = learner.state();
    for (steps, expected) in [(0, 1e-3), (512, 8.125e-4), (1024, 6.25e-4), (2048, 2.5e-4), (1 << 40, 2.5e-4)] {
        state.env_steps = steps;
        let mut at = HsPpo::new(contract(3, &[16, 16]), &config, Seed::root(4)).unwrap();
        at.restore(state.clone()).unwrap();
        assert!((at.lr() - expected).abs() < 1e-12, "{steps}: {}", at.lr());
    }
    let constant = Config { lr_anneal_steps: 0, ..config };
    let mut at = HsPpo::new(contract(3, &[16, 16]), &constant, Seed::root(4)).unwrap();
    at.restore(state).unwrap();
    assert_eq!(at.lr(), 1e-3);
}
