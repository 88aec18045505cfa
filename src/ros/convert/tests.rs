//! What is sent is what arrives; what is corrupted is refused or harmless, and never a panic.

use super::heading;
use crate::config::UpdateMode;
use crate::contract::{ActionMeaning, Architecture, Contract, Field, Network, Normaliser, Options, Snapshot, Told};
use crate::data::*;
use crate::error::Error;
use crate::robot::Robot;
use proptest::prelude::*;
use r2r::WrappedTypesupport;
use r2r::handoff::msg;
use r2r::{geometry_msgs, sensor_msgs};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng as Rng;
use serde_json::Value;
use std::fmt::Debug;
use std::sync::Arc;
use uuid::Uuid;

fn floats(rng: &mut Rng, count: usize) -> Vec<f32> {
    (0..count).map(|_| rng.random_range(-9.0..9.0)).collect()
}

fn stream(rng: &mut Rng) -> StreamId {
    StreamId { rollout: format!("/arm_{}", rng.random_range(0..9)), incarnation: rng.random() }
}

fn rows<const N: usize>(rng: &mut Rng, count: usize) -> Vec<[f64; N]> {
    (0..count).map(|_| std::array::from_fn(|_| rng.random_range(-3.0..3.0))).collect()
}

fn told(rng: &mut Rng) -> Told {
    Told { latency_ticks: rng.random_range(0..4), position_noise_rad: rng.random(), ..Told::default() }
}

fn states(rng: &mut Rng) -> ArmStates {
    let envs = rng.random_range(0..5);
    ArmStates {
        sim_life: rng.random(),
        tick: rng.random(),
        stamp_secs: f64::from(rng.random::<u16>()) / 64.0,
        bound: rng.random::<bool>().then(|| stream(rng)),
        position: rows(rng, envs),
        velocity: rows(rng, envs),
        object_pose: if rng.random() { rows(rng, envs) } else { Vec::new() },
        told: told(rng),
    }
}

fn commands(rng: &mut Rng) -> ArmCommands {
    let envs = rng.random_range(0..5);
    let operation = |rng: &mut Rng| [Operation::Step, Operation::Reset, Operation::Hold][rng.random_range(0..3)];
    ArmCommands {
        sim_life: rng.random(),
        tick: rng.random(),
        stream: stream(rng),
        operation: (0..envs).map(|_| operation(rng)).collect(),
        position: rows(rng, envs),
        seed: (0..envs).map(|_| rng.random()).collect(),
    }
}

fn any_end(rng: &mut Rng) -> End {
    [End::None, End::None, End::Terminated, End::Truncated, End::Aborted][rng.random_range(0..5)]
}

fn transition(rng: &mut Rng, action: usize) -> Transition {
    let forced = [Forced::Free, Forced::Init, Forced::MinSteps, Forced::MaxSteps, Forced::Preempted];
    Transition {
        version: rng.random(),
        episode: rng.random(),
        t: rng.random(),
        stamp_secs: rng.random(),
        option_prev: rng.random(),
        option: rng.random(),
        option_terminated: rng.random(),
        forced: forced[rng.random_range(0..5)],
        option_age: rng.random(),
        proposal: floats(rng, action),
        action: floats(rng, action),
        filtered: rng.random(),
        intervened: rng.random(),
        reward: rng.random(),
        end: any_end(rng),
        log_prob_action: rng.random(),
        log_prob_option: rng.random(),
        log_prob_termination: rng.random(),
        log_prob_mixture: rng.random(),
        termination_prob: rng.random(),
    }
}

fn fragment(rng: &mut Rng) -> Fragment {
    let (count, obs_size, action) = (rng.random_range(1..6), rng.random_range(1..5), rng.random_range(1..4));
    let steps: Vec<_> = (0..count).map(|_| transition(rng, action)).collect();
    let ends = steps.iter().enumerate().filter(|(_, step)| step.end != End::None).map(|(step, _)| step);
    let finals = ends.map(|step| Final { step, observation: floats(rng, obs_size) }).collect();
    let observations = floats(rng, (count + 1) * obs_size);
    Fragment { env: rng.random(), first: rng.random(), obs_size, steps, observations, finals }
}

fn episode(rng: &mut Rng) -> EpisodeStats {
    EpisodeStats {
        stamp_secs: f64::from(rng.random::<u16>()) / 64.0,
        rollout: stream(rng).rollout,
        env: rng.random(),
        episode: rng.random(),
        version: rng.random(),
        episode_return: rng.random(),
        length: rng.random(),
        end: any_end(rng),
        final_error: rng.random(),
        success: rng.random(),
        success_strict: rng.random(),
        first_success_step: rng.random(),
        option_steps: vec![rng.random(); 4],
        option_runs: vec![rng.random(); 4],
        forced_ends: rng.random(),
    }
}

fn batch(rng: &mut Rng) -> Batch {
    Batch {
        run: Uuid::from_u128(rng.random()),
        life: rng.random(),
        stream: stream(rng),
        seq: rng.random(),
        base: rng.random(),
        first_step: rng.random(),
        phase: rng.random(),
        contract_hash: rng.random(),
        fragments: (0..rng.random_range(1..4)).map(|_| fragment(rng)).collect(),
        episodes: (0..rng.random_range(0..3)).map(|_| episode(rng)).collect(),
    }
}

fn ack(rng: &mut Rng) -> Ack {
    Ack {
        run: Uuid::from_u128(rng.random()),
        life: rng.random(),
        stream: stream(rng),
        received: rng.random(),
        received_mask: rng.random(),
        consumed: rng.random(),
        durable: rng.random(),
        admitted: rng.random(),
        lost: rng.random(),
        refused: Refused {
            malformed: rng.random(),
            nonfinite: rng.random(),
            stale: rng.random(),
            contract: rng.random(),
        },
    }
}

fn learner_status(rng: &mut Rng) -> LearnerStatus {
    LearnerStatus {
        run: Uuid::from_u128(rng.random()),
        life: rng.random(),
        version: rng.random(),
        hash: rng.random(),
        update_mode: if rng.random() { UpdateMode::Sync } else { UpdateMode::Async },
        phase: rng.random(),
        quota: rng.random(),
        members: (0..rng.random_range(0..3)).map(|_| stream(rng)).collect(),
        paused: rng.random(),
        activity: "gathering".into(),
        updates: rng.random(),
        env_steps: rng.random(),
        admitted: rng.random(),
        lost: rng.random(),
        refused: rng.random(),
        dropped: rng.random(),
        queue_batches: rng.random(),
        gathered_steps: rng.random(),
    }
}

fn rollout_status(rng: &mut Rng) -> RolloutStatus {
    RolloutStatus {
        run: rng.random::<bool>().then(|| Uuid::from_u128(rng.random())),
        life: rng.random(),
        stream: stream(rng),
        version: rng.random(),
        hash: rng.random(),
        phase: rng.random(),
        steps: rng.random(),
        phase_steps: rng.random(),
        num_envs: rng.random(),
        leaving: rng.random(),
        state: "acting".into(),
        in_flight: rng.random(),
        queue_batches: rng.random(),
        aborted_episodes: rng.random(),
        refused_weights: rng.random(),
        held_ticks: rng.random(),
    }
}

fn joints(rng: &mut Rng) -> JointState {
    let count = rng.random_range(0..9);
    JointState {
        stamp_secs: f64::from(rng.random::<u16>()) / 64.0,
        names: (0..count).map(|joint| format!("panda_joint{joint}")).collect(),
        position: (0..count).map(|_| rng.random()).collect(),
        velocity: if rng.random() { (0..count).map(|_| rng.random()).collect() } else { Vec::new() },
    }
}

fn goal(rng: &mut Rng) -> GoalPose {
    GoalPose {
        stamp_secs: f64::from(rng.random::<u16>()) / 64.0,
        frame: "panda_link0".into(),
        position: rng.random(),
        orientation: [[1.0, 0.0, 0.0, 0.0], [0.5; 4], [0.0, 0.0, -1.0, 0.0]][rng.random_range(0..3)],
    }
}

fn option_state(rng: &mut Rng) -> OptionState {
    let options = rng.random_range(1..5);
    OptionState {
        stamp_secs: f64::from(rng.random::<u16>()) / 64.0,
        version: rng.random(),
        env: rng.random(),
        option: rng.random(),
        duration: rng.random(),
        switched: rng.random(),
        termination_prob: rng.random(),
        option_probs: floats(rng, options),
        option_values: floats(rng, options),
    }
}

fn snapshot(rng: &mut Rng) -> Snapshot {
    let contract = Contract {
        robot: Robot::Panda,
        joints: Robot::Panda.joint_names().to_vec(),
        task: "reach".into(),
        observation: vec![Field { name: "joint_position_rad".into(), len: 7 }, Field { name: "goal_m".into(), len: 3 }],
        action: ActionMeaning::JointDelta { scale_rad: rng.random() },
        control_period_secs: rng.random(),
        options: Options { count: rng.random_range(1..4), min_steps: 2, max_steps: 50 },
        network: Network { architecture: Architecture::OnPolicy, hidden: vec![rng.random_range(1..6); 2] },
        told: told(rng),
    };
    let parameters = floats(rng, contract.layout().len());
    Snapshot {
        run: Uuid::from_u128(rng.random()),
        life: rng.random(),
        version: rng.random(),
        updates: rng.random(),
        env_steps: rng.random(),
        random_warmup: rng.random(),
        normaliser: Normaliser {
            mean: floats(rng, 10),
            std: (0..10).map(|_| rng.random_range(0.1..9.0)).collect(),
            clip: rng.random_range(1.0..9.0),
            count: rng.random(),
        },
        contract: Arc::new(contract),
        parameters: parameters.into(),
    }
}

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
    let changes: [(&str, fn(&mut msg::PolicyWeights)); 10] = [
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
