//! Bags whose every answer is known: an arm that was really moved, and transitions that were really decided.

mod arms;
mod transitions;

use super::trace::Mean;
use super::*;
use crate::bag::Bag;
use crate::bag::tests::recording::{self, Recording};
use crate::config::{Config, Purpose, Seed};
use crate::contract::{Contract, Normaliser, Snapshot};
use crate::data::{Batch, End, EpisodeStats, Final, Fragment, GoalPose, JointState, OptionState, StreamId, Transition};
use crate::link::{Command, Preset};
use crate::node::policy::{Pilot, Settings};
use crate::option::Running;
use crate::policy::{Policy, Sampling};
use crate::robot::{ARM_DOF, READY, Robot};
use rand::RngExt as _;
use std::sync::Arc;
use uuid::Uuid;

const TICK: f64 = 1.0 / 60.0;
const GOAL: [f64; 3] = [0.45, 0.15, 0.4];

fn contract() -> Arc<Contract> {
    Arc::new(Config { hidden: vec![8], ..Config::default() }.contract().unwrap())
}

fn snapshot(version: u64, spread: f32) -> Arc<Snapshot> {
    let contract = contract();
    let mut rng = Seed::root(7).rng(0);
    let mut parameters: Vec<f32> = (0..contract.layout().len()).map(|_| rng.random_range(-0.3..0.3)).collect();
    let mut rng = Seed::root(version).rng(1);
    parameters.iter_mut().for_each(|parameter| *parameter += spread * rng.random_range(-1.0f32..1.0));
    Arc::new(Snapshot {
        run: Uuid::from_u128(3),
        life: 1,
        version,
        updates: 0,
        env_steps: 0,
        random_warmup: false,
        normaliser: Normaliser::identity(contract.obs_size(), 10.0),
        contract,
        parameters: parameters.into(),
    })
}

fn ns(secs: f64) -> i64 {
    1_000_000_000_000 + (secs * 1e9).round() as i64
}

/// Who leads the arm before it is armed, and what is recorded.
#[derive(Clone, Copy, Default)]
struct Scene {
    /// Where the policy wants to go is recorded.
    targets: bool,
    /// Seconds that are recorded before the arming; none: from the first decision behind it on.
    dry_secs: f64,
    /// Another moves the arm until then.
    another: bool,
    /// When it is brought to rest again [s].
    disarmed_secs: Option<f64>,
}

/// What an armed node said and heard from its first decision on, and the options that it published.
fn moved(targets: bool) -> (Recording, Vec<OptionState>) {
    recorded_arm(Scene { targets, ..Scene::default() })
}

/// What a node said and heard, and the options that it published. It is armed after 4 s, and its states end after 14 s.
fn recorded_arm(scene: Scene) -> (Recording, Vec<OptionState>) {
    const ARMED: u32 = 240;
    let settings = Settings {
        arm: Robot::Panda,
        preset: Preset::Isaac,
        prefix: String::new(),
        described: None,
        guard: Preset::Isaac.guard(),
        seed: Seed::root(5),
        sampling: Sampling::MeanAction,
        autostart: true,
    };
    let mut pilot = Pilot::new(settings).unwrap();
    pilot.weights(&snapshot(4, 0.0)).unwrap();
    let (frame, position, orientation) = ("panda_link0".to_owned(), GOAL, [1.0, 0.0, 0.0, 0.0]);
    pilot.goal(&GoalPose { stamp_secs: 0.0, frame, position, orientation }).unwrap();
    let mut bag = Recording::new();
    let topic = |bag: &mut Recording, name: &str, kind: &str| bag.topic(name, kind);
    let states = topic(&mut bag, "/joint_states", "sensor_msgs/msg/JointState");
    let commands = topic(&mut bag, "/joint_command", "sensor_msgs/msg/JointState");
    let goals = topic(&mut bag, "/goal_pose", "geometry_msgs/msg/PoseStamped");
    let options = topic(&mut bag, "/policy/option_state", "handoff/msg/OptionState");
    let weights = topic(&mut bag, "/policy_weights", "handoff/msg/PolicyWeights");
    bag.add(weights, ns(0.0), recording::weights(&snapshot(4, 0.0)));
    bag.add(goals, ns(0.0), recording::goal("panda_link0", GOAL));
    let lead = scene.targets.then(|| topic(&mut bag, "/policy/target", "sensor_msgs/msg/JointState"));
    let (mut position, mut velocity, mut said) = (READY, [0.0; ARM_DOF], Vec::new());
    let names = || Robot::Panda.joint_names().to_vec();
    let dry_from = ARMED - (scene.dry_secs / TICK).round() as u32;
    let mut recording = false;
    for tick in 1..=840 {
        let stamp = f64::from(tick) * TICK;
        pilot.clock(stamp, stamp);
        pilot.publishers(1);
        if tick == ARMED {
            pilot.arm(stamp).unwrap();
        }
        if scene.disarmed_secs.is_some_and(|at| (stamp - at).abs() < 0.5 * TICK) {
            pilot.disarm();
        }
        let state =
            JointState { stamp_secs: stamp, names: names(), position: position.to_vec(), velocity: velocity.to_vec() };
        let acts = pilot.states(&state, stamp).unwrap();
        recording |= dry_from <= tick && acts.option.is_some();
        // another's commands are stamped by its own clock, and end well before the arming
        let way = f64::from(tick).min(180.0) * TICK;
        let taught = (scene.another && tick <= 200).then(|| JointState {
            stamp_secs: stamp + 0.004,
            names: names(),
            position: (0..ARM_DOF).map(|joint| READY[joint] + 0.06 * (way + joint as f64).sin()).collect(),
            velocity: Vec::new(),
        });
        let own = match &acts.command {
            Some(Command::Positions(command)) => Some(command.clone()),
            _ => None,
        };
        let before = position;
        if let Some(command) = own.as_ref().or(taught.as_ref()) {
            position = std::array::from_fn(|joint| command.position[joint]);
        }
        velocity = std::array::from_fn(|joint| (position[joint] - before[joint]) / TICK);
        own.iter().chain(&taught).for_each(|command| pilot.led(command));
        if !recording {
            continue;
        }
        bag.add(states, ns(stamp), recording::joints(&state));
        for command in own.iter().chain(&taught) {
            bag.add(commands, ns(stamp + 0.003), recording::joints(command));
        }
        if let (Some(target), Some(lead)) = (&acts.target, lead) {
            bag.add(lead, ns(stamp + 0.001), recording::joints(target));
        }
        if let Some(option) = &acts.option {
            bag.add(options, ns(stamp + 0.002), recording::option(option));
            said.push(option.clone());
        }
    }
    (bag, said)
}

fn analysed(bag: &Recording, setup: &Setup) -> (Analysis, Vec<OptionState>) {
    let mut decided = Vec::new();
    let path = bag.write();
    let found = analyse(
        &Bag::open(&path).unwrap(),
        setup,
        &mut |decision: &Decision| decided.push(decision.clone()),
        &mut |_| {},
    );
    (found.unwrap(), decided)
}

fn present(snapshot: &Arc<Snapshot>) -> Option<Present> {
    Some(Present { from: "a run".into(), snapshot: snapshot.clone(), critic: true, rewards: None })
}

#[test]
fn what_an_armed_node_decided_is_decided_again() {
    let (bag, said) = moved(true);
    let (found, decided) = analysed(&bag, &Setup { seed: 5, ..Setup::default() });
    assert_eq!(decided.len(), said.len());
    // the reference is where the guard let the policy lead the arm: up to its leash that is where the policy wanted to go
    let same = decided
        .iter()
        .zip(&said)
        .filter(|(a, b)| (a.stamp_secs, a.option, a.duration) == (b.stamp_secs, b.option, b.duration));
    assert!(same.count() as f64 > 0.95 * said.len() as f64);
    let now = found.now.unwrap();
    assert!(now.agreement.unwrap() > 0.95);
    let ran: Vec<_> = now.options.iter().filter(|one| one.action.is_some()).collect();
    assert!(ran.len() > 1);
    for one in ran {
        assert!(one.action.unwrap().mean.abs() < 1e-9, "the same weights on the same states: {one:?}");
        assert!(one.transition.unwrap().mean < 0.01, "{one:?}");
    }
    assert!(found.notes.iter().any(|note| note.contains("--run RUN")), "{:?}", found.notes);
    let health = found.health;
    let latency = health.latency.unwrap();
    assert!((latency.median_secs - 0.003).abs() < 1e-4 && latency.commands > 500);
    // the arm is where it was told one tick ago
    assert!(health.tracking.iter().all(|joint| joint.largest_rad < 1e-9), "{:?}", health.tracking);
    assert_eq!(health.weights_lag.unwrap().mean, 0.0);
    let options = found.options.unwrap();
    assert_eq!(options.steps, said.len() as u64);
    let switches = said.iter().skip(1).filter(|option| option.switched).count() as u64;
    assert_eq!(options.switches, switches);
    let episodes = found.episodes.unwrap();
    assert_eq!((episodes.count, episodes.ends["the end of the bag"]), (1, 1));
    assert_eq!(episodes.length.unwrap().mean, said.len() as f64 - 1.0);
}

#[test]
fn states_and_commands_alone_with_a_run_and_a_goal_are_enough() {
    let (whole, _) = moved(false);
    let run = snapshot(9, 0.1);
    let setup = Setup { present: present(&run), goal: Some(GOAL), ..Setup::default() };
    let alone = whole.only(&["/joint_states", "/joint_command"]);
    let (found, decided) = analysed(&alone, &setup);
    let (with_goal, same) = analysed(&whole.only(&["/joint_states", "/joint_command", "/goal_pose"]), &setup);
    assert_eq!(decided, same);
    assert_eq!((found.decisions, with_goal.decisions), (decided.len() as u64, same.len() as u64));
    assert!(decided.len() > 190 && decided.iter().all(|decision| decision.version == 9));
    assert!(found.now.is_none() && found.critic.unwrap().td_errors.is_none());
    assert!(found.notes.iter().any(|note| note.contains("no option_state")), "{:?}", found.notes);
    let far = |goal| analysed(&alone, &Setup { goal: Some(goal), ..setup.clone() }).0.notes;
    let (near, far) = (far(GOAL), far([9.0, 9.0, 9.0]));
    assert!(!near.iter().any(|note| note.contains("out of reach")), "{near:?}");
    // √(9² + 9² + 8.667²) = 15.40
    assert!(far.iter().any(|note| note.contains("--goal 9,9,9 is out of reach: it lies 15.40 m")), "{far:?}");
    let (without, _) = analysed(&alone, &Setup { goal: None, ..setup });
    assert_eq!(without.decisions, 0);
    assert!(without.notes.iter().any(|note| note.contains("--goal X,Y,Z")), "{:?}", without.notes);
}

/// Steps that a policy decided on made-up observations, as one batch. Every 50th ends an episode.
fn transitions(acting: &Snapshot, steps: usize) -> Batch {
    transitions_by(acting, steps, Sampling::Stochastic)
}

fn transitions_by(acting: &Snapshot, steps: usize, sampling: Sampling) -> Batch {
    let (policy, size) = (Policy::new(acting).unwrap(), acting.contract.obs_size());
    let observations: Vec<f32> = (0..(steps + 1) * size).map(|at| (at as f32 * 0.37).sin()).collect();
    let (mut running, mut rows, mut finals) = (Running::default(), Vec::new(), Vec::new());
    for t in 0..steps {
        let mut draws = [Seed::root(2).of(Purpose::Decisions).rng(t as u64)];
        let observation = &observations[t * size..(t + 1) * size];
        let decided = policy.decide(observation, &[running], &mut draws, sampling).unwrap();
        let decision = decided.into_iter().next().unwrap();
        let ends = t % 50 == 49;
        running = if ends { Running::default() } else { decision.next };
        if ends {
            finals.push(Final { step: t, observation: vec![0.1; size] });
        }
        rows.push(Transition {
            version: acting.version,
            episode: t as u64 / 50,
            t: t as u32 % 50,
            stamp_secs: t as f64 * 0.05,
            choice: decision.choice,
            filtered: false,
            intervened: false,
            reward: 0.5,
            end: if ends { End::Terminated } else { End::None },
        });
    }
    Batch {
        run: acting.run,
        life: 1,
        stream: StreamId { rollout: "r0".into(), incarnation: 1 },
        seq: 0,
        base: 0,
        first_step: 0,
        phase: 0,
        contract_hash: acting.contract.hash(),
        fragments: vec![Fragment { env: 0, first: 0, obs_size: size, steps: rows, observations, finals }],
        episodes: vec![],
    }
}

fn recorded(batch: &Batch) -> Recording {
    let mut bag = Recording::new();
    let topic = bag.topic("/transitions", "handoff/msg/TransitionBatch");
    bag.add(topic, ns(1.0), recording::batch(batch));
    bag
}

#[test]
fn transitions_diverge_by_nothing_from_the_policy_that_made_them() {
    let acting = snapshot(1, 0.0);
    let bag = recorded(&transitions(&acting, 1000));
    let (found, _) =
        analysed(&bag, &Setup { present: present(&acting), against: present(&acting), ..Setup::default() });
    for divergence in [found.now.unwrap(), found.between.unwrap()] {
        for one in divergence.options.iter().filter(|one| one.transition.is_some()) {
            let (action, transition) = (one.action.unwrap(), one.transition.unwrap());
            assert!(action.rms < 1e-5 && transition.rms < 1e-5, "{one:?}");
        }
    }
    assert_eq!(found.options.unwrap().steps, 1000);
}

#[test]
fn what_was_sampled_and_what_is_worked_out_are_the_same_divergence() {
    let (acting, other) = (snapshot(1, 0.0), snapshot(2, 0.15));
    let bag = recorded(&transitions(&acting, 4000));
    let (sampled, _) = analysed(&bag, &Setup { present: present(&other), ..Setup::default() });
    let setup = Setup { present: present(&acting), against: present(&other), ..Setup::default() };
    let (exact, _) = analysed(&bag, &setup);
    let agree = |sampled: Mean, exact: Mean| {
        assert!(0.0 < exact.mean);
        // 1.96 standard errors are the margin; three of them are 1.53 margins
        assert!((sampled.mean - exact.mean).abs() < 2.0 * (sampled.margin + exact.margin), "{sampled:?} {exact:?}");
    };
    for (sampled, exact) in sampled.now.unwrap().options.iter().zip(&exact.between.unwrap().options) {
        agree(sampled.action.unwrap(), exact.action.unwrap());
        agree(sampled.transition.unwrap(), exact.transition.unwrap());
    }
}

/// The same with this log standard deviation of every action.
fn deviating(snapshot: &Snapshot, log_std: f32) -> Arc<Snapshot> {
    let mut parameters = snapshot.parameters.to_vec();
    let layout = snapshot.contract.layout();
    for segment in layout.segments.iter().filter(|segment| segment.name.ends_with(".log_std")) {
        parameters[segment.range()].fill(log_std);
    }
    Arc::new(Snapshot { parameters: parameters.into(), ..snapshot.clone() })
}

/// A policy whose outputs are its biases, the same in all states.
fn constant(mean: f32, over_options: [f32; 4], value: f32) -> Arc<Snapshot> {
    let mut snapshot = (*snapshot(1, 0.0)).clone();
    let layout = snapshot.contract.layout();
    let mut parameters = vec![0.0; layout.len()];
    for segment in &layout.segments {
        let range = segment.range();
        match segment.name.as_str() {
            name if name.starts_with("option.") && name.ends_with(".mean.bias") => parameters[range].fill(mean),
            "over_options.bias" => parameters[range].copy_from_slice(&over_options),
            "termination.bias" => parameters[range].fill(-6.0),
            "critic.value.bias" => parameters[range].fill(value),
            _ => {}
        }
    }
    snapshot.parameters = parameters.into();
    Arc::new(snapshot)
}

#[test]
fn divergences_and_td_errors_are_as_worked_out_by_hand() {
    let (acting, other) = (constant(0.0, [0.0; 4], 2.0), constant(0.3, [1.0, 0.0, 0.0, 0.0], 0.0));
    let bag = recorded(&transitions(&acting, 500));
    let rewards = Some(Rewards { gamma: 0.9, scale: 0.25, cost: 0.0 });
    let acting = Present { rewards, ..present(&acting).unwrap() };
    let (found, _) = analysed(&bag, &Setup { present: Some(acting), against: present(&other), ..Setup::default() });
    for one in &found.between.as_ref().unwrap().options {
        // 7 joints, means 0.3 apart, standard deviations 1: 7 · 0.09 / 2
        assert!((one.action.unwrap().mean - 0.315).abs() < 1e-6, "{one:?}");
    }
    // where nothing runs, p^ is P: log 4 + log of the logits' normaliser, less the mean logit, less log 4
    let at_starts = ((3.0 + 1f64.exp()) / 4.0).ln() - 0.25;
    let worst = &found.between.unwrap().worst[0];
    assert!((worst.score - (0.315 + at_starts)).abs() < 1e-6, "{worst:?}");
    let critic = found.critic.unwrap();
    assert!((critic.values.mean - 2.0).abs() < 1e-6);
    // 0.5 / 0.25 + 0.9 · 2 - 2 = 1.8, and 0 where nothing comes after: 10 of 500
    let errors = critic.td_errors.unwrap();
    assert!((errors.mean - 1.8 * 490.0 / 500.0).abs() < 1e-6, "{errors:?}");
}

#[test]
fn what_does_not_fit_is_refused_with_what_would_be_right() {
    let acting = snapshot(1, 0.0);
    let refusal = |bag: &Recording, setup: &Setup| {
        let path = bag.write();
        analyse(&Bag::open(&path).unwrap(), setup, &mut |_| {}, &mut |_| {}).unwrap_err().to_string()
    };
    let (whole, _) = moved(false);
    let said = refusal(&whole.only(&["/goal_pose"]), &Setup::default());
    assert!(said.contains("no joint states") && said.contains("configs/record.yaml"), "{said}");
    let fr3 = Arc::new(Config { hidden: vec![8], robot: Robot::Fr3, ..Config::default() }.contract().unwrap());
    let fr3 = Arc::new(Snapshot { contract: fr3, ..(*acting).clone() });
    let said = refusal(&whole, &Setup { present: present(&fr3), ..Setup::default() });
    assert!(said.contains("panda_") && said.contains("fr3_joint1"), "{said}");
    let said = refusal(&whole, &Setup { present: present(&acting), against: present(&fr3), ..Setup::default() });
    assert!(said.contains("robot"), "{said}");
    // transitions of another contract are left out, and said
    let mut batch = transitions(&acting, 50);
    batch.contract_hash = [9; 32];
    let (found, _) = analysed(&recorded(&batch), &Setup { present: present(&acting), ..Setup::default() });
    assert!(found.now.is_none() && found.notes.iter().any(|note| note.contains("50 transitions")), "{:?}", found.notes);
    // robots that are not looked at are said, beside transitions too
    let mut two = recorded(&transitions(&acting, 50));
    for name in ["/a/joint_states", "/b/joint_states"] {
        let topic = two.topic(name, "sensor_msgs/msg/JointState");
        let names = Robot::Panda.joint_names().to_vec();
        let state = JointState { stamp_secs: 1.0, names, position: READY.to_vec(), velocity: vec![0.0; ARM_DOF] };
        two.add(topic, ns(1.0), recording::joints(&state));
    }
    let (found, _) = analysed(&two, &Setup { present: present(&acting), ..Setup::default() });
    assert_eq!(found.options.unwrap().steps, 50);
    assert!(found.notes.iter().any(|note| note.contains("one of /a, /b")), "{:?}", found.notes);
    let said = refusal(&two, &Setup { namespace: Some("c".into()), ..Setup::default() });
    assert!(said.contains("no robot in the namespace /c; there is /a, /b"), "{said}");
    let (found, _) = analysed(&two, &Setup { namespace: Some("a".into()), ..Setup::default() });
    assert!(!found.notes.iter().any(|note| note.contains("/b")), "{:?}", found.notes);
    // without any policy there is still what happened
    let (found, _) = analysed(&recorded(&transitions(&acting, 50)), &Setup::default());
    assert_eq!(found.options.unwrap().steps, 50);
    assert!(found.notes[0].contains("no policy"));
}

#[test]
fn a_recording_that_is_made_twice_over_the_same_times_is_two_recordings() {
    let (mut bag, said) = moved(true);
    let (once, _) = analysed(&bag, &Setup { seed: 5, ..Setup::default() });
    bag.again();
    let (twice, decided) = analysed(&bag, &Setup { seed: 5, ..Setup::default() });
    assert_eq!(twice.survey.clock_jump_count, 1);
    let count = decided.len().abs_diff(2 * said.len());
    assert!(count <= 1, "{} of {}", decided.len(), 2 * said.len());
    let (one, two) = (once.health, twice.health);
    assert!(two.tracking.iter().all(|joint| joint.largest_rad < 1e-9), "{:?}", two.tracking);
    let (one, two) = (one.latency.unwrap(), two.latency.unwrap());
    assert_eq!((two.commands, two.longest_secs), (2 * one.commands, one.longest_secs));
    let (one, two) = (once.options.unwrap(), twice.options.unwrap());
    assert_eq!((two.steps, two.switches), (2 * one.steps, 2 * one.switches));
    assert!(twice.now.unwrap().agreement.unwrap() > 0.95);
    let episodes = twice.episodes.unwrap();
    assert_eq!((episodes.count, episodes.ends["time was set back"], episodes.ends["the end of the bag"]), (2, 1, 1));
}

#[test]
fn what_was_sent_twice_counts_once_and_what_is_left_out_not_at_all() {
    let acting = snapshot(1, 0.0);
    let setup = Setup { present: present(&acting), ..Setup::default() };
    let mut batch = transitions(&acting, 100);
    batch.episodes = vec![stats()];
    let mut bag = recorded(&batch);
    bag.again();
    let mut other = Batch { seq: 1, contract_hash: [9; 32], ..batch.clone() };
    bag.add(0, ns(2.0), recording::batch(&other));
    bag.add(0, ns(3.0), recording::batch(&other));
    (other.seq, other.contract_hash, other.fragments[0].obs_size) = (2, batch.contract_hash, 7);
    bag.add(0, ns(4.0), recording::batch(&other));
    let (found, _) = analysed(&bag, &setup);
    assert_eq!((found.source.as_str(), found.options.unwrap().steps), ("100 transitions", 100));
    assert_eq!(found.episodes.unwrap().count, 1);
    let left: Vec<&String> = found.notes.iter().filter(|note| note.contains("left out")).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(left.iter().all(|note| note.starts_with("100 transitions")), "{left:?}");
    let read = super::logged::transitions(&[bag.write()], &acting.contract, &[]).unwrap();
    let malformed = read.left_out.iter().find(|(reason, _)| reason.contains("observations has"));
    assert_eq!(malformed.map(|(_, count)| *count), Some(100), "{:?}", read.left_out);
}

fn stats() -> EpisodeStats {
    EpisodeStats {
        stamp_secs: 1.0,
        rollout: "r0".into(),
        env: 0,
        episode: 0,
        version: 1,
        episode_return: -3.0,
        length: 50,
        end: End::Truncated,
        final_error: 0.1,
        success: true,
        success_strict: false,
        first_success_step: 40,
        option_steps: vec![50, 0, 0, 0],
        option_runs: vec![1, 0, 0, 0],
        forced_ends: 0,
    }
}

#[test]
fn statistics_of_episodes_are_read_where_nothing_else_tells_of_them() {
    let (whole, _) = moved(false);
    let with_stats = |mut bag: Recording| {
        let topic = bag.topic("/r0/episode_stats", "handoff/msg/EpisodeStats");
        bag.add(topic, ns(20.0), crate::bag::encode::stats(&stats()));
        analysed(&bag, &Setup::default()).0.episodes
    };
    let found = with_stats(whole.only(&["/joint_states", "/joint_command"])).unwrap();
    assert_eq!((found.count, found.success, found.episode_return.unwrap().mean), (1, 1, -3.0));
    // the attempts at its goal are these episodes already
    assert_eq!(with_stats(whole).unwrap().ends.keys().copied().collect::<Vec<_>>(), ["the end of the bag"]);
    let acting = snapshot(1, 0.0);
    assert_eq!(with_stats(recorded(&Batch { episodes: vec![stats()], ..transitions(&acting, 50) })).unwrap().count, 1);
}

#[test]
fn options_that_are_never_used_are_listed_and_the_one_that_has_all_is_said() {
    let mut acting = (*constant(0.0, [60.0, 0.0, 0.0, 0.0], 0.0)).clone();
    acting.version = 2;
    let bag = recorded(&transitions(&acting, 100));
    let (found, _) = analysed(&bag, &Setup { present: present(&Arc::new(acting)), ..Setup::default() });
    let steps: Vec<u64> = found.options.unwrap().options.iter().map(|one| one.steps).collect();
    assert_eq!(steps, [100, 0, 0, 0]);
    assert!(found.attention.iter().any(|attention| attention.sentence == "option 0 has 100 % of the ticks"));
}

#[test]
fn a_critic_that_has_not_learned_says_nothing() {
    let acting = constant(0.0, [0.0; 4], 2.0);
    let bag = recorded(&transitions(&acting, 50));
    let clone = Present { critic: false, ..present(&acting).unwrap() };
    let (found, _) = analysed(&bag, &Setup { present: Some(clone), ..Setup::default() });
    assert!(found.critic.is_none() && found.now.is_some());
    assert!(found.notes.iter().any(|note| note.contains("the critic of a clone")), "{:?}", found.notes);
}

#[test]
fn steps_are_at_their_stamps_where_these_are_of_the_recorders_clock() {
    let acting = snapshot(1, 0.0);
    let fragment = &transitions(&acting, 100).fragments[0]; // stamps 0, 0.05, ..., 4.95
    let times = |at_secs, since_secs, start_ns| {
        let at = super::rows::times(fragment, at_secs, since_secs, start_ns);
        [at(0), at(49), at(99)]
    };
    let near =
        |found: [f64; 3], want: [f64; 3]| found.iter().zip(want).all(|(found, want)| (found - want).abs() < 1e-9);
    // as `eval` writes them: received with the last step, the bag's first message at 0; nothing was received before
    assert!(near(times(4.95, 4.95, 0), [0.0, 2.45, 4.95]));
    // an arm: sent 0.3 s later, the bag began at 0.2 s
    assert!(near(times(5.05, 1.0, 200_000_000), [0.0, 2.25, 4.75]));
    // a simulator of its own time beside a wall clock: between two receipts
    assert!(near(times(12.0, 11.0, 1_700_000_000_000_000_000), [11.01, 11.5, 12.0]));
}
