//! What becomes of recorded steps.

use super::{cloning, config, learner, step};
use crate::config::{Learner, Offline as Config};
use crate::data::{End, Logged, Part};
use crate::learn::offline::Dataset;
use crate::learn::{Algorithm, Offline};
use crate::policy::tests::{contract, snapshot};
use crate::policy::{Policy, floats};
use std::collections::BTreeSet;
use uuid::Uuid;

fn recorded(steps: usize) -> Vec<Logged> {
    cloning::recorded(&Policy::new(&snapshot(&contract(2, &[16, 16]), 6, 0.3)).unwrap(), steps)
}

fn split() -> Learner {
    let offline = Config {
        validation: 0.3,
        test: 0.2,
        batch_size: 32,
        gradient_steps: 40,
        update_steps: 10,
        ..Config::default()
    };
    Learner { offline, ..Learner::default() }
}

#[test]
fn no_episode_is_in_two_parts_and_the_order_of_the_bags_changes_nothing() {
    let contract = contract(2, &[16, 16]);
    let logged = recorded(200);
    let dataset = Dataset::new(&contract, &logged, &split()).unwrap();
    let rows = |part: Part| -> BTreeSet<Vec<u32>> {
        let rows = floats(&dataset.parts[&part].input);
        rows.chunks(3).map(|row| row.iter().map(|float| float.to_bits()).collect()).collect()
    };
    let parts = [Part::Train, Part::Validation, Part::Test];
    let steps: usize = parts.iter().map(|part| dataset.count(*part).1).sum();
    assert_eq!(steps, 8 * 200);
    for (one, other) in [(0, 1), (0, 2), (1, 2)] {
        assert!(rows(parts[one]).is_disjoint(&rows(parts[other])), "goals are drawn for each episode");
    }
    // turned round, and half of it twice
    let again: Vec<Logged> = logged.iter().rev().chain(&logged[..4]).cloned().collect();
    let again = Dataset::new(&contract, &again, &split()).unwrap();
    for part in parts {
        assert_eq!(again.count(part), dataset.count(part));
    }
    assert_eq!(again.observations, dataset.observations);
}

#[test]
fn statistics_are_those_of_the_training_alone() {
    let contract = contract(1, &[8]);
    let logged: Vec<Logged> = (0..50)
        .map(|env| step(env, &[env as f32, 1.0, 2.0], &[0.5, -1.0], env as f32, &[0.0; 3], End::Terminated))
        .collect();
    let dataset = Dataset::new(&contract, &logged, &split()).unwrap();
    let train: Vec<f64> = (0..50u32)
        .filter(|&env| Part::of(&logged[env as usize], u64::from(env), 0.3, 0.2) == Part::Train)
        .map(f64::from)
        .collect();
    let mean = train.iter().sum::<f64>() / train.len() as f64;
    assert!((dataset.observations.mean[0] - mean).abs() < 1e-9 && (dataset.returns.mean[0] - mean).abs() < 1e-9);
    // an action at the end of its range has a proposal that is bounded: atanh(1 - 1e-5) = 6.103
    let proposals = floats(&dataset.parts[&Part::Train].proposal);
    assert!((proposals[0] - 0.5f32.atanh()).abs() < 1e-6 && (proposals[1] + 6.103).abs() < 0.01, "{}", proposals[1]);
}

#[test]
fn returns_go_on_over_fragments_and_begin_anew_at_ends_and_gaps() {
    let contract = contract(1, &[8]);
    let at = |first: u64, reward: f32, end: End| {
        let mut logged = step(0, &[0.0; 3], &[0.0; 2], reward, &[0.0; 3], end);
        logged.fragment.first = first;
        logged
    };
    let logged = [at(0, 1.0, End::None), at(1, 2.0, End::Truncated), at(2, 4.0, End::None), at(7, 8.0, End::None)];
    let dataset = Dataset::new(&contract, &logged, &config()).unwrap();
    // 1, 2 + 0.95, 4, 8
    assert!((dataset.returns.mean[0] - (1.0 + 2.95 + 4.0 + 8.0) / 4.0).abs() < 1e-6, "{:?}", dataset.returns);
}

#[test]
fn what_leaves_nothing_to_learn_from_is_refused_with_a_sentence() {
    let contract = contract(1, &[8]);
    let refusal =
        |logged: &[Logged], config: &Learner| Dataset::new(&contract, logged, config).err().unwrap().to_string();
    assert!(refusal(&[], &config()).contains("not one recorded step"));
    let one = [step(0, &[0.0; 3], &[0.0; 2], 1.0, &[0.0; 3], End::Terminated)];
    let whose = Part::of(&one[0], 0, 0.3, 0.2);
    let said = refusal(&one, &split());
    let missing = if whose == Part::Train { "validation" } else { "training" };
    assert!(
        said.contains(&format!("none of the 1 recorded episodes falls to the {missing}")) && said.contains("--val"),
        "{said}"
    );
}

fn updates(learner: &mut Offline, count: u64) {
    (0..count).for_each(|version| drop(learner.learn(vec![], version).unwrap()));
}

#[test]
fn a_run_goes_on_from_its_checkpoint_exactly_and_only_with_its_own_steps() {
    for cloning in [true, false] {
        let contract = contract(2, &[16, 16]);
        let logged = recorded(200);
        let whole = |count: u64| {
            let mut learner = learner(&contract, &split(), &logged, cloning);
            updates(&mut learner, count);
            learner
        };
        let (half, whole) = (whole(2), whole(4));
        let snapshot = half.snapshot(Uuid::nil(), 1, 3);
        let mut resumed = learner(&contract, &split(), &logged, cloning);
        resumed.restore(&snapshot, &half.save(), None).unwrap();
        updates(&mut resumed, 2);
        assert_eq!(resumed.snapshot(Uuid::nil(), 1, 1), whole.snapshot(Uuid::nil(), 1, 1));
        assert_eq!(resumed.save(), whole.save());
        let mut other = learner(&contract, &split(), &recorded(150), cloning);
        let said = other.restore(&snapshot, &half.save(), None).unwrap_err().to_string();
        assert!(said.contains("other steps"), "{said}");
    }
}

#[test]
fn an_update_tells_of_the_validation_and_changes_neither_it_nor_an_option_that_never_acted() {
    let contract = contract(2, &[16, 16]);
    let mut logged = recorded(200);
    for logged in &mut logged {
        for step in &mut logged.fragment.steps {
            step.choice.option = 0;
        }
    }
    let mut learner = learner(&contract, &split(), &logged, false);
    let before = learner.actor.parameters.clone();
    let metrics = learner.learn(vec![], 1).unwrap();
    for name in ["validation/policy_loss", "validation/value_loss", "validation/critic_loss", "losses/option_loss"] {
        assert!(metrics.get(name).unwrap().is_finite(), "{name}");
    }
    for segment in &contract.layout().segments {
        let moved = before[segment.range()] != learner.actor.parameters[segment.range()];
        assert_eq!(moved, !segment.name.starts_with("option.1."), "{}", segment.name);
    }
    assert!(learner.losses(Part::Test).is_some());
}
