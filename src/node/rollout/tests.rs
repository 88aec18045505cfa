//! The rollout against arms that go exactly where they are told.

use super::*;
use crate::config::{Config, UpdateMode};
use crate::contract::Normaliser;
use crate::data::{Batch, End, Follow, Forced, GoalPose, Hold, LearnerStatus, Outbox, check};
use rand::RngExt as _;
use std::time::Duration;
use uuid::Uuid;

const ENVS: usize = 3;

/// Arms that are where they were told to be one tick ago.
struct Ideal(ArmStates);

impl Ideal {
    fn new(sim_life: u64) -> Self {
        Self(ArmStates {
            sim_life,
            tick: 0,
            stamp_secs: 0.0,
            bound: None,
            position: vec![[0.0; STATE_DOF]; ENVS],
            velocity: vec![[0.0; STATE_DOF]; ENVS],
            object_pose: vec![],
            told: Default::default(),
        })
    }

    fn step(&mut self, commands: &ArmCommands) {
        assert_eq!((commands.sim_life, commands.tick), (self.0.sim_life, self.0.tick));
        let moved = commands.operation.iter().any(|&operation| operation != Operation::Hold);
        for env in 0..ENVS {
            if commands.operation[env] != Operation::Hold {
                self.0.position[env] = commands.position[env];
            }
        }
        if moved {
            self.0.tick += 1;
            self.0.stamp_secs += 0.05;
        }
    }
}

pub(super) fn contract() -> Arc<Contract> {
    Arc::new(Config { hidden: vec![8], ..Config::default() }.contract().unwrap())
}

pub(super) fn snapshot(version: u64) -> Arc<Snapshot> {
    let contract = contract();
    let mut rng = Seed::root(version).rng(0);
    let parameters: Vec<f32> = (0..contract.layout().len()).map(|_| rng.random_range(-0.3..0.3)).collect();
    let normaliser = Normaliser::identity(contract.obs_size(), 10.0);
    Arc::new(Snapshot {
        run: Uuid::nil(),
        life: 1,
        version,
        updates: 0,
        env_steps: 0,
        random_warmup: false,
        contract,
        normaliser,
        parameters: parameters.into(),
    })
}

/// An asynchronous learner that has published these weights.
pub(super) fn learner_status(weights: &Snapshot) -> LearnerStatus {
    LearnerStatus {
        run: weights.run,
        life: weights.life,
        version: weights.version,
        hash: weights.hash(),
        update_mode: UpdateMode::Async,
        phase: 0,
        quota: 0,
        members: vec![],
        paused: false,
        activity: String::new(),
        updates: 0,
        env_steps: 0,
        admitted: 0,
        lost: 0,
        refused: Default::default(),
        dropped: 0,
        queue_batches: 0,
        gathered_steps: 0,
    }
}

fn rollout() -> Rollout {
    let stream = StreamId { rollout: "r".into(), incarnation: 1 };
    let mut rollout = Rollout::new(contract(), ENVS, stream, Seed::root(1), Sampling::Stochastic).unwrap();
    rollout.install(snapshot(1)).unwrap();
    rollout
}

const ACT: Permit<'static> = Permit::Act(&|_| true);

fn tick(rollout: &mut Rollout, arms: &mut Ideal, permit: Permit<'_>) -> ArmCommands {
    rollout.arrive(&arms.0).unwrap();
    let commands = rollout.answer(&arms.0, permit).unwrap();
    arms.step(&commands);
    commands
}

/// Takes what was recorded and lets the learner's own check read it.
fn take(rollout: &mut Rollout) -> (Vec<Fragment>, Vec<EpisodeStats>) {
    let (fragments, episodes) = rollout.take();
    let batch = Batch {
        run: Uuid::nil(),
        life: 1,
        stream: rollout.stream.clone(),
        seq: 0,
        base: 0,
        first_step: 0,
        phase: 0,
        contract_hash: contract().hash(),
        fragments,
        episodes,
    };
    check(&batch, &contract(), &contract().hash()).unwrap();
    (batch.fragments, batch.episodes)
}

#[test]
fn each_step_leads_where_the_arm_went() {
    let (mut rollout, mut arms) = (rollout(), Ideal::new(1));
    for _ in 0..120 {
        tick(&mut rollout, &mut arms, ACT);
    }
    let (fragments, episodes) = take(&mut rollout);
    assert_eq!(fragments.len(), ENVS);
    assert_eq!(episodes.len(), 2 * ENVS);
    for fragment in &fragments {
        for (index, step) in fragment.steps.iter().enumerate() {
            let (now, next) = (fragment.observation(index), fragment.next_observation(index));
            for joint in 0..ARM_DOF {
                // Ideal arms: the next position is the present one moved by the action.
                let moved = next[joint] - now[joint];
                assert!(
                    (moved - 0.05 * step.choice.action[joint]).abs() < 1e-5,
                    "step {index} joint {joint} moved {moved}"
                );
            }
            assert_eq!(step.end == End::Truncated, step.t == 49);
            assert_eq!(step.choice.forced == Forced::Init, step.t == 0);
            let goal = &next[24..27];
            assert_eq!(goal, &now[24..27], "the goal stays within an episode");
            let distance = (0..3).map(|axis| (next[24 + axis] - next[21 + axis]).powi(2)).sum::<f32>().sqrt();
            let effort: f32 = step.choice.action.iter().map(|value| value * value).sum();
            let near = |scale: f32| 0.5 * (-(distance / scale).powi(2)).exp();
            let reward = -distance - 0.005 * effort + near(0.05) + near(0.01);
            assert!((step.reward - reward).abs() < 1e-4, "{} is not {reward}", step.reward);
        }
    }
    for stats in &episodes {
        assert_eq!((stats.length, stats.end), (50, End::Truncated));
        assert_eq!(stats.option_steps.iter().sum::<u32>(), 50);
    }
}

#[test]
fn a_state_that_no_arm_has_aborts_its_environment_alone() {
    [f64::NAN, f64::INFINITY, -1e4].into_iter().for_each(breaks); // the last one no arm can reach
}

fn breaks(broken: f64) {
    let (mut rollout, mut arms) = (rollout(), Ideal::new(1));
    for _ in 0..11 {
        tick(&mut rollout, &mut arms, ACT);
    }
    // Ten commands were a reset and nine steps; the tenth step's outcome is broken in one environment.
    let good = std::mem::replace(&mut arms.0.position[1][3], broken);
    let commands = tick(&mut rollout, &mut arms, ACT);
    assert_eq!(commands.operation, [Operation::Step, Operation::Reset, Operation::Step]);
    assert_ne!(arms.0.position[1][3], good);
    for _ in 0..5 {
        tick(&mut rollout, &mut arms, ACT);
    }
    let (fragments, episodes) = take(&mut rollout);
    let broken = &fragments[1];
    let last = broken.steps.iter().position(|step| step.end == End::Aborted).unwrap();
    assert_eq!(last, 8, "the broken step itself is dropped");
    assert_eq!(broken.steps[last + 1].episode, 1);
    assert!(broken.observations.iter().all(|value| value.is_finite()));
    assert!(fragments[0].steps.iter().chain(&fragments[2].steps).all(|step| step.end == End::None));
    assert_eq!(episodes.len(), 1);
    assert_eq!((episodes[0].env, episodes[0].end, episodes[0].length), (1, End::Aborted, 9));
    assert_eq!(rollout.counters().aborted_episodes, 1);
}

#[test]
fn a_new_simulator_ends_every_fragment_as_aborted() {
    let (mut rollout, mut arms) = (rollout(), Ideal::new(1));
    for _ in 0..8 {
        tick(&mut rollout, &mut arms, ACT);
    }
    let mut arms = Ideal::new(2);
    let commands = tick(&mut rollout, &mut arms, ACT);
    assert!(commands.operation.iter().all(|&operation| operation == Operation::Reset));
    for _ in 0..4 {
        tick(&mut rollout, &mut arms, ACT);
    }
    for fragment in take(&mut rollout).0 {
        let ends: Vec<_> = fragment.steps.iter().map(|step| (step.episode, step.end)).collect();
        assert_eq!(ends.iter().filter(|(_, end)| *end == End::Aborted).count(), 1);
        assert!(ends.windows(2).all(|pair| pair[0].0 == pair[1].0 || pair[0].1 == End::Aborted));
    }
}

#[test]
fn a_repeated_tick_gets_the_same_answer_and_records_nothing() {
    let (mut rollout, mut arms) = (rollout(), Ideal::new(1));
    for _ in 0..5 {
        tick(&mut rollout, &mut arms, ACT);
    }
    let states = arms.0.clone();
    let first = tick(&mut rollout, &mut arms, ACT);
    assert_eq!(rollout.arrive(&states).unwrap(), [] as [usize; 0]);
    assert_eq!(rollout.answer(&states, ACT).unwrap(), first);
}

#[test]
fn a_leash_keeps_the_reference_by_an_arm_that_does_not_follow() {
    let (mut rollout, mut arms) = (rollout().leashed(Some(0.1)), Ideal::new(1));
    tick(&mut rollout, &mut arms, ACT);
    let start = arms.0.position.clone();
    let mut farthest = 0.0_f64;
    for _ in 0..40 {
        let commands = tick(&mut rollout, &mut arms, ACT);
        for (commanded, start) in commands.position.iter().zip(&start).take(ENVS) {
            for (commanded, start) in commanded.iter().zip(start).take(ARM_DOF) {
                farthest = farthest.max((commanded - start).abs());
            }
        }
        arms.0.position.clone_from(&start);
    }
    assert!((farthest - 0.1).abs() < 1e-12, "{farthest}");
}

#[test]
fn holding_changes_no_decision() {
    let run = |hold: bool| {
        let (mut rollout, mut arms) = (rollout(), Ideal::new(1));
        for index in 0..40 {
            if hold && index % 3 == 0 {
                let commands = tick(&mut rollout, &mut arms, Permit::Hold);
                assert!(commands.operation.iter().all(|&operation| operation == Operation::Hold));
            }
            tick(&mut rollout, &mut arms, ACT);
        }
        take(&mut rollout).0
    };
    assert_eq!(run(true), run(false));
}

#[test]
fn an_environment_at_its_quota_holds_while_the_others_step() {
    let (mut rollout, mut arms) = (rollout(), Ideal::new(1));
    for _ in 0..10 {
        tick(&mut rollout, &mut arms, Permit::Act(&|env| env != 2));
    }
    let fragments = take(&mut rollout).0;
    assert_eq!(fragments.iter().map(|fragment| fragment.env).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn fragments_of_one_environment_follow_one_another() {
    let (mut rollout, mut arms) = (rollout(), Ideal::new(1));
    let mut rows: Vec<Fragment> = Vec::new();
    for _ in 0..7 {
        for _ in 0..9 {
            tick(&mut rollout, &mut arms, ACT);
        }
        rows.extend(take(&mut rollout).0.into_iter().filter(|fragment| fragment.env == 0));
    }
    for pair in rows.windows(2) {
        assert_eq!(pair[0].first + pair[0].steps.len() as u64, pair[1].first);
        let ended = pair[0].steps.last().unwrap().end != End::None;
        assert!(ended || pair[0].observation(pair[0].steps.len()) == pair[1].observation(0));
    }
}

#[test]
fn weights_of_another_contract_are_refused_and_the_last_good_ones_stay() {
    let mut rollout = rollout();
    let other = Config { hidden: vec![9], ..Config::default() }.contract().unwrap();
    let mut wrong = (*snapshot(2)).clone();
    wrong.contract = Arc::new(other);
    let sentence = rollout.install(Arc::new(wrong)).unwrap_err().to_string();
    assert!(sentence.contains("[8]") && sentence.contains("[9]"), "{sentence}");
    let mut broken = (*snapshot(3)).clone();
    broken.parameters = broken.parameters.iter().map(|_| f32::NAN).collect();
    assert!(rollout.install(Arc::new(broken)).is_err());
    assert_eq!((rollout.snapshot().unwrap().version, rollout.counters().refused_weights), (1, 2));
}

#[test]
fn a_simulator_of_another_size_is_refused_with_both_numbers() {
    let mut states = Ideal::new(1).0;
    states.position.pop();
    let sentence = rollout().arrive(&states).unwrap_err().to_string();
    assert!(sentence.contains('2') && sentence.contains('3'), "{sentence}");
}

fn agent(evaluates: bool) -> Agent {
    let stream = StreamId { rollout: "r".into(), incarnation: 1 };
    let sampling = if evaluates { Sampling::MeanAction } else { Sampling::Stochastic };
    let rollout = Rollout::new(contract(), ENVS, stream.clone(), Seed::root(1), sampling).unwrap();
    let (follow, outbox) = (Follow::new(stream.clone(), ENVS, None), Outbox::new(stream, 4, Hold::Consumed));
    if evaluates { Agent::evaluating(rollout, follow, outbox) } else { Agent::new(rollout, follow, outbox, 8) }
}

fn goal(frame: &str) -> GoalPose {
    GoalPose { stamp_secs: 0.0, frame: frame.into(), position: [0.4, -0.2, 0.3], orientation: [1.0, 0.0, 0.0, 0.0] }
}

#[test]
fn an_evaluation_goes_where_it_is_told_and_ships_nothing() {
    let (mut agent, mut arms) = (agent(true), Ideal::new(1));
    agent.weights(&snapshot(1), Duration::ZERO);
    agent.goal(&goal("panda_link0")).unwrap();
    let mut ended = Vec::new();
    for _ in 0..110 {
        let commands = agent.states(&arms.0).unwrap();
        arms.step(&commands);
        ended.extend(agent.episodes());
        assert_eq!(agent.due(Duration::ZERO), []);
    }
    assert_eq!(ended.len(), 2 * ENVS);
    for episode in &agent.rollout.episodes {
        assert_eq!(episode.observation[24..27], [0.4, -0.2, 0.3]);
    }
    assert_eq!(agent.status().state, "evaluating");
}

#[test]
fn a_goal_is_refused_in_another_frame_and_while_training() {
    let sentence = agent(true).goal(&goal("world")).unwrap_err().to_string();
    assert!(sentence.contains("world") && sentence.contains("panda_link0"), "{sentence}");
    let sentence = agent(false).goal(&goal("panda_link0")).unwrap_err().to_string();
    assert!(sentence.contains("trains"), "{sentence}");
}

#[test]
fn what_the_sim_does_for_another_is_not_recorded() {
    let (mut agent, mut arms) = (agent(true), Ideal::new(1));
    agent.weights(&snapshot(1), Duration::ZERO);
    for _ in 0..6 {
        let commands = agent.states(&arms.0).unwrap();
        arms.step(&commands);
    }
    arms.0.bound = Some(StreamId { rollout: "other".into(), incarnation: 7 });
    let commands = agent.states(&arms.0).unwrap();
    assert!(commands.operation.iter().all(|&operation| operation == Operation::Hold));
    let status = agent.status();
    assert!(status.leaving && status.state == "waiting for the sim", "{status:?}");
    let ended = agent.episodes();
    assert!(ended.len() == ENVS && ended.iter().all(|stats| stats.end == End::Aborted), "{ended:?}");
    arms.0.bound = Some(StreamId { rollout: "r".into(), incarnation: 1 });
    let commands = agent.states(&arms.0).unwrap();
    assert!(commands.operation.iter().all(|&operation| operation == Operation::Reset));
    assert!(!agent.status().leaving);
}

#[test]
fn a_step_under_way_when_the_learner_starts_anew_is_the_former_lifes() {
    let (mut agent, mut arms) = (agent(false), Ideal::new(1));
    let start = |agent: &mut Agent, life, version, now| {
        let weights = Arc::new(Snapshot { life, ..(*snapshot(version)).clone() });
        agent.learner_status(&learner_status(&weights), now);
        agent.weights(&weights, now);
    };
    start(&mut agent, 1, 47, Duration::ZERO);
    for _ in 0..4 {
        let commands = agent.states(&arms.0).unwrap();
        arms.step(&commands);
    }
    // life 1 is silent; life 2 goes on from a checkpoint of before, while each environment has a command under way
    let now = Duration::from_secs(2);
    start(&mut agent, 2, 41, now);
    for _ in 0..9 {
        let commands = agent.states(&arms.0).unwrap();
        arms.step(&commands);
    }
    let batches = agent.due(now);
    let lives: Vec<u32> = batches.iter().map(|batch| batch.life).collect();
    assert!(lives.contains(&1) && lives.contains(&2), "{lives:?}");
    for batch in &batches {
        let version = if batch.life == 1 { 47 } else { 41 };
        let steps = batch.fragments.iter().flat_map(|fragment| &fragment.steps);
        assert!(steps.clone().all(|step| step.version == version), "life {}", batch.life);
    }
}
