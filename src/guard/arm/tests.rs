//! What the arm sees of its way: against the way itself, walked in small steps.

use super::*;
use crate::guard::Config;
use crate::robot::{Limits, READY, Robot, tcp};
use nalgebra::Vector3;

/// Steps that a way is walked in.
const WALK: u32 = 600;

/// An arm in motion and its next tick, the first half of which has passed.
struct Way {
    arm: Arm,
    steps: [Step; ARM_DOF],
}

impl Way {
    /// Jerks are shares of the limit.
    fn new(config: &Config, limits: &Limits, motions: Motions, jerk: [f64; ARM_DOF]) -> Self {
        let dt = config.tick_secs();
        let bounds = Bounds::of(config, 1.0, [Robot::Panda; 2], limits, dt).unwrap();
        let at = positions(&motions);
        let arm = Arm::new(&at, bounds, Law::new(0.02, dt), Space::new(config), config.tcp_speed_m_per_sec, dt);
        let steps = std::array::from_fn(|joint| {
            let jerk = jerk[joint] * bounds[joint].jerk;
            Step { next: motions[joint].after(jerk, dt), jerk: Some(jerk), limited: false }
        });
        Self { arm: Arm { motions, ..arm }, steps }
    }

    /// Where the joints are, `secs` after the tick began.
    fn at(&self, secs: f64) -> PerJoint {
        let dt = self.arm.tick_secs;
        std::array::from_fn(|joint| match (&self.arm.motions[joint], &self.steps[joint]) {
            (motion, Step { jerk: Some(jerk), .. }) if secs < dt => motion.after(*jerk, secs).position,
            (_, step) => self.arm.bounds[joint].stop(step.next).at(step.next, secs - dt).position,
        })
    }

    /// Places of the tip from the middle of the tick until the arm rests, evenly in time, and the time between two [s].
    fn walk(&self) -> (f64, Vec<Vector3<f64>>) {
        let half = 0.5 * self.arm.tick_secs;
        let stop = |joint: usize| self.arm.bounds[joint].stop(self.steps[joint].next).secs();
        let apart = (half + (0..ARM_DOF).map(stop).fold(0.0, f64::max)) / f64::from(WALK);
        let tip = |step: u32| tcp(&self.at(half + f64::from(step) * apart)).translation.vector;
        (apart, (0..=WALK).map(tip).collect())
    }

    /// The tip's highest speed [m/s].
    fn fastest(&self) -> f64 {
        let (apart, tips) = self.walk();
        tips.windows(2).map(|pair| (pair[1] - pair[0]).norm() / apart).fold(0.0, f64::max)
    }

    /// Whether the arm finds that its tip keeps a speed [m/s].
    fn keeps(&mut self, speed: f64) -> bool {
        self.arm.speed_m_per_sec = speed / SPEED_HEADROOM;
        let linear: Linear = jacobian(&self.arm.positions()).fixed_rows::<3>(0).into_owned();
        self.arm.slow(&linear, &self.steps)
    }

    /// What the arm finds in its way where the workspace ends at this x [m], and nothing else does.
    fn finds(&mut self, wall: f64) -> Option<Reason> {
        let config = Config {
            workspace_max_m: [wall, 2.0, 2.0],
            workspace_min_m: [-2.0; 3],
            floor_m: -2.0,
            self_margin_m: -1.0,
            ..roomy()
        };
        self.arm.space = Space::new(&config);
        self.arm.blocked_by(&self.steps, self.arm.space.room(&self.arm.positions()))
    }
}

fn roomy() -> Config {
    Config { self_margin_m: 0.0, position_margin_rad: 0.02, ..Config::simulation() }
}

/// An arm twice as fast that brakes with a quarter: its stops are long.
fn long() -> Limits {
    let mut limits = *Robot::Panda.limits();
    limits.velocity_rad_per_sec = limits.velocity_rad_per_sec.map(|most| 2.0 * most);
    limits.acceleration_rad_per_sec2 = limits.acceleration_rad_per_sec2.map(|most| 0.25 * most);
    limits
}

/// Numbers from -1 to 1 that fill the range evenly.
fn numbers() -> impl FnMut() -> f64 {
    let mut index = 0.0;
    move || {
        index += 1.0;
        2.0 * f64::fract(index * 0.618_033_988_75) - 1.0
    }
}

/// Many ways of all joints: speeds up to a share of the limit.
fn ways() -> Vec<Way> {
    let mut number = numbers();
    let mut ways = Vec::new();
    for (rate, limits) in [(1000.0, *Robot::Panda.limits()), (60.0, *Robot::Panda.limits()), (1000.0, long())] {
        let config = Config { command_rate_hz: rate, ..roomy() };
        for case in 0..60 {
            let share = [0.05, 0.3, 0.9][case % 3];
            let motions = std::array::from_fn(|joint| Motion {
                position: READY[joint] + 0.5 * number(),
                velocity: share * number() * limits.velocity_rad_per_sec[joint],
                acceleration: 0.9 * number() * limits.acceleration_rad_per_sec2[joint],
            });
            ways.push(Way::new(&config, &limits, motions, [number(); ARM_DOF]));
        }
    }
    ways
}

/// Each joint alone, which does not move yet: at its hardest, and as it turns from that to the contrary.
fn starts() -> Vec<Way> {
    let limits = Robot::Panda.limits();
    let mut ways = Vec::new();
    for (rate, turns) in [(1000.0, false), (60.0, true)] {
        let config = Config { command_rate_hz: rate, ..roomy() };
        for joint in 0..6 {
            let mut motions = READY.map(Motion::rest);
            let most = 0.9 * limits.acceleration_rad_per_sec2[joint];
            motions[joint].acceleration = most;
            let mut jerk = [0.0; ARM_DOF];
            jerk[joint] = if turns { -2.0 * most * rate / limits.jerk_rad_per_sec3[joint] } else { 0.0 };
            ways.push(Way::new(&config, limits, motions, jerk));
        }
    }
    ways
}

/// Three joints with parallel axes whose motions cancel at the tip, until the arm has turned. They come to rest together.
fn cancelling() -> Way {
    let linear = jacobian(&READY);
    let along = |axis: usize| [1, 3, 5].map(|joint| linear[(axis, joint)]);
    let ([a, b, c], [d, e, f]) = (along(0), along(2));
    let (mut motions, mut limits) = (READY.map(Motion::rest), long());
    for (joint, share) in [(1, b * f - c * e), (3, c * d - a * f), (5, a * e - b * d)] {
        motions[joint].velocity = 50.0 * share;
        limits.acceleration_rad_per_sec2[joint] = 500.0 * share.abs();
    }
    Way::new(&roomy(), &limits, motions, [0.0; ARM_DOF])
}

#[test]
fn the_speed_of_the_tip_is_seen_all_the_way() {
    for (index, mut way) in ways().into_iter().chain(starts()).chain([cancelling()]).enumerate() {
        let fastest = way.fastest();
        assert!(way.keeps(1.01 * fastest), "{index}: {fastest} m/s");
        assert!(!way.keeps(0.96 * fastest), "{index}: {fastest} m/s");
    }
}

#[test]
fn a_tip_at_its_speed_limit_moves_steadily() {
    let mut arm = Way::new(&roomy(), Robot::Panda.limits(), READY.map(Motion::rest), [0.0; ARM_DOF]).arm;
    arm.speed_m_per_sec = 0.25;
    let speeds: Vec<f64> = (0..1000)
        .map(|_| {
            arm.advance(Aim::Track(ready_with(2.0)));
            arm.velocities()[0]
        })
        .collect();
    // 80 % of the cap, 0.30689 m from the axis
    assert!(speeds[500..].iter().all(|speed| (0.6500..=0.65171).contains(speed)), "{:?}", &speeds[500..520]);
}

#[test]
fn a_wall_is_seen_all_the_way() {
    let mut met = 0;
    for (index, mut way) in ways().into_iter().enumerate() {
        let now = tcp(&way.arm.positions()).translation.x;
        let farthest = way.walk().1.iter().map(|tip| tip.x).fold(now, f64::max);
        // 5 mm are kept beside a margin, for between two looks a way may bend by less
        assert_eq!(way.finds(farthest + 0.0051), None, "{index}: from {now} to {farthest}");
        if now + 0.005 < farthest {
            assert_eq!(way.finds(farthest + 0.002), Some(Reason::Workspace), "{index}: from {now} to {farthest}");
            met += 1;
        }
    }
    assert!(met > 50, "{met}");
}

#[test]
fn a_way_is_looked_at_every_twentieth_of_a_radian() {
    let mut to = READY;
    assert_eq!(looks(&READY, &to), 1);
    to[0] += 0.19;
    assert_eq!(looks(&READY, &to), 4);
    to[3] -= 0.07;
    assert_eq!(looks(&READY, &to), 6);
    to[6] += 100.0;
    assert_eq!(looks(&READY, &to), 140);
}

/// An arm at rest that may go no farther left than y = 0.2.
fn before_a_wall() -> Arm {
    let config = Config { workspace_max_m: [2.0, 0.2, 2.0], workspace_min_m: [-2.0; 3], ..roomy() };
    let way = Way::new(&config, Robot::Panda.limits(), READY.map(Motion::rest), [0.0; ARM_DOF]);
    Arm { space: Space::new(&config), ..way.arm }
}

#[test]
fn a_target_beyond_a_wall_is_drawn_back_along_its_way() {
    let mut target = READY;
    (target[0], target[6]) = (0.8, READY[6] + 0.4);
    let (drawn, reasons) = before_a_wall().reachable(&target);
    assert_eq!(reasons, Reason::Workspace.into());
    // the tip turns 0.30689 m about the axis; 5 mm are kept; halvings leave 1 / 256 of a look of 0.05 rad
    let y = tcp(&drawn).translation.y;
    assert!((0.19494..=0.195).contains(&y), "{y}");
    assert!((drawn[0] - (0.195_f64 / 0.30689).asin()).abs() < 3e-4, "{drawn:?}");
    assert!((drawn[6] - READY[6] - 0.5 * drawn[0]).abs() < 1e-12, "{drawn:?}");
    // from where the joints' stops end: 1 rad/s takes 1 / 2 (1 / 14.985 + 14.985 / 7492.5) = 0.034367 rad
    let mut arm = before_a_wall();
    arm.motions[6].velocity = 1.0;
    let end = arm.bounds[6].stop(arm.motions[6]).end(arm.motions[6]);
    let (drawn, _) = arm.reachable(&target);
    assert!((drawn[6] - end - (target[6] - end) * drawn[0] / 0.8).abs() < 1e-12, "{drawn:?}");
}

#[test]
fn an_arm_that_a_wall_stopped_comes_to_rest_and_is_led_on() {
    let mut arm = before_a_wall();
    assert!((0..2000).any(|_| arm.advance(Aim::Track(ready_with(0.8))).contains(Reason::Workspace)));
    let way = arm.way_to_rest();
    assert!(way.len() > 20, "{}", way.len());
    for (positions, velocities) in way {
        assert!(!arm.is_rest());
        assert!(arm.advance(Aim::Track(READY)).is_empty(), "not before it rests");
        for joint in 0..ARM_DOF {
            assert!((arm.positions()[joint] - positions[joint]).abs() < 1e-9);
            assert!((arm.velocities()[joint] - velocities[joint]).abs() < 1e-6);
        }
    }
    for _ in 0..2000 {
        arm.advance(Aim::Track(ready_with(0.8)));
    }
    let y = tcp(&arm.positions()).translation.y;
    assert!(arm.is_rest() && (0.19..=0.195).contains(&y), "{y}");
    for _ in 0..1000 {
        arm.advance(Aim::Track(READY));
    }
    assert!(arm.positions()[0].abs() < 1e-6, "{:?}", arm.positions());
}

fn ready_with(first: f64) -> PerJoint {
    let mut pose = READY;
    pose[0] += first;
    pose
}
