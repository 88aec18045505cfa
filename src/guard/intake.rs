//! Messages become vectors in the arm's order, or are refused.

use super::Reason;
use crate::robot::{ARM_DOF, PerJoint};

/// A joint state as it came over the wire: any order, other joints beside the arm's.
#[derive(Clone, Copy, Debug)]
pub struct JointStates<'a> {
    /// Joint names.
    pub names: &'a [String],
    /// [rad], as many as names.
    pub positions: &'a [f64],
    /// [rad/s], as many as names, or none.
    pub velocities: &'a [f64],
    /// Header stamp [s].
    pub stamp_secs: f64,
}

/// Joint names of an arm, and where each value of a message goes.
#[derive(Clone, Debug)]
pub(super) struct Names(pub(super) [String; ARM_DOF]);

/// Why a message is refused, with the name or the number that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) reason: Reason,
    pub(super) sentence: String,
}

fn refuse<T>(reason: Reason, sentence: impl Into<String>) -> Result<T, Refusal> {
    Err(Refusal { reason, sentence: sentence.into() })
}

impl Names {
    /// Where each name stands: by joint, its index in the message. Names that are no joints of the arm are refused unless
    /// `others` may come too.
    pub(super) fn places(&self, names: &[String], others: bool) -> Result<[usize; ARM_DOF], Refusal> {
        let mut places = [None; ARM_DOF];
        for (index, name) in names.iter().enumerate() {
            match self.0.iter().position(|joint| joint == name) {
                Some(joint) if places[joint].is_some() => {
                    return refuse(Reason::DuplicateName, format!("{name} comes twice; each joint comes once"));
                }
                Some(joint) => places[joint] = Some(index),
                None if others => {}
                None => {
                    return refuse(
                        Reason::UnknownName,
                        format!("{name} is no joint of this arm; they are {} to {}", self.0[0], self.0[ARM_DOF - 1]),
                    );
                }
            }
        }
        let mut found = [0; ARM_DOF];
        for (joint, place) in places.into_iter().enumerate() {
            match place {
                Some(index) => found[joint] = index,
                None => return refuse(Reason::MissingName, format!("{} has no value", self.0[joint])),
            }
        }
        Ok(found)
    }

    /// The arm's values of a message with as many values as `names`, or as the arm has joints where there are no names.
    pub(super) fn pick(
        &self,
        what: &str,
        places: Option<&[usize; ARM_DOF]>,
        names: usize,
        values: &[f64],
    ) -> Result<PerJoint, Refusal> {
        if values.len() != names {
            return refuse(Reason::WrongLength, format!("{} {what} came for {names} joints", values.len()));
        }
        let picked: PerJoint = std::array::from_fn(|joint| values[places.map_or(joint, |places| places[joint])]);
        match picked.iter().position(|value| !value.is_finite()) {
            Some(joint) => refuse(
                Reason::NonFinite,
                format!("{what} of {} are {}; a number is right", self.0[joint], picked[joint]),
            ),
            None => Ok(picked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robot::Robot;

    fn names() -> Names {
        Names(Robot::Panda.joint_names())
    }

    fn reversed() -> Vec<String> {
        Robot::Panda.joint_names().into_iter().rev().collect()
    }

    #[test]
    fn values_are_mapped_by_name() {
        let mut wire = reversed();
        wire.insert(3, "panda_finger_joint1".into());
        let places = names().places(&wire, true).unwrap();
        assert_eq!(places, [7, 6, 5, 4, 2, 1, 0]);
        let values = [7.0, 6.0, 5.0, f64::NAN, 4.0, 3.0, 2.0, 1.0];
        let picked = names().pick("positions", Some(&places), 8, &values).unwrap();
        assert_eq!(picked, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
    }

    #[test]
    fn what_does_not_fit_is_refused_with_its_name() {
        let said = |wire: &[String], others| {
            let refusal = names().places(wire, others).unwrap_err();
            (refusal.reason, refusal.sentence)
        };
        let mut wire = reversed();
        wire[0] = "fr3_joint7".into();
        assert_eq!(said(&wire, false).0, Reason::UnknownName);
        assert!(said(&wire, false).1.contains("fr3_joint7"));
        assert_eq!(said(&wire, true), (Reason::MissingName, "panda_joint7 has no value".into()));
        wire[0] = "panda_joint1".into();
        assert_eq!(said(&wire, true).0, Reason::DuplicateName);
        let pick = |values: &[f64]| names().pick("positions", None, ARM_DOF, values).map_err(|refusal| refusal.reason);
        assert_eq!(pick(&[0.0; 6]), Err(Reason::WrongLength));
        assert_eq!(pick(&[0.0; 8]), Err(Reason::WrongLength));
        assert_eq!(pick(&[0.0, 0.0, 0.0, f64::INFINITY, 0.0, 0.0, 0.0]), Err(Reason::NonFinite));
        assert_eq!(pick(&[0.5; 7]), Ok([0.5; 7]));
    }
}
