//! What is sent is what arrives; what is corrupted is refused or harmless, and never a panic.

mod samples;

use super::heading;
use crate::contract::Snapshot;
use crate::data::*;
use crate::error::Error;
use proptest::prelude::*;
use r2r::WrappedTypesupport;
use r2r::handoff::msg;
use r2r::{geometry_msgs, sensor_msgs};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng as Rng;
use samples::*;
use serde_json::Value;
use std::fmt::Debug;
use uuid::Uuid;

/// There, over ROS's own serialisation, and back.
fn survives<D, M>(data: &D)
where
    D: PartialEq + Debug + TryFrom<M, Error = Error>,
    M: WrappedTypesupport + for<'a> From<&'a D>,
{
    let bytes = M::from(data).to_serialized_bytes().unwrap();
    let message = M::from_serialized_bytes(&bytes).unwrap();
    assert_eq!(&D::try_from(message).unwrap(), data);
}

/// One random place of a message, changed at random.
fn corrupt(rng: &mut Rng, value: &mut Value) {
    match value {
        Value::Object(map) => {
            let place = rng.random_range(0..map.len());
            if let Some(inner) = map.values_mut().nth(place) {
                corrupt(rng, inner);
            }
        }
        Value::Array(items) if !items.is_empty() && rng.random_range(0..3) > 0 => {
            let place = rng.random_range(0..items.len());
            corrupt(rng, &mut items[place]);
        }
        Value::Array(items) => match (rng.random_range(0..3), items.first().cloned()) {
            (0, Some(item)) => items.push(item),
            (1, _) => items.clear(),
            _ => drop(items.pop()),
        },
        Value::Bool(flag) => *flag = !*flag,
        Value::String(text) => *text = ["", "x", "{}", "[[", "\u{1f916}"][rng.random_range(0..5)].into(),
        _ => {
            let numbers = [0, 1, 2, 3, 4, 5, 255, u64::from(u32::MAX), u64::MAX, rng.random()];
            *value = numbers[rng.random_range(0..numbers.len())].into();
        }
    }
}

/// What comes of up to four corrupted places, if it is still accepted.
fn corrupted<D, M>(rng: &mut Rng, data: &D) -> Option<D>
where
    D: TryFrom<M, Error = Error>,
    M: WrappedTypesupport + for<'a> From<&'a D>,
{
    let mut value = serde_json::to_value(M::from(data)).unwrap();
    for _ in 0..rng.random_range(1..5) {
        corrupt(rng, &mut value);
    }
    // a number that the field cannot hold is no message
    D::try_from(serde_json::from_value::<M>(value).ok()?).ok()
}

/// Whatever of a corrupted message is accepted means what it says.
fn withstands<D, M>(rng: &mut Rng, data: &D)
where
    D: PartialEq + Debug + TryFrom<M, Error = Error>,
    M: WrappedTypesupport + for<'a> From<&'a D>,
{
    if let Some(accepted) = corrupted::<D, M>(rng, data) {
        assert_eq!(D::try_from(M::from(&accepted)).unwrap(), accepted);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn what_is_sent_arrives(seed: u64) {
        let rng = &mut Rng::seed_from_u64(seed);
        survives::<_, msg::ArmStates>(&states(rng));
        survives::<_, msg::ArmCommands>(&commands(rng));
        survives::<_, msg::TransitionBatch>(&batch(rng));
        survives::<_, msg::EpisodeStats>(&episode(rng));
        survives::<_, msg::PolicyWeights>(&snapshot(rng));
        survives::<_, msg::TransitionAck>(&ack(rng));
        survives::<_, msg::LearnerStatus>(&learner_status(rng));
        survives::<_, msg::RolloutStatus>(&rollout_status(rng));
        survives::<_, msg::OptionState>(&option_state(rng));
        survives::<_, sensor_msgs::msg::JointState>(&joints(rng));
        survives::<_, geometry_msgs::msg::PoseStamped>(&goal(rng));
    }

    #[test]
    fn corruption_is_refused_or_harmless(seed: u64) {
        let rng = &mut Rng::seed_from_u64(seed);
        let (states, commands, batch, snapshot) = (states(rng), commands(rng), batch(rng), snapshot(rng));
        withstands::<_, msg::ArmStates>(rng, &states);
        withstands::<_, msg::ArmCommands>(rng, &commands);
        withstands::<_, msg::TransitionBatch>(rng, &batch);
        withstands::<_, msg::PolicyWeights>(rng, &snapshot);
        let (ack, learner, rollout) = (ack(rng), learner_status(rng), rollout_status(rng));
        withstands::<_, msg::TransitionAck>(rng, &ack);
        withstands::<_, msg::LearnerStatus>(rng, &learner);
        withstands::<_, msg::RolloutStatus>(rng, &rollout);
        let (option_state, joints, goal) = (option_state(rng), joints(rng), goal(rng));
        withstands::<_, msg::OptionState>(rng, &option_state);
        withstands::<_, sensor_msgs::msg::JointState>(rng, &joints);
        if let Some(goal) = corrupted::<_, geometry_msgs::msg::PoseStamped>(rng, &goal) {
            let norm: f64 = goal.orientation.iter().map(|part| part * part).sum();
            prop_assert!((norm - 1.0).abs() < 1e-12, "{goal:?}");
        }
    }
}

/// Every array of an object, one entry shorter and one longer; returns those that are still accepted.
fn accepted_lengths<D: TryFrom<M>, M: WrappedTypesupport>(message: &M) -> Vec<String> {
    let value = serde_json::to_value(message).unwrap();
    let mut accepted = Vec::new();
    for (name, items) in value.as_object().unwrap() {
        let Value::Array(items) = items else { continue };
        let (mut shorter, mut longer) = (items.clone(), items.clone());
        shorter.pop();
        longer.push(items[0].clone());
        for other in [shorter, longer] {
            let mut value = value.clone();
            value[name] = other.into();
            if D::try_from(serde_json::from_value(value).unwrap()).is_ok() {
                accepted.push(name.clone());
            }
        }
    }
    accepted
}

#[test]
fn every_array_must_fit_the_stated_sizes() {
    let rng = &mut Rng::seed_from_u64(1);
    let mut fragment = fragment(rng);
    fragment.steps[0].end = End::Truncated;
    fragment.finals = vec![Final { step: 0, observation: floats(rng, fragment.obs_size) }];
    fragment.steps.iter_mut().skip(1).for_each(|step| step.end = End::None);
    assert_eq!(accepted_lengths::<Fragment, _>(&msg::Fragment::from(&fragment)), [""; 0]);

    let commands =
        ArmCommands { operation: vec![Operation::Hold], position: rows(rng, 1), seed: vec![3], ..commands(rng) };
    assert_eq!(accepted_lengths::<ArmCommands, _>(&msg::ArmCommands::from(&commands)), [""; 0]);

    let states = ArmStates { position: rows(rng, 2), velocity: rows(rng, 2), object_pose: rows(rng, 2), ..states(rng) };
    assert_eq!(accepted_lengths::<ArmStates, _>(&msg::ArmStates::from(&states)), [""; 0]);

    let status = LearnerStatus { members: vec![stream(rng)], ..learner_status(rng) };
    assert_eq!(accepted_lengths::<LearnerStatus, _>(&msg::LearnerStatus::from(&status)), [""; 0]);
    assert_eq!(accepted_lengths::<RolloutStatus, _>(&msg::RolloutStatus::from(&rollout_status(rng))), [""; 0]);
    assert_eq!(accepted_lengths::<OptionState, _>(&msg::OptionState::from(&option_state(rng))), [""; 0]);

    assert_eq!(accepted_lengths::<Snapshot, _>(&msg::PolicyWeights::from(&snapshot(rng))), [""; 0]);
}

#[test]
fn joints_and_goals_that_mean_nothing_are_refused() {
    let rng = &mut Rng::seed_from_u64(6);
    let names = ["a".to_owned(), "b".to_owned()].to_vec();
    let joints = JointState { names, position: vec![1.0, 2.0], velocity: vec![3.0], ..joints(rng) };
    let error = JointState::try_from(sensor_msgs::msg::JointState::from(&joints)).unwrap_err().to_string();
    assert_eq!(error, "velocity has 1 entries; 2 are right");
    let joints = JointState { position: vec![1.0, f64::NAN], velocity: Vec::new(), ..joints };
    let error = JointState::try_from(sensor_msgs::msg::JointState::from(&joints)).unwrap_err().to_string();
    assert_eq!(error, "position holds NaN; finite numbers are right");

    let mut pose = geometry_msgs::msg::PoseStamped::from(&goal(rng));
    pose.pose.orientation = geometry_msgs::msg::Quaternion { x: 0.0, y: 0.0, z: 2.0, w: 0.0 };
    assert_eq!(GoalPose::try_from(pose.clone()).unwrap().orientation, [0.0, 0.0, 0.0, 1.0]);
    pose.pose.orientation.z = 0.0;
    let error = GoalPose::try_from(pose).unwrap_err().to_string();
    assert!(error.contains("quaternion of length 0"), "{error}");
}

#[test]
fn every_change_of_weights_breaks_a_hash() {
    let weights = msg::PolicyWeights::from(&snapshot(&mut Rng::seed_from_u64(2)));
    type Change = fn(&mut msg::PolicyWeights);
    let changes: [(&str, Change); 10] = [
        ("run", |weights| weights.run = Uuid::nil().to_string()),
        ("life", |weights| weights.life ^= 1),
        ("version", |weights| weights.version ^= 1),
        ("updates", |weights| weights.updates ^= 1),
        ("env_steps", |weights| weights.env_steps ^= 1),
        ("random_warmup", |weights| weights.random_warmup ^= true),
        ("contract", |weights| weights.contract = weights.contract.replace("reach", "leach")),
        ("normaliser_clip", |weights| weights.normaliser_clip *= 1.5),
        ("normaliser_std", |weights| weights.normaliser_std[3] *= 1.5),
        ("parameters", |weights| weights.parameters.swap(0, 1)),
    ];
    assert!(Snapshot::try_from(weights.clone()).is_ok());
    for (field, change) in changes {
        let mut changed = weights.clone();
        change(&mut changed);
        let error = Snapshot::try_from(changed).expect_err(field).to_string();
        assert!(error.contains("hash is"), "{field}: {error}");
    }
}

#[test]
fn a_contract_of_absurd_size_is_refused_before_it_is_laid_out() {
    let mut weights = msg::PolicyWeights::from(&snapshot(&mut Rng::seed_from_u64(3)));
    let mut contract: Value = serde_json::from_str(&weights.contract).unwrap();
    contract["options"]["count"] = (1_u64 << 60).into();
    weights.contract = contract.to_string();
    let error = Snapshot::try_from(weights).unwrap_err().to_string();
    assert!(error.contains("1152921504606846976 options; at most 254 are right"), "{error}");
}

#[test]
fn refusals_name_the_place_the_value_and_what_would_be_right() {
    let rng = &mut Rng::seed_from_u64(4);
    let mut message = msg::Fragment::from(&fragment(rng));
    message.env = 5;
    message.reward.push(0.0);
    let want = message.num_steps;
    let error = Fragment::try_from(message).unwrap_err().to_string();
    assert_eq!(error, format!("fragment of environment 5: reward has {} entries; {want} are right", want + 1));

    let mut message = msg::ArmCommands::from(&commands(rng));
    message.dof = 7;
    let error = ArmCommands::try_from(message).unwrap_err().to_string();
    assert_eq!(error, "a row has 7 joints; 9 are right: the arm, then the fingers");
}

#[test]
fn a_malformed_batch_keeps_its_heading() {
    let batch = batch(&mut Rng::seed_from_u64(5));
    let mut message = msg::TransitionBatch::from(&batch);
    message.fragments[0].end[0] = 77;
    let error = Batch::try_from(message.clone()).unwrap_err().to_string();
    assert!(error.ends_with("end has the unknown code 77"), "{error}");
    assert_eq!(heading(&message).unwrap(), Batch { fragments: Vec::new(), episodes: Vec::new(), ..batch });
    message.contract_hash.pop();
    assert_eq!(heading(&message).unwrap_err().to_string(), "contract_hash has 31 bytes; 32 are right");
}
