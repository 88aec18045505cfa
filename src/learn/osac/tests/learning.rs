use super::{config, learner, off_policy};
use crate::config::Osac as Config;
use crate::data::{Gathered, StreamId};
use crate::learn::osac::state::forgotten;
use crate::learn::tests::World;
use crate::learn::{Algorithm, Osac};
use crate::policy::Policy;
use uuid::Uuid;

fn acting(learner: &Osac, version: u64) -> Policy {
    Policy::new(&learner.snapshot(Uuid::nil(), 1, version)).unwrap()
}

fn collect(world: &mut World, policy: &Policy, steps: usize) -> Vec<Gathered> {
    let stream = StreamId { rollout: "r".into(), incarnation: 1 };
    let rows = world.collect(policy, steps);
    rows.into_iter().map(|fragment| Gathered { stream: stream.clone(), seq: 0, fragment }).collect()
}

/// A point that must go to its goal: mean distance over an update's steps falls from about 1 to a few steps' worth.
#[test]
fn a_point_learns_to_reach_with_one_option_and_with_three() {
    for options in [1, 3] {
        let config = Config { lr: 2e-3, update_to_data: 0.25, ..config() };
        let mut learner = learner(&off_policy(options, &[32, 32]), &config);
        let mut world = World::new(8);
        let (mut first, mut last) = (0.0, 0.0);
        for version in 1..=30 {
            let rows = collect(&mut world, &acting(&learner, version), 20);
            last = -world.rewards.iter().sum::<f32>() / world.rewards.len() as f32;
            first = if version == 1 { last } else { first };
            let metrics = learner.learn(rows, version).unwrap();
            assert_eq!(metrics.get("losses/skipped_minibatches"), Some(0.0));
        }
        assert!(0.8 < first && last < 0.45, "K = {options}: mean distance {first} at first, {last} at last");
    }
}

#[test]
fn learning_keeps_to_its_ratio_after_a_random_warm_up() {
    let config = Config { update_to_data: 0.25, slack_steps: 256, warmup_steps: 300, ..config() };
    let mut learner = learner(&off_policy(2, &[8]), &config);
    let mut world = World::new(4);
    let mut steps = 0.0;
    for version in 1..=10 {
        let snapshot = learner.snapshot(Uuid::nil(), 1, version);
        assert_eq!(snapshot.random_warmup, 40 * (version - 1) < 300, "version {version}");
        let rows = collect(&mut world, &Policy::new(&snapshot).unwrap(), 10);
        steps += learner.learn(rows, version).unwrap().get("losses/gradient_steps").unwrap();
        assert!(40 * version >= 300 || steps == 0.0, "nothing is learned in the warm-up");
    }
    // 400 steps, 300 of them the warm-up: 25 gradient steps, and 64 of the slack.
    assert_eq!((steps, learner.env_steps()), (89.0, 400));
}

#[test]
fn what_is_remembered_without_learning_is_learned_from_after_a_restore() {
    let config = Config { update_to_data: 0.25, slack_steps: 256, warmup_steps: 300, ..config() };
    let mut stopped = learner(&off_policy(2, &[8]), &config);
    let mut world = World::new(4);
    let mut rows = |learner: &Osac| collect(&mut world, &acting(learner, 1), 90);
    let steps = stopped.learn(rows(&stopped), 1).unwrap().get("losses/gradient_steps");
    // 60 steps after the warm-up: 15 gradient steps, and 64 of the slack.
    assert_eq!(steps, Some(79.0));
    let before = stopped.snapshot(Uuid::nil(), 1, 1);
    stopped.remember(&rows(&stopped)).unwrap();
    let after = stopped.snapshot(Uuid::nil(), 1, 1);
    assert_eq!((after.updates, after.env_steps, &after.parameters), (1, 720, &before.parameters));
    assert_eq!(after.normaliser.count, 720.0);

    let mut resumed = learner(&off_policy(2, &[8]), &config);
    resumed.restore(&after, &stopped.save(), stopped.save_replay().as_ref()).unwrap();
    let steps = resumed.learn(rows(&resumed), 2).unwrap().get("losses/gradient_steps");
    // The ratio holds over all 1080 steps.
    assert_eq!((steps, resumed.env_steps()), (Some((1080.0 - 300.0) * 0.25 + 64.0 - 79.0), 1080));
}

#[test]
fn lags_are_told_where_steps_are_taken_in_and_entropies_option_by_option() {
    let mut learner = learner(&off_policy(3, &[8]), &config());
    let mut rows = collect(&mut World::new(4), &acting(&learner, 1), 25);
    for (lag, row) in [0, 1, 3, 9].into_iter().zip(&mut rows) {
        row.fragment.steps.iter_mut().for_each(|step| step.version = 10 - lag);
    }
    let metrics = learner.learn(rows, 10).unwrap();
    let shares = [("0", 0.25), ("1", 0.25), ("2_3", 0.25), ("4_7", 0.0), ("8_up", 0.25)];
    for (name, share) in shares {
        assert_eq!(metrics.get(&format!("lag/histogram_{name}")), Some(share), "{name}");
    }
    assert_eq!(["lag/min", "lag/mean", "lag/max"].map(|name| metrics.get(name)), [Some(0.0), Some(3.25), Some(9.0)]);
    let entropies = [0, 1, 2].map(|option| metrics.get(&format!("options/{option}/entropy")).unwrap());
    let all = metrics.get("losses/entropy").unwrap();
    assert!(entropies.iter().all(|entropy| (entropy - all).abs() < 0.5), "{all} of all, {entropies:?} each");
    assert!(entropies[0] != entropies[1] && entropies[1] != entropies[2], "{entropies:?}");
}

/// The parameters after updates `from` to `to`, each from data of its own.
fn go_on(learner: &mut Osac, updates: std::ops::Range<u64>) -> Vec<u32> {
    for version in updates {
        let mut world = World::new(4);
        let rows = collect(&mut world, &acting(learner, version), 25);
        learner.learn(rows, version).unwrap();
    }
    let snapshot = learner.snapshot(Uuid::nil(), 1, 1);
    snapshot.parameters.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn a_restored_learner_goes_on_exactly_and_without_its_replay_starts_to_fill_it() {
    let contract = off_policy(3, &[8]);
    let config = Config { prioritisation: crate::config::Prioritisation::Proportional, ..config() };
    let config = Config { update_to_data: 0.1, slack_steps: 640, ..config };
    let mut whole = learner(&contract, &config);
    go_on(&mut whole, 1..4);
    let (snapshot, saved, replay) = (whole.snapshot(Uuid::nil(), 1, 3), whole.save(), whole.save_replay().unwrap());
    let want = go_on(&mut whole, 4..7);

    let mut other = learner(&contract, &config);
    other.restore(&snapshot, &saved, Some(&replay)).unwrap();
    assert!(go_on(&mut other, 4..7) == want, "other bytes after a restore");

    let mut bare = learner(&contract, &Config { warmup_steps: 150, ..config.clone() });
    bare.restore(&snapshot, &saved, None).unwrap();
    let before: Vec<u32> = snapshot.parameters.iter().map(|value| value.to_bits()).collect();
    assert!(go_on(&mut bare, 4..5) == before, "100 steps do not fill a warm-up of 150");
    assert!(!bare.snapshot(Uuid::nil(), 1, 4).random_warmup, "the policy acts on");
    assert!(go_on(&mut bare, 5..6) != before);

    let told = learner(&contract, &Config { capacity: 300, ..config }).restore(&snapshot, &saved, Some(&replay));
    let told = told.unwrap_err().to_string();
    assert!(told.contains("this replay has 300") && told.contains("--without-replay"), "{told}");
    assert!(forgotten(1300, 20_000, 150).contains("up to 1300 recorded steps are forgotten"));
    assert!(forgotten(1_300_000, 20_000, 150).contains("up to 20000 recorded steps"));

    let mut saved = saved;
    saved.floats.get_mut("critics").unwrap()[3] = f32::NAN;
    assert!(other.restore(&snapshot, &saved, None).unwrap_err().to_string().contains("critics"));
    saved.floats.remove("critics");
    assert!(other.restore(&snapshot, &saved, None).unwrap_err().to_string().contains("another algorithm"));
}
