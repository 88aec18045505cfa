//! Whatever a policy asks for and whatever is lost: every stream stays inside the limits.

use super::*;
use proptest::prelude::*;

/// One thing that happens.
#[derive(Clone, Debug)]
pub(super) enum Happens {
    /// Targets that jump to a pose: a share of the range from lowest to highest, some beyond.
    Jump([f64; ARM_DOF]),
    /// Targets that walk by so much a decision [rad].
    Walk([f64; ARM_DOF]),
    /// Targets that tremble by so much [rad].
    Tremble(f64),
    /// Velocities: a share of the highest.
    Drift([f64; ARM_DOF]),
    /// No targets.
    Silence,
    /// The states stop for a while.
    Blind(f64),
    /// Another share of the limits, up to the greatest of the case.
    Scale(f64),
    /// Ticks stop for so long [s].
    Gap(f64),
    /// The clock of the stamps goes back.
    TimeBack,
    /// Disarmed, and armed again when at rest.
    Disarm,
    /// A second writer comes and goes.
    Rival,
    /// The arm is pushed by so much [rad].
    Push(f64),
}

#[derive(Clone, Debug)]
pub(super) struct Case {
    pub(super) robot: Robot,
    pub(super) command_rate_hz: f64,
    pub(super) scale: f64,
    pub(super) smoothing_periods: f64,
    pub(super) tcp_speed: f64,
    pub(super) margin: f64,
    pub(super) start: [f64; ARM_DOF],
    pub(super) events: Vec<Event>,
}

/// What happens, for how many command ticks, and the policy's rate meanwhile [Hz].
pub(super) type Event = (Happens, usize, f64);

fn happens() -> impl Strategy<Value = Happens> {
    let shares = || prop::array::uniform7(-0.2..1.2f64);
    prop_oneof![
        6 => shares().prop_map(Happens::Jump),
        4 => prop::array::uniform7(-0.05..0.05f64).prop_map(Happens::Walk),
        2 => (1e-6..0.1f64).prop_map(Happens::Tremble),
        2 => prop::array::uniform7(-1.5..1.5f64).prop_map(Happens::Drift),
        2 => Just(Happens::Silence),
        1 => (0.0..0.3f64).prop_map(Happens::Blind),
        2 => (0.0..1.0f64).prop_map(Happens::Scale),
        1 => (0.0..0.3f64).prop_map(Happens::Gap),
        1 => Just(Happens::TimeBack),
        1 => Just(Happens::Disarm),
        1 => Just(Happens::Rival),
        1 => (-0.5..0.5f64).prop_map(Happens::Push),
    ]
}

/// Streams of some arms, with events of so many ticks.
pub(super) fn cases(robots: &'static [Robot], ticks: std::ops::Range<usize>) -> impl Strategy<Value = Case> {
    (
        prop::sample::select(robots),
        prop::sample::select(vec![1000.0, 1000.0, 500.0, 240.0, 60.0]),
        prop::sample::select(vec![0.05, 0.2, 0.5, 1.0, 1.0]),
        prop::sample::select(vec![0.0, 0.5, 1.0, 3.0]),
        prop::sample::select(vec![0.1, 0.25, 1.7, 3.0]),
        prop::sample::select(vec![0.02, 0.1]),
        prop::array::uniform7(0.0..1.0f64),
        prop::collection::vec((happens(), ticks, 8.0..200.0f64), 3..9),
    )
        .prop_map(|(robot, command_rate_hz, scale, smoothing_periods, tcp_speed, margin, start, events)| Case {
            robot,
            command_rate_hz,
            scale,
            smoothing_periods,
            tcp_speed,
            margin,
            start,
            events,
        })
}

/// The pose at a share of each joint's range.
fn pose(robot: Robot, share: &[f64; ARM_DOF]) -> PerJoint {
    let limits = robot.limits();
    std::array::from_fn(|joint| {
        let (low, high) = (limits.position_min_rad[joint], limits.position_max_rad[joint]);
        low + share[joint] * (high - low)
    })
}

pub(super) struct Stream {
    pub(super) bench: Bench,
    pub(super) checker: Checker,
    pub(super) case: Case,
}

impl Stream {
    pub(super) fn new(case: &Case, space: Config) -> Self {
        let config = Config {
            command_rate_hz: case.command_rate_hz,
            scale: case.scale,
            smoothing_periods: case.smoothing_periods,
            tcp_speed_m_per_sec: case.tcp_speed,
            position_margin_rad: case.margin,
            late_secs: 0.05,
            ..space
        };
        let start = pose(case.robot, &case.start);
        let bench = Bench::new(config, case.robot, start);
        let checker = Checker::new(case.robot, case.scale, bench.dt, start);
        Self { bench, checker, case: case.clone() }
    }

    pub(super) fn arm(&mut self) {
        self.bench.now += 0.3;
        self.bench.hear();
        self.bench.guard.arm(self.bench.now).unwrap();
        // a new stream, from where the arm rests
        self.checker = Checker::new(self.case.robot, self.case.scale, self.bench.dt, self.bench.arm);
    }

    fn tick(&mut self) -> Result<Option<Command>, String> {
        let before = self.bench.sent.len();
        let command = self.bench.tick();
        if let Some(command) = command {
            self.checker.check(&command.positions)?;
        }
        if self.bench.guard.is_quiet() {
            if before == self.bench.sent.len() {
                return Err("a stream ended without a last command at rest".into());
            }
            self.checker.end()?;
            (self.bench.publishers, self.bench.states) = (1, true);
            self.arm();
        }
        self.bench.sent.clear();
        Ok(command)
    }

    /// One thing for so long. Ends with each command told to `seen`.
    pub(super) fn live(
        &mut self,
        event: &Event,
        seen: &mut impl FnMut(&PerJoint) -> Result<(), String>,
    ) -> Result<(), String> {
        let (happens, ticks, policy_hz) = event;
        let mut reference = self.bench.guard.reference();
        let bench = &mut self.bench;
        match happens {
            Happens::Blind(_) => bench.states = false,
            Happens::Scale(share) => bench.guard.set_scale((share * self.case.scale).max(0.01)).unwrap(),
            Happens::Gap(secs) => bench.now += secs,
            Happens::TimeBack => bench.stamp_offset -= 500.0,
            Happens::Disarm => bench.guard.disarm(),
            Happens::Rival => bench.publishers = 2,
            Happens::Push(by) => bench.arm[3] += by,
            _ => {}
        }
        let every = (1.0 / policy_hz / bench.dt).ceil() as usize;
        for tick in 0..*ticks {
            if let Happens::Blind(until) = happens {
                self.bench.states |= tick as f64 * self.bench.dt >= *until;
            }
            if tick % every == 0 {
                let most = self.case.robot.limits().velocity_rad_per_sec;
                let (target, speeds) = match happens {
                    Happens::Jump(share) => (Some(pose(self.case.robot, share)), None),
                    Happens::Walk(by) => {
                        reference = std::array::from_fn(|joint| reference[joint] + by[joint]);
                        (Some(reference), None)
                    }
                    Happens::Tremble(by) => {
                        let sign = if (tick / every).is_multiple_of(2) { 1.0 } else { -1.0 };
                        (Some(reference.map(|value| value + sign * by)), None)
                    }
                    Happens::Drift(share) => {
                        (None, Some(std::array::from_fn::<_, ARM_DOF, _>(|joint| share[joint] * most[joint])))
                    }
                    Happens::Silence => (None, None),
                    _ => (Some(reference), None),
                };
                let bench = &mut self.bench;
                // refused where the guard is about to end, or a first target is far: the next comes
                if let Some(target) = target {
                    let _ = bench.to(&target);
                }
                if let Some(speeds) = speeds {
                    let target = Target { names: None, values: Values::Velocities(&speeds) };
                    let _ = bench.guard.target(&target, bench.now);
                }
            }
            if let Some(command) = self.tick()? {
                seen(&command.positions)?;
            }
        }
        self.bench.states = true;
        Ok(())
    }
}

/// Without boundaries that would end most of the motion.
pub(super) fn wide() -> Config {
    Config {
        workspace_min_m: [-2.0; 3],
        workspace_max_m: [2.0; 3],
        floor_m: -2.0,
        leash_rad: 1.0,
        self_margin_m: 0.0,
        ..Config::default()
    }
}

/// Arms, one for each property.
const PANDA: &[Robot] = &[Robot::Panda];
const FR3: &[Robot] = &[Robot::Fr3];
pub(super) const ANY: &[Robot] = &[Robot::Panda, Robot::Fr3, Robot::Both];

/// So many cases in a release build; one in a thousand where nothing is optimised, which is fifty times as slow; or PROPTEST_CASES.
pub(super) fn some(many: u32) -> ProptestConfig {
    let many = if cfg!(debug_assertions) { many.div_ceil(1000) } else { many };
    let told = std::env::var_os("PROPTEST_CASES").is_some();
    let default = ProptestConfig::default();
    ProptestConfig { cases: if told { default.cases } else { many }, max_shrink_iters: 2000, ..default }
}

/// What of a stream is outside the limits or the range.
fn outside(case: &Case) -> Result<(), String> {
    let mut stream = Stream::new(case, wide());
    let (low, high) = (pose(case.robot, &[0.0; ARM_DOF]), pose(case.robot, &[1.0; ARM_DOF]));
    // an arm that was found in the margin may stay there, no more
    let range: [_; ARM_DOF] = std::array::from_fn(|joint| {
        let start = stream.bench.arm[joint];
        (low[joint] + case.margin).min(start) - 1e-9..=(high[joint] - case.margin).max(start) + 1e-9
    });
    let pushed = case.events.iter().any(|(happens, ..)| matches!(happens, Happens::Push(_)));
    stream.arm();
    for event in &case.events {
        let result = stream.live(event, &mut |position| match (0..ARM_DOF)
            .find(|joint| !pushed && !range[*joint].contains(&position[*joint]))
        {
            None => Ok(()),
            Some(joint) => Err(format!("joint {} is at {}, outside {:?}", joint + 1, position[joint], range[joint])),
        });
        result.map_err(|what| format!("{what} in {event:?}"))?;
    }
    Ok(())
}

/// 10,000 streams of policies, jumps, losses and changes of rate for each arm.
mod every_stream_stays_inside_the_limits {
    use super::*;

    proptest! {
        #![proptest_config(some(10_000))]

        #[test]
        fn of_a_panda(case in cases(PANDA, 5..60)) {
            prop_assert_eq!(outside(&case), Ok(()));
        }

        #[test]
        fn of_an_fr3(case in cases(FR3, 5..60)) {
            prop_assert_eq!(outside(&case), Ok(()));
        }
    }

    proptest! {
        #![proptest_config(some(1000))]

        #[test]
        fn of_either_for_long(case in cases(ANY, 20..400)) {
            prop_assert_eq!(outside(&case), Ok(()));
        }
    }
}
