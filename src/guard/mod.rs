//! What may reach hardware: the guard between a policy's decisions and the wire. Pure: time is an argument.
//!
//! A policy decides tens of times a second and may jump; a Franka aborts on a step of 5e-6 rad at 1 kHz (jerk / rate³). The guard
//! turns one into the other. Each joint moves with a velocity, acceleration and jerk inside the limits, and only such that
//! its stop does too ([`Guard::tick`]): whatever is lost, a stop is at hand. What couples the joints (speed of the tool centre
//! point, workspace, floor, self-collision) may only brake.
//!
//! Where the state is lost or another node writes, the arm is still brought to rest by commands, and only then are they ended:
//! a stream that breaks off in motion is a step. Nothing more is sent at once where nobody executes commands: the robot stopped
//! itself, or a simulation was reset.
//!
//! ```
//! # use handoff::{config, contract::Contract, guard::*, robot::{READY, Robot}};
//! # fn publish(_: &Command) {}
//! # fn main() -> handoff::error::Result<()> {
//! # let contract = config::Config::default().contract()?;
//! let mut guard = Guard::new(Config::default(), &contract, Robot::Panda, None, None)?;
//! let names = guard.names().clone();
//! let mut now_secs = 0.0; // a steady clock
//! for tick in 0..200 {
//!     // from subscriptions, whenever they come
//!     let states = JointStates { names: &names, positions: &READY, velocities: &[0.0; 7], stamp_secs: now_secs };
//!     guard.observe(&states, now_secs)?;
//!     guard.observe_mode(Mode::Move, now_secs);
//!     guard.observe_publishers(1);
//!     if tick == 0 {
//!         guard.arm(now_secs)?; // a service, never part of activation
//!     }
//!     if tick % 50 == 0 {
//!         let mut target = guard.reference(); // decisions integrate from here
//!         target[0] += 0.01;
//!         guard.target(&Target { names: None, values: Values::Positions(&target) }, now_secs)?;
//!     }
//!     if let Some(command) = guard.tick(now_secs) {
//!         publish(&command);
//!     }
//!     now_secs += 1e-3;
//! }
//! assert_eq!(guard.report().state, State::Armed);
//! # Ok(())
//! # }
//! ```
//!
//! | # | behaviour | test, in `guard::tests` if not said otherwise |
//! |---|---|---|
//! | 1 | starts disarmed; arms on request only; the first command is the anchor, at rest | `it_starts_disarmed_and_arms_on_request`, `the_first_command_is_the_anchor_at_rest`, `the_last_command_is_the_anchor_of_the_next_arming`, `arming_is_refused_with_what_is_missing` |
//! | 2 | a stale state ends the motion, a stale policy leads to a hold; on the steady clock | `a_stale_state_ends_the_motion`, `states_that_come_late_are_as_old_as_their_stamps`, `a_stale_policy_leads_to_a_hold_until_the_next_target` |
//! | 3 | a hold decelerates inside the limits, then keeps the last command | `a_hold_keeps_the_last_command_not_the_measured_position`, `streams::every_stream_stays_inside_the_limits` |
//! | 4 | non-finite, wrong length, unknown, missing, duplicate: refused, counted, never sent | `what_does_not_fit_is_refused_and_counted`, `values_are_mapped_by_name` |
//! | 5 | position margin; velocity, acceleration, jerk; the FR3's velocity by position; speed of the tool centre point; saturation | `streams::every_stream_stays_inside_the_limits`, `a_target_beyond_the_margin_is_reached_at_the_margin`, `the_tool_centre_point_keeps_its_speed`, `saturation_is_reported` |
//! | 6 | leash, and a stop where the arm does not follow | `the_leash_draws_targets_to_the_arm`, `an_arm_that_does_not_follow_is_stopped` |
//! | 7 | from the policy's rate to the command rate without stop and go | `steps_of_a_policy_become_a_steady_motion`, `joint::tests` |
//! | 8 | singularities | none: joints are commanded, never Cartesian poses |
//! | 9 | workspace box, floor, self-collision | `the_workspace_ends_the_way`, `the_floor_ends_the_way`, `the_arm_does_not_touch_itself`, `no_stream_crosses_a_boundary` |
//! | 10 | robot mode gate | `a_robot_that_stopped_gets_no_more_commands`, `a_required_mode_that_is_not_heard_ends_the_motion` |
//! | 11 | recovery never into motion; limited retries | `recovery_never_moves_the_arm`, `recoveries_are_limited`, `what_the_robot_was_recovered_from_by_other_means_counts_too` |
//! | 12 | one writer | `a_second_writer_ends_the_motion` |
//! | 13 | contract: arm, joints, rate | `a_policy_for_another_arm_or_rate_is_refused` |
//! | 14 | time goes back, stands, or is missing | `time_that_goes_back_ends_the_motion`, `messages_out_of_order_are_ignored`, `sim_time_needs_a_clock` |
//! | 15 | weights change at option boundaries, newer, of the same contract | `weights_change_at_a_boundary_only`, `weights_that_do_not_fit_are_refused` |
//! | 16 | rate supervision, hold on overrun | `late_ticks_lead_to_a_hold`, `late::an_arm_that_went_towards_rest_is_led_on_from_there`, `the_pace_is_reported` |
//! | 17 | gripper: hysteresis, one goal at a time, time-outs, failure as observation | `gripper::tests` |
//! | 19 | shutdown: rest, then quiet | `shutdown_brings_the_arm_to_rest` |
//! | 22 | limits are scaled: 20 % unless told, the description's where tighter | `limits_start_at_a_fifth_on_hardware`, `a_lower_scale_slows_a_moving_arm`, `the_tighter_limits_win` |
//!
//! 18 (QoS), 20 (what is logged) and 21 (payload) are the node's and the operator's.
//!
//! Ruckig and its Rust port were no choice: they know no bounds of position nor of velocity by position, plan a way whose
//! stop may not exist when limits change, and may answer with an error while the arm moves.

mod arm;
mod bounds;
mod config;
mod gripper;
mod intake;
mod joint;
mod lead;
mod machine;
mod pace;
mod reason;
mod space;
mod still;
mod stop;
#[cfg(test)]
mod tests;

pub use config::Config;
use config::check_scale;
pub use gripper::{Goal, Gripper, Hand};
pub use intake::JointStates;
pub use lead::{Lead, Led};
pub use machine::Guard;
pub use pace::Pace;
pub use reason::{Counts, Reason, Reasons};

use crate::robot::PerJoint;

/// What the guard does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing is commanded, and nothing is wrong.
    Disarmed,
    /// The arm follows the policy.
    Armed,
    /// The arm comes to rest and keeps its position.
    Holding,
    /// Nothing is commanded, for a reason; arming is needed, and recovery where the robot stopped itself.
    Stopped,
}

impl State {
    /// In reports and diagnostics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Disarmed => "disarmed",
            Self::Armed => "armed",
            Self::Holding => "holding",
            Self::Stopped => "stopped",
        }
    }
}

/// The robot's mode (franka_msgs/FrankaRobotState, `robot_mode`, 0 to 6 in this order).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// None of the others.
    Other,
    /// Ready, no motion.
    Idle,
    /// In a motion.
    Move,
    /// Led by hand.
    Guiding,
    /// It stopped itself.
    Reflex,
    /// The user stop is pressed.
    UserStopped,
    /// It recovers.
    AutomaticErrorRecovery,
}

impl Mode {
    /// Whether the robot executes commands.
    pub fn is_ready(self) -> bool {
        matches!(self, Self::Idle | Self::Move)
    }

    /// From the number in the message; an unknown one is [`Self::Other`].
    pub fn from_code(code: u8) -> Self {
        const CODES: [Mode; 7] = [
            Mode::Other,
            Mode::Idle,
            Mode::Move,
            Mode::Guiding,
            Mode::Reflex,
            Mode::UserStopped,
            Mode::AutomaticErrorRecovery,
        ];
        CODES.get(usize::from(code)).copied().unwrap_or(Self::Other)
    }
}

/// A decision of the policy.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    /// Wire names of the values; none: in the arm's order.
    pub names: Option<&'a [String]>,
    /// One value a joint.
    pub values: Values<'a>,
}

/// What a target's values are.
#[derive(Clone, Copy, Debug)]
pub enum Values<'a> {
    /// Reference positions [rad].
    Positions(&'a [f64]),
    /// Velocities that move the reference [rad/s].
    Velocities(&'a [f64]),
}

/// What goes out, in the order of [`Guard::names`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Command {
    /// [rad].
    pub positions: PerJoint,
    /// [rad/s].
    pub velocities: PerJoint,
}

/// What to do with weights that were offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swap {
    /// Take them.
    Now,
    /// Keep them, and offer the newest when the option ends.
    AtBoundary,
}

/// The next step out of a stop of the robot's own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Ask the robot to recover (its error recovery, then its hardware and controllers), then recover again.
    AskRobot,
    /// The robot is ready and the guard disarmed: arm to go on.
    Recovered,
}

impl Recovery {
    /// For the person who asked.
    pub fn advice(self) -> &'static str {
        match self {
            Self::AskRobot => "ask the robot to recover (its error recovery, then its controllers), then recover again",
            Self::Recovered => "recovered, disarmed: call ~/arm to go on",
        }
    }
}

/// What happened, what to do, and figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// What the guard does.
    pub state: State,
    /// Why it holds or stopped.
    pub reasons: Reasons,
    /// What happened and what to do.
    pub sentence: String,
    /// How often each reason stepped in.
    pub counts: Counts,
    /// Times that an armed arm began to hold.
    pub holds: u64,
    /// Share of the last second's commands that differ from what the policy asked for because of a limit.
    pub saturation_ratio: f64,
    /// Share of the tables' limits.
    pub scale: f64,
    /// Pace of the command ticks since the last arming.
    pub ticks: Pace,
    /// Pace of the policy's targets since the last arming.
    pub decisions: Pace,
    /// Whether [`Guard::recover`] must come before arming.
    pub needs_recovery: bool,
    /// Goes up whenever option, filters and pending commands of the policy are void.
    pub resets: u64,
}
