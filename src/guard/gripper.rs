//! The gripper: a wish in every control tick becomes one goal at a time.
//!
//! A goal blocks the hand for up to two seconds, so a wish is heard with hysteresis, one goal runs at a time, a goal that
//! takes too long is stopped, and a grasp that fails is an observation, never an error.

/// Wishes beyond ± this are heard; what lies between changes nothing.
const HYSTERESIS: f64 = 0.5;
/// Homing takes up to this long [s].
const HOMING_SECS: f64 = 15.0;
/// Opening and grasping take up to this long [s].
const MOTION_SECS: f64 = 4.0;
/// Stopping takes up to this long [s]; then the hand is taken for still.
const STOP_SECS: f64 = 1.0;

/// What the hand is asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Find its range; once after each start.
    Home,
    /// Open wide.
    Open,
    /// Close, and press.
    Grasp,
    /// Let be what it is doing.
    Stop,
}

/// What the hand does.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Doing {
    /// A goal, since [s].
    Busy(Goal, f64),
    /// It did what was asked, or failed at it.
    Still(Goal),
}

/// What the observation and the report may say of the hand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hand {
    /// It holds something: its last goal was a grasp that succeeded.
    pub holds: bool,
    /// A goal is running.
    pub busy: bool,
    /// Goals that failed.
    pub failures: u64,
    /// Goals that took too long.
    pub timeouts: u64,
}

/// The gripper's state machine; time is the steady clock's.
#[derive(Clone, Debug)]
pub struct Gripper {
    doing: Doing,
    homed: bool,
    hand: Hand,
}

impl Default for Gripper {
    fn default() -> Self {
        Self { doing: Doing::Still(Goal::Stop), homed: false, hand: Hand::default() }
    }
}

impl Gripper {
    /// For a hand that needs no homing: a simulated one.
    pub fn homed() -> Self {
        Self { homed: true, ..Self::default() }
    }

    /// A tick with the policy's wish: -1 closed to 1 open; anything but a number wishes nothing. Gives the goal to send, if any.
    pub fn tick(&mut self, wish: f64, now_secs: f64) -> Option<Goal> {
        let wished = if wish > HYSTERESIS {
            Some(Goal::Open)
        } else if wish < -HYSTERESIS {
            Some(Goal::Grasp)
        } else {
            None
        };
        match self.doing {
            Doing::Busy(Goal::Stop, since) if now_secs - since >= STOP_SECS => {
                self.doing = Doing::Still(Goal::Stop);
                None
            }
            Doing::Busy(Goal::Home, since) if now_secs - since >= HOMING_SECS => {
                self.hand.timeouts += 1;
                self.begin(Goal::Stop, now_secs)
            }
            Doing::Busy(Goal::Open | Goal::Grasp, since) if now_secs - since >= MOTION_SECS => {
                self.hand.timeouts += 1;
                self.begin(Goal::Stop, now_secs)
            }
            // another mind: the running goal is stopped first
            Doing::Busy(running @ (Goal::Open | Goal::Grasp), _) if wished.is_some_and(|wish| wish != running) => {
                self.begin(Goal::Stop, now_secs)
            }
            Doing::Busy(..) => None,
            Doing::Still(_) if !self.homed => wished.and_then(|_| self.begin(Goal::Home, now_secs)),
            Doing::Still(last) => wished.filter(|wish| *wish != last).and_then(|wish| self.begin(wish, now_secs)),
        }
    }

    fn begin(&mut self, goal: Goal, now_secs: f64) -> Option<Goal> {
        self.doing = Doing::Busy(goal, now_secs);
        self.hand.holds = false;
        Some(goal)
    }

    /// The hand's answer to a goal. One that comes after the goal was given up is ignored; a homing that failed is tried again
    /// with the next wish.
    pub fn done(&mut self, goal: Goal, success: bool) {
        if !matches!(self.doing, Doing::Busy(running, _) if running == goal) {
            return;
        }
        self.hand.failures += u64::from(!success);
        self.hand.holds = success && goal == Goal::Grasp;
        self.homed |= success && goal == Goal::Home;
        self.doing = Doing::Still(goal);
    }

    /// The hand as it may be observed.
    pub fn hand(&self) -> Hand {
        Hand { busy: matches!(self.doing, Doing::Busy(..)), ..self.hand }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_goal_for_many_wishes_with_hysteresis() {
        let mut gripper = Gripper::homed();
        let goals: Vec<_> = [0.5, 0.6, 0.9, 0.1, -0.4, 0.5].map(|wish| gripper.tick(wish, 0.0)).into();
        assert_eq!(goals, [None, Some(Goal::Open), None, None, None, None]);
        gripper.done(Goal::Open, true);
        assert_eq!(
            [0.9, -0.5, f64::NAN, -0.51, -0.9].map(|wish| gripper.tick(wish, 1.0)),
            [None, None, None, Some(Goal::Grasp), None]
        );
        assert!(gripper.hand().busy);
        gripper.done(Goal::Grasp, true);
        assert_eq!(gripper.hand(), Hand { holds: true, ..Hand::default() });
        // letting go
        assert_eq!(gripper.tick(1.0, 2.0), Some(Goal::Open));
        assert!(!gripper.hand().holds);
    }

    #[test]
    fn it_homes_first_and_again_if_that_failed() {
        let mut gripper = Gripper::default();
        assert_eq!([0.0, 1.0, 1.0, -1.0].map(|wish| gripper.tick(wish, 0.0)), [None, Some(Goal::Home), None, None]);
        gripper.done(Goal::Home, false);
        assert_eq!(gripper.hand(), Hand { failures: 1, ..Hand::default() });
        assert_eq!(gripper.tick(1.0, 1.0), Some(Goal::Home));
        gripper.done(Goal::Home, true);
        assert_eq!(gripper.tick(1.0, 2.0), Some(Goal::Open));
    }

    #[test]
    fn a_goal_that_takes_too_long_is_stopped() {
        let mut gripper = Gripper::homed();
        gripper.tick(-1.0, 10.0);
        assert_eq!([13.9, 14.0, 14.9].map(|now| gripper.tick(-1.0, now)), [None, Some(Goal::Stop), None]);
        gripper.done(Goal::Grasp, true); // too late
        assert_eq!(gripper.hand(), Hand { timeouts: 1, busy: true, ..Hand::default() });
        // nobody answers the stop: the wish still stands, and is sent again
        assert_eq!([15.0, 15.1].map(|now| gripper.tick(-1.0, now)), [None, Some(Goal::Grasp)]);
        let mut unhomed = Gripper::default();
        unhomed.tick(1.0, 2.0);
        assert_eq!([16.9, 17.0].map(|now| unhomed.tick(1.0, now)), [None, Some(Goal::Stop)]);
        assert_eq!(unhomed.hand().timeouts, 1);
        unhomed.done(Goal::Stop, true);
        assert_eq!(unhomed.tick(1.0, 18.0), Some(Goal::Home));
    }

    #[test]
    fn a_failed_grasp_is_observed_and_not_repeated() {
        let mut gripper = Gripper::homed();
        gripper.tick(-1.0, 0.0);
        gripper.done(Goal::Grasp, false);
        assert_eq!(gripper.hand(), Hand { failures: 1, ..Hand::default() });
        assert_eq!(gripper.tick(-1.0, 0.1), None);
        assert_eq!(gripper.tick(1.0, 0.2), Some(Goal::Open));
    }

    #[test]
    fn another_mind_stops_the_running_goal_first() {
        let mut gripper = Gripper::homed();
        gripper.tick(1.0, 0.0);
        assert_eq!([-1.0, -1.0].map(|wish| gripper.tick(wish, 0.5)), [Some(Goal::Stop), None]);
        gripper.done(Goal::Stop, true);
        assert_eq!(gripper.tick(-1.0, 0.6), Some(Goal::Grasp));
    }
}
