//! Joint states in any order, of more joints, with velocities or without, become the arm's.

use super::{Command, Form, Point, Trajectory};
use crate::data::JointState;
use crate::error::{Error, Result};
use crate::guard;
use crate::robot::{ARM_DOF, PerJoint};
use std::collections::VecDeque;

/// Velocities that the robot does not tell are position differences over about this long [s]: Isaac Sim rounds positions to
/// 1e-4 rad, which at 1 kHz would be 0.1 rad/s.
const DIFFERENCE_SECS: f64 = 0.015;
/// States longer ago than this say nothing about a velocity [s].
const LONGEST_DIFFERENCE_SECS: f64 = 0.2;

/// A trajectory's first point lies this many command ticks ahead: one for the way to it, one for a message that is late.
const LEAD_TICKS: u32 = 2;

/// States that are out of order are at most this much earlier than the last [s]; an earlier one says that time was set back.
pub const OUT_OF_ORDER_SECS: f64 = 0.04;

/// The arm at one time, in its own order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Header stamp [s].
    pub stamp_secs: f64,
    /// [rad].
    pub position: PerJoint,
    /// [rad/s].
    pub velocity: PerJoint,
    /// Whether the robot told the velocities itself.
    pub told: bool,
}

/// A state that [`Joints::read`] has read, for the guard: it looks at positions alone where velocities are not told.
pub fn shown<'a>(state: &'a JointState, read: &Result<Option<Measured>>) -> guard::JointStates<'a> {
    let told = matches!(read, Ok(Some(measured)) if measured.told);
    guard::JointStates {
        names: &state.names,
        positions: &state.position,
        velocities: if told { &state.velocity } else { &[] },
        stamp_secs: state.stamp_secs,
    }
}

/// The arm's joints on the wire.
#[derive(Clone, Debug)]
pub struct Joints {
    names: [String; ARM_DOF],
    past: VecDeque<(f64, PerJoint)>,
}

impl Joints {
    /// With these names.
    pub fn new(names: [String; ARM_DOF]) -> Self {
        Self { names, past: VecDeque::new() }
    }

    /// Names on the wire, base to flange.
    pub fn names(&self) -> &[String; ARM_DOF] {
        &self.names
    }

    /// The arm's part of a state. None where a velocity must be found from positions and there are too few, or the stamp is not
    /// later than the last. Velocities of which one is not finite count as not told. Refuses a missing or doubled joint, another
    /// number of positions than names, and positions that are not finite.
    pub fn read(&mut self, state: &JointState) -> Result<Option<Measured>> {
        let (places, position) = self.pick(state)?;
        let stamp_secs = state.stamp_secs;
        if self.past.back().is_some_and(|(last, _)| stamp_secs < *last - OUT_OF_ORDER_SECS) {
            self.clear(); // time was set back
        }
        if self.past.back().is_some_and(|(last, _)| stamp_secs <= *last) {
            return Ok(None);
        }
        self.past.push_back((stamp_secs, position));
        // the oldest that is kept is the newest of those that are old enough
        while self.past.get(1).is_some_and(|(at, _)| DIFFERENCE_SECS <= stamp_secs - at) {
            self.past.pop_front();
        }
        let whole = state.velocity.len() == state.names.len();
        let told = whole.then(|| places.map(|place| state.velocity[place]));
        let told = told.filter(|velocity| velocity.iter().all(|value| value.is_finite()));
        let velocity = told.or_else(|| self.difference(stamp_secs, &position));
        Ok(velocity.map(|velocity| Measured { stamp_secs, position, velocity, told: told.is_some() }))
    }

    /// The arm's positions in a state or a command [rad]; refused as in [`Self::read`].
    pub fn position(&self, state: &JointState) -> Result<PerJoint> {
        self.pick(state).map(|(_, position)| position)
    }

    fn pick(&self, state: &JointState) -> Result<([usize; ARM_DOF], PerJoint)> {
        let places = self.places(&state.names)?;
        if state.position.len() != state.names.len() {
            return Err(Error::invalid(format!(
                "a joint state has {} positions for {} names; as many are right",
                state.position.len(),
                state.names.len()
            )));
        }
        let position = places.map(|place| state.position[place]);
        match position.iter().position(|value| !value.is_finite()) {
            None => Ok((places, position)),
            Some(joint) => {
                let (name, value) = (&self.names[joint], position[joint]);
                Err(Error::invalid(format!("a joint state has {value} for {name}; a finite number is right")))
            }
        }
    }

    /// Time went back, or the arm was placed elsewhere: positions before say nothing.
    pub fn clear(&mut self) {
        self.past.clear();
    }

    /// A command: exactly the arm's joints, base to flange, positions only [rad].
    pub fn command(&self, stamp_secs: f64, positions: &PerJoint) -> JointState {
        JointState { stamp_secs, names: self.names.to_vec(), position: positions.to_vec(), velocity: Vec::new() }
    }

    /// What a robot is sent in this form: `next`, and in a trajectory the way to `rest` after it, tick by tick.
    pub fn order(
        &self,
        form: Form,
        stamp_secs: f64,
        tick_secs: f64,
        next: &guard::Command,
        rest: impl FnOnce() -> Vec<guard::Command>,
    ) -> Command {
        match form {
            Form::Positions => Command::Positions(self.command(stamp_secs, &next.positions)),
            Form::Trajectory => {
                let ticks = std::iter::once(*next).chain(rest()).zip(LEAD_TICKS..);
                let point = |(at, ticks): (guard::Command, u32)| Point {
                    secs: f64::from(ticks) * tick_secs,
                    position: at.positions,
                    velocity: at.velocities,
                };
                Command::Trajectory(Trajectory { names: self.names.clone(), points: ticks.map(point).collect() })
            }
        }
    }

    fn difference(&self, stamp_secs: f64, position: &PerJoint) -> Option<PerJoint> {
        let (at, before) = self.past.front().filter(|(at, _)| *at < stamp_secs)?;
        let secs = stamp_secs - at;
        (secs <= LONGEST_DIFFERENCE_SECS).then(|| std::array::from_fn(|joint| (position[joint] - before[joint]) / secs))
    }

    fn places(&self, names: &[String]) -> Result<[usize; ARM_DOF]> {
        let mut places = [0; ARM_DOF];
        for (place, joint) in places.iter_mut().zip(&self.names) {
            let mut found = (0..names.len()).filter(|&index| names[index] == *joint);
            *place = found.next().ok_or_else(|| {
                Error::invalid(format!(
                    "a joint state has no {joint}; it has {}: is this the arm, and its policy.joint_prefix?",
                    if names.is_empty() { "no names".into() } else { names.join(", ") }
                ))
            })?;
            if found.next().is_some() {
                return Err(Error::invalid(format!("a joint state has {joint} twice; each joint comes once")));
            }
        }
        Ok(places)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robot::Robot;

    const Q: PerJoint = [0.1, 0.2, 0.3, -1.4, 0.5, 1.6, 0.7];

    fn joints() -> Joints {
        Joints::new(Robot::Panda.joint_names())
    }

    fn state(stamp_secs: f64, position: &PerJoint) -> JointState {
        joints().command(stamp_secs, position)
    }

    #[test]
    fn the_order_on_the_wire_and_other_joints_change_nothing() {
        let plain = JointState { velocity: Q.map(|q| 10.0 * q).to_vec(), ..state(1.0, &Q) };
        let mut permuted = plain.clone();
        for column in [&mut permuted.position, &mut permuted.velocity] {
            column.reverse();
            column.insert(2, f64::NAN);
            column.push(0.04);
        }
        permuted.names.reverse();
        permuted.names.insert(2, "panda_finger_joint2".into());
        permuted.names.push("panda_finger_joint1".into());
        let read = joints().read(&permuted).unwrap().unwrap();
        assert_eq!(Some(read), joints().read(&plain).unwrap());
        assert_eq!((read.position, read.told), (Q, true));
        assert!((read.velocity[6] - 7.0).abs() < 1e-12);
    }

    #[test]
    fn missing_velocities_are_differences_over_15_ms() {
        let mut joints = joints();
        assert_eq!(joints.read(&state(2.0, &Q)).unwrap(), None, "one position has no velocity");
        // 1 kHz, 0.5 rad/s, rounded to 1e-4 rad as Isaac Sim does it
        let mut last = None;
        for tick in 1..=60 {
            let moved = Q.map(|q| ((q + 0.0005 * f64::from(tick)) * 1e4).round() / 1e4);
            last = joints.read(&state(2.0 + 1e-3 * f64::from(tick), &moved)).unwrap();
        }
        let last = last.unwrap();
        assert!(!last.told);
        for velocity in last.velocity {
            assert!((velocity - 0.5).abs() <= 1e-4 / 0.015 + 1e-9, "{velocity}");
        }
        // 60 Hz: successive states
        joints.clear();
        joints.read(&state(3.0, &Q)).unwrap();
        let read = joints.read(&state(3.0 + 1.0 / 60.0, &Q.map(|q| q + 0.01))).unwrap().unwrap();
        assert!((read.velocity[0] - 0.6).abs() < 1e-9);
    }

    #[test]
    fn velocities_that_are_not_finite_are_not_told() {
        let mut joints = joints();
        let broken = |stamp_secs| JointState { velocity: vec![f64::NAN; ARM_DOF], ..state(stamp_secs, &Q) };
        assert_eq!(joints.read(&broken(1.0)).unwrap(), None);
        let read = joints.read(&broken(1.02)).unwrap().unwrap();
        assert_eq!((read.velocity, read.told), ([0.0; ARM_DOF], false));
    }

    #[test]
    fn time_that_stands_says_nothing_and_time_that_goes_back_starts_anew() {
        let mut joints = joints();
        joints.read(&state(5.0, &Q)).unwrap();
        assert!(joints.read(&state(5.02, &Q)).unwrap().is_some());
        assert_eq!(joints.read(&state(5.02, &Q)).unwrap(), None);
        assert_eq!(joints.read(&state(0.0, &Q.map(|q| q + 1.0))).unwrap(), None, "no velocity across a reset");
        let read = joints.read(&state(0.02, &Q.map(|q| q + 1.0))).unwrap().unwrap();
        assert_eq!(read.velocity, [0.0; ARM_DOF]);
    }

    #[test]
    fn after_a_gap_a_velocity_is_found_anew() {
        let mut joints = joints();
        joints.read(&state(1.0, &Q)).unwrap();
        assert_eq!(joints.read(&state(2.0, &Q)).unwrap(), None);
        assert!(joints.read(&state(2.02, &Q)).unwrap().is_some());
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_name() {
        let refusal = |change: &dyn Fn(&mut JointState)| {
            let mut state = state(1.0, &Q);
            change(&mut state);
            joints().read(&state).unwrap_err().to_string()
        };
        let said = refusal(&|state| state.names[3] = "fr3_joint4".into());
        assert!(said.contains("no panda_joint4") && said.contains("fr3_joint4"), "{said}");
        assert!(refusal(&|state| state.names.clear()).contains("no names"));
        assert!(refusal(&|state| state.names[3] = "panda_joint3".into()).contains("panda_joint3 twice"));
        assert!(refusal(&|state| state.position.truncate(6)).contains("6 positions for 7 names"));
        assert!(refusal(&|state| state.position[2] = f64::INFINITY).contains("inf for panda_joint3"));
    }

    #[test]
    fn a_trajectory_leads_to_rest() {
        let at = |by: f64, speed: f64| guard::Command { positions: Q.map(|q| q + by), velocities: [speed; ARM_DOF] };
        let rest = [at(0.015, 0.5), at(0.0175, 0.0)];
        let sent = joints().order(Form::Trajectory, 4.0, 0.01, &at(0.01, 1.0), || rest.to_vec());
        let Command::Trajectory(sent) = sent else { panic!("{sent:?}") };
        assert_eq!(sent.names, Robot::Panda.joint_names());
        let found: Vec<_> =
            sent.points.iter().map(|point| (point.secs, point.position[0], point.velocity[6])).collect();
        let want = [(0.02, 0.11, 1.0), (0.03, 0.115, 0.5), (0.04, 0.1175, 0.0)];
        for (found, want) in found.iter().zip(want) {
            assert!(
                (found.0 - want.0).abs() < 1e-12 && (found.1 - want.1).abs() < 1e-12 && found.2 == want.2,
                "{found:?}"
            );
        }
        assert_eq!(found.len(), 3);
        let sent = joints().order(Form::Positions, 4.0, 0.01, &at(0.0, 1.0), || rest.to_vec());
        assert_eq!(sent, Command::Positions(joints().command(4.0, &Q)));
    }

    #[test]
    fn a_command_is_exactly_the_arm_in_order() {
        let command = joints().command(4.0, &Q);
        assert_eq!(command.names, Robot::Panda.joint_names());
        assert_eq!((command.position, command.velocity), (Q.to_vec(), vec![]));
    }
}
