//! The rollout on a link, against an arm that goes where it is told in its own time.

mod hardware;

use super::*;
use crate::config::Seed;
use crate::data::{Ack, Batch, End, EpisodeStats, Follow, Forced, Hold, Outbox, StreamId, check};
use crate::node::rollout::Rollout;
use crate::node::rollout::tests::{contract, learner_status, snapshot};
use crate::policy::Sampling;
use crate::robot::{ARM_DOF, READY};
use std::time::Duration;
use uuid::Uuid;

const TICK: f64 = 1.0 / 60.0;

/// A rollout, an arm, and what was shipped.
struct World {
    on_link: OnLink,
    position: PerJoint,
    velocity: PerJoint,
    /// Share of the way to its command that the arm goes in a tick.
    follows: f64,
    stamp: f64,
    now: f64,
    commands: Vec<JointState>,
    resets: usize,
    /// Ticks until the simulator is reset that was asked to be; commands that came meanwhile.
    reset_in: Option<u32>,
    while_reset: usize,
    batches: Vec<Batch>,
    episodes: Vec<EpisodeStats>,
    /// Positions by stamp in ticks.
    path: Vec<PerJoint>,
    /// Length of a tick [s].
    tick_secs: f64,
    /// The learner says what it got.
    acknowledges: bool,
}

impl World {
    fn of(settings: Settings) -> Self {
        let stream = StreamId { rollout: "r".into(), incarnation: 1 };
        let rollout = Rollout::new(contract(), 1, stream.clone(), Seed::root(1), Sampling::Stochastic).unwrap();
        let hold = Hold::Durable { capacity: 100_000 };
        let agent = Agent::new(rollout, Follow::new(stream.clone(), 1, None), Outbox::new(stream, 8, hold), 16);
        let tick_secs = settings.guard.tick_secs();
        let mut world = Self {
            on_link: OnLink::new(agent, settings).unwrap(),
            position: READY,
            velocity: [0.0; ARM_DOF],
            follows: 1.0,
            stamp: 0.0,
            now: 100.0,
            commands: vec![],
            resets: 0,
            reset_in: None,
            while_reset: 0,
            batches: vec![],
            episodes: vec![],
            path: vec![READY],
            tick_secs,
            acknowledges: true,
        };
        world.learner(1);
        world
    }

    fn new() -> Self {
        Self::of(settings(Preset::Isaac))
    }

    /// A learner that publishes this version.
    fn learner(&mut self, version: u64) {
        let (weights, now) = (snapshot(version), self.time());
        self.on_link.agent().learner_status(&learner_status(&weights), now);
        if self.on_link.may_swap() {
            self.on_link.agent().weights(&weights, now);
        }
    }

    fn time(&self) -> Duration {
        Duration::from_secs_f64(self.now)
    }

    fn state(&self) -> JointState {
        JointState {
            stamp_secs: self.stamp,
            names: Robot::Panda.joint_names().to_vec(),
            position: self.position.to_vec(),
            velocity: self.velocity.to_vec(),
        }
    }

    fn obey(&mut self, command: Option<Command>) {
        self.velocity = [0.0; ARM_DOF];
        if let Some(Command::Positions(command)) = command {
            let before = self.position;
            self.position =
                std::array::from_fn(|joint| before[joint] + self.follows * (command.position[joint] - before[joint]));
            self.velocity = std::array::from_fn(|joint| (self.position[joint] - before[joint]) / self.tick_secs);
            self.commands.push(command);
        }
    }

    /// A tick of the arm, whose state is heard or lost on the way.
    fn tick_heard(&mut self, heard: bool) {
        self.stamp += self.tick_secs;
        self.now += self.tick_secs;
        self.path.push(self.position);
        self.on_link.clock(self.stamp, self.now);
        self.on_link.publishers(1);
        let mut acts = Acts::default();
        if heard {
            acts = self.on_link.states(&self.state(), self.now).unwrap();
        }
        if self.on_link.link().rate == Rate::Fixed {
            acts.command = self.on_link.beat(self.now);
        }
        if acts.reset {
            self.resets += 1;
            self.reset_in = Some(12);
        }
        self.while_reset += usize::from(self.reset_in.is_some() && acts.command.is_some());
        if let Some(ticks) = &mut self.reset_in {
            *ticks -= 1;
            if *ticks == 0 {
                (self.stamp, self.position, self.reset_in) = (0.0, READY, None);
            }
        }
        self.obey(acts.command);
        self.ship();
    }

    fn ship(&mut self) {
        let now = self.time();
        self.on_link.look("/joint_states", self.now);
        self.batches.extend(self.on_link.agent().due(now));
        if self.acknowledges {
            let seqs = self.batches.len() as u64;
            let stream = StreamId { rollout: "r".into(), incarnation: 1 };
            let (received, admitted) = (seqs, self.batches.iter().map(Batch::steps).sum());
            self.on_link.agent().ack(&Ack {
                run: Uuid::nil(),
                life: 1,
                stream,
                received,
                received_mask: 0,
                consumed: received,
                durable: received,
                admitted,
                lost: 0,
                refused: Default::default(),
            });
        }
        self.episodes.extend(self.on_link.agent().episodes());
    }

    fn ticks(&mut self, count: usize) {
        (0..count).for_each(|_| self.tick_heard(true));
    }

    /// Until this many steps were recorded.
    fn steps(&mut self, count: u64) {
        let wanted = self.on_link.agent().status().steps + count;
        for _ in 0..6000 {
            if wanted <= self.on_link.agent().status().steps {
                return;
            }
            self.tick_heard(true);
        }
        panic!("{:?}", self.on_link.agent().status());
    }

    fn report(&self, count: &str) -> u64 {
        let report = self.on_link.report("/joint_states", self.now);
        report.counts.iter().find(|(name, _)| *name == count).unwrap().1
    }
}

fn settings(preset: Preset) -> Settings {
    Settings {
        arm: Robot::Panda,
        preset,
        prefix: String::new(),
        described: None,
        guard: preset.guard(),
        arms_itself: true,
        resets: false,
    }
}

#[test]
fn a_transition_pairs_the_states_of_successive_control_ticks() {
    let mut world = World::new();
    world.steps(180);
    let own = contract();
    let at = |stamp: f64| world.path[(stamp / TICK).round() as usize];
    let (mut steps, mut ends) = (0, 0);
    for batch in &world.batches {
        check(batch, &own, &own.hash()).unwrap();
        for fragment in &batch.fragments {
            for (index, step) in fragment.steps.iter().enumerate() {
                let (now, next) = (fragment.observation(index), fragment.next_observation(index));
                for joint in 0..ARM_DOF {
                    assert_eq!(now[joint], at(step.stamp_secs)[joint] as f32, "episode {} t {}", step.episode, step.t);
                    assert_eq!(next[joint], at(step.stamp_secs + 0.05)[joint] as f32);
                }
                assert_eq!(step.choice.forced == Forced::Init, step.t == 0);
                assert_eq!(now[24..27], next[24..27], "one goal an episode");
                if step.t == 0 {
                    // the arm rests at its start, and is led there
                    assert!(now[7..21].iter().all(|value| value.abs() < 0.05), "{now:?}");
                }
                ends += u32::from(step.end == End::Truncated);
                assert!(step.end == End::None || (step.end == End::Truncated && step.t == 49));
                steps += 1;
            }
        }
    }
    assert!(160 <= steps && ends == 3, "{steps} steps, {ends} ends");
    assert!(world.episodes.iter().all(|stats| (stats.length, stats.end) == (50, End::Truncated)));
    assert_eq!((world.report("late_ticks"), world.report("missing_ticks")), (0, 0));
    // commands keep the guard's limits, through episodes and moves to their starts
    let most = Robot::Panda.limits().velocity_rad_per_sec;
    for pair in world.commands.windows(2) {
        assert!(
            (0..ARM_DOF)
                .all(|joint| (pair[1].position[joint] - pair[0].position[joint]).abs() <= most[joint] * TICK + 1e-9)
        );
    }
}

#[test]
fn episodes_start_where_the_task_says() {
    let mut world = World::new();
    world.steps(120);
    let starts: Vec<Vec<f32>> = world
        .batches
        .iter()
        .flat_map(|batch| &batch.fragments)
        .flat_map(|fragment| {
            fragment.steps.iter().enumerate().map(move |(index, step)| (step, fragment.observation(index)))
        })
        .filter(|(step, _)| step.t == 0)
        .map(|(_, observation)| observation[..ARM_DOF].to_vec())
        .collect();
    let task = crate::task::find("reach").unwrap();
    let draws = Seed::root(1).child(0).of(crate::config::Purpose::Episodes);
    assert!(2 <= starts.len());
    for (number, start) in starts.iter().enumerate() {
        let want = task.start(Robot::Panda.limits(), &mut draws.rng(number as u64)).position;
        assert!(
            (0..ARM_DOF).all(|joint| (f64::from(start[joint]) - want[joint]).abs() < 0.01),
            "{start:?} is not {want:?}"
        );
    }
}

#[test]
fn a_late_state_is_counted_and_a_missing_tick_ends_the_episode() {
    let mut world = World::new();
    world.steps(10);
    while world.on_link.stage != Stage::Acting {
        world.tick_heard(true);
    }
    for round in 1..=12 {
        world.tick_heard(round % 12 != 0); // one of every twelve states
    }
    world.steps(10);
    assert_eq!(world.report("missing_ticks"), 0);
    let before = (world.episodes.len(), world.on_link.agent().status().steps);
    (0..5).for_each(|_| world.tick_heard(false));
    world.ticks(3);
    assert!(1 <= world.report("missing_ticks"));
    let ended = &world.episodes[before.0..];
    assert_eq!(ended.iter().map(|stats| stats.end).collect::<Vec<_>>(), [End::Aborted]);
    world.steps(80);
    assert_eq!(world.episodes.last().unwrap().end, End::Truncated, "and goes on");
    let own = contract();
    world.batches.iter().for_each(|batch| check(batch, &own, &own.hash()).unwrap());
}

#[test]
fn a_simulator_that_stops_is_waited_for_and_taken_up_again() {
    let mut world = World::new();
    world.steps(20);
    for _ in 0..120 {
        world.now += TICK; // the simulator stands
        let command = world.on_link.beat(world.now);
        world.ship();
        assert!(command.is_none() || world.report("missing_ticks") == 0);
    }
    assert!(world.on_link.is_quiet());
    assert_eq!(world.episodes.last().unwrap().end, End::Aborted);
    assert!(world.on_link.agent().status().state.contains("joint states on /joint_states"));
    world.velocity = [0.0; ARM_DOF];
    world.steps(80);
    assert!(!world.on_link.is_quiet());
    assert_eq!(world.episodes.last().unwrap().end, End::Truncated);
}

#[test]
fn a_simulator_that_is_reset_ends_the_episode() {
    let mut world = World::new();
    world.steps(20);
    world.stamp = 0.0;
    (world.position, world.velocity) = (READY, [0.0; ARM_DOF]);
    world.ticks(30);
    assert_eq!(world.episodes.last().unwrap().end, End::Aborted);
    world.path = vec![READY; 3000];
    world.steps(80);
    assert_eq!(world.episodes.last().unwrap().end, End::Truncated);
}

#[test]
fn what_the_guard_changed_is_recorded_as_carried_out() {
    let short = guard::Config { leash_rad: 0.055, ..Preset::Isaac.guard() };
    let mut world = World::of(Settings { guard: short, ..settings(Preset::Isaac) });
    world.steps(3);
    world.follows = 0.2; // it lags, and the leash draws the reference back
    world.steps(120);
    let steps: Vec<_> = world
        .batches
        .iter()
        .flat_map(|batch| &batch.fragments)
        .flat_map(|fragment| {
            fragment
                .steps
                .iter()
                .enumerate()
                .map(move |(index, step)| (step, fragment.observation(index), fragment.next_observation(index)))
        })
        .collect();
    let filtered = steps.iter().filter(|(step, ..)| step.filtered).count();
    assert!(0 < filtered && filtered < steps.len(), "{filtered} of {}", steps.len());
    for (step, now, next) in steps {
        for joint in 0..ARM_DOF {
            // position + (reference - position) is the reference: it moved by what was carried out
            let reference = |row: &[f32]| row[joint] + row[14 + joint];
            let moved = reference(next) - reference(now);
            let told = 0.05 * step.choice.action[joint];
            let clipped = step.filtered && step.choice.action[joint].abs() == 1.0;
            assert!(clipped || (moved - told).abs() < 1e-5, "t {} joint {joint}: {moved} is not {told}", step.t);
            if !step.filtered {
                assert!((step.choice.action[joint] - step.choice.proposal[joint].tanh()).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn a_simulator_waits_for_the_window_and_no_transition_crosses_a_hold() {
    // nothing is acknowledged: eight batches of 16 steps fill the window
    let mut world = World::new();
    world.acknowledges = false;
    for _ in 0..6000 {
        world.tick_heard(true);
    }
    let status = world.on_link.agent().status();
    assert_eq!((status.in_flight, status.state.as_str()), (8, "waiting for the window"));
    assert!(world.episodes.iter().all(|stats| stats.end == End::Truncated || stats.length < 50));
}

#[test]
fn joints_in_another_order_without_velocities_are_an_arm_too() {
    let mut world = World::new();
    for _ in 0..400 {
        world.stamp += TICK;
        world.now += TICK;
        world.on_link.clock(world.stamp, world.now);
        world.on_link.publishers(1);
        let mut state = world.state();
        state.velocity.clear();
        state.names.reverse();
        state.position.reverse();
        state.names.insert(2, "rail".into());
        state.position.insert(2, 5.0);
        let acts = world.on_link.states(&state, world.now).unwrap();
        world.obey(acts.command);
    }
    assert!(60 < world.on_link.agent().status().steps);
}

#[test]
fn a_reset_is_asked_for_once_an_episode() {
    let mut world = World::of(Settings { resets: true, ..settings(Preset::Sim) });
    world.stamp = 10.0;
    world.steps(120);
    assert_eq!((world.resets, world.episodes.len()), (3, 2));
    assert!(world.episodes.iter().all(|stats| (stats.length, stats.end) == (50, End::Truncated)));
    assert_eq!(world.while_reset, 0, "commands between asking for a reset and states after it");
}

#[test]
fn a_reset_that_leaves_time_as_it_is_is_waited_for_at_rest() {
    let mut world = World::of(Settings { resets: true, ..settings(Preset::Sim) });
    while world.resets == 0 {
        world.tick_heard(true);
    }
    world.reset_in = None; // this simulator takes long, and its time goes on
    let before = world.commands.len();
    world.ticks(300);
    assert!(world.on_link.is_quiet() && world.on_link.agent().status().state.contains("the simulator's reset"));
    assert!(world.on_link.arm(true, world.now).unwrap_err().to_string().contains("being reset"));
    world.on_link.reset_answered(world.now);
    world.ticks(29);
    assert_eq!((world.resets, world.commands.len()), (1, before));
    world.steps(20);
    assert!(before < world.commands.len());
}

#[test]
fn the_end_brings_the_arm_to_rest_and_ships_what_is_recorded() {
    let mut world = World::new();
    world.steps(20);
    world.on_link.shutdown();
    world.ticks(60);
    assert!(world.on_link.is_quiet() && world.on_link.agent().status().leaving);
    let shipped: u64 = world.batches.iter().map(Batch::steps).sum();
    assert_eq!(shipped, world.on_link.agent().status().steps);
}

#[test]
fn silence_is_told_with_the_topic_and_what_would_be_right() {
    let world = World::new();
    let report = world.on_link.report("/arm_1/joint_states", 6.0);
    assert!(report.waits_for[0].contains("/arm_1/joint_states") && report.waits_for[0].contains("simulator"));
    assert!(world.on_link.report("/arm_1/joint_states", 4.0).waits_for.is_empty());
}

#[test]
fn settings_that_do_not_fit_are_refused() {
    let refusal = |settings: Settings| {
        let stream = StreamId { rollout: "r".into(), incarnation: 1 };
        let rollout = Rollout::new(contract(), 1, stream.clone(), Seed::root(1), Sampling::Stochastic).unwrap();
        let agent =
            Agent::new(rollout, Follow::new(stream.clone(), 1, None), Outbox::new(stream, 4, Hold::Consumed), 16);
        OnLink::new(agent, settings).err().unwrap().to_string()
    };
    assert!(refusal(Settings { arm: Robot::Both, ..settings(Preset::Isaac) }).contains("robot: fr3"));
    let leash = guard::Config { leash_rad: 0.03, ..Preset::Isaac.guard() };
    assert!(refusal(Settings { guard: leash, ..settings(Preset::Isaac) }).contains("0.03"));
    let no_clock = Settings { guard: Preset::Crisp.guard(), ..settings(Preset::Isaac) };
    assert!(refusal(no_clock).contains("guard.use_sim_time"));
    let mut still = *Robot::Panda.limits();
    still.position_max_rad[2] = -2.8;
    let described = Settings { described: Some(still), ..settings(Preset::Isaac) };
    assert!(refusal(described).contains("joint 3 may not move between -2.8973 and -2.8 rad"));
    let fr3 = Settings { arm: Robot::Fr3, ..settings(Preset::Isaac) };
    assert!(refusal(fr3).contains("Fr3"));
}
