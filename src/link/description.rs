//! What the robot's own description allows its joints.

use crate::error::{Error, Result};
use crate::robot::{ARM_DOF, Limits};
use roxmltree::{Document, Node};

/// Limits of these joints, base to flange, in a URDF (wiki.ros.org/urdf/XML/joint): of positions the tighter of `limit` and of the
/// soft limits of `safety_controller`; of speed `limit`'s. It gives no acceleration and no jerk: they are NaN. Refuses what is no URDF,
/// a joint that is missing, doubled or not revolute, and limits that are missing, no numbers or empty.
pub fn described_limits(urdf: &str, names: &[String; ARM_DOF]) -> Result<Limits> {
    let document = Document::parse(urdf)
        .map_err(|error| Error::invalid(format!("the robot description is no XML: {error}; a URDF is right")))?;
    let robot = document.root_element();
    if !robot.has_tag_name("robot") {
        return Err(Error::invalid(format!(
            "the robot description is a <{}>; a URDF, which is a <robot>, is right",
            robot.tag_name().name()
        )));
    }
    let unknown = [f64::NAN; ARM_DOF];
    let mut limits = Limits {
        position_min_rad: unknown,
        position_max_rad: unknown,
        velocity_rad_per_sec: unknown,
        acceleration_rad_per_sec2: unknown,
        jerk_rad_per_sec3: unknown,
    };
    for (place, name) in names.iter().enumerate() {
        let joint = Joint { name, node: find(robot, name)? };
        let kind = joint.node.attribute("type").unwrap_or_default();
        if kind != "revolute" {
            return Err(joint.refused(&format!("is of type {kind:?}; revolute is right")));
        }
        let limit = joint.child("limit").ok_or_else(|| joint.refused("has no <limit>"))?;
        let (mut low, mut high) = (joint.number(limit, "lower")?, joint.number(limit, "upper")?);
        if let Some(soft) = joint.child("safety_controller") {
            low = joint.told(soft, "soft_lower_limit")?.map_or(low, |soft| soft.max(low));
            high = joint.told(soft, "soft_upper_limit")?.map_or(high, |soft| soft.min(high));
        }
        let speed = joint.number(limit, "velocity")?;
        if high <= low || speed <= 0.0 {
            return Err(
                joint.refused(&format!("may move from {low} to {high} rad at {speed} rad/s, which is not at all"))
            );
        }
        limits.position_min_rad[place] = low;
        limits.position_max_rad[place] = high;
        limits.velocity_rad_per_sec[place] = speed;
    }
    Ok(limits)
}

fn find<'a>(robot: Node<'a, 'a>, name: &str) -> Result<Node<'a, 'a>> {
    let joints = || robot.children().filter(|node| node.has_tag_name("joint"));
    let mut found = joints().filter(|node| node.attribute("name") == Some(name));
    match (found.next(), found.next()) {
        (Some(joint), None) => Ok(joint),
        (Some(_), Some(_)) => {
            Err(Error::invalid(format!("the robot description has {name} twice; each joint comes once")))
        }
        (None, _) => {
            let others: Vec<&str> = joints().filter_map(|joint| joint.attribute("name")).collect();
            Err(Error::invalid(format!(
                "the robot description has no {name}; it has {}: is this the arm, and its policy.joint_prefix?",
                if others.is_empty() { "no joints".into() } else { others.join(", ") }
            )))
        }
    }
}

struct Joint<'a> {
    name: &'a str,
    node: Node<'a, 'a>,
}

impl<'a> Joint<'a> {
    fn child(&self, tag: &str) -> Option<Node<'a, 'a>> {
        self.node.children().find(|node| node.has_tag_name(tag))
    }

    /// A number that may be left out.
    fn told(&self, node: Node<'_, '_>, attribute: &str) -> Result<Option<f64>> {
        let Some(text) = node.attribute(attribute) else { return Ok(None) };
        match text.trim().parse::<f64>() {
            Ok(value) if value.is_finite() => Ok(Some(value)),
            _ => Err(self.refused(&format!("has {attribute}={text:?}; a finite number is right"))),
        }
    }

    fn number(&self, node: Node<'_, '_>, attribute: &str) -> Result<f64> {
        self.told(node, attribute)?.ok_or_else(|| self.refused(&format!("has no {attribute} in its <limit>")))
    }

    fn refused(&self, why: &str) -> Error {
        Error::invalid(format!("in the robot description {} {why}", self.name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robot::Robot;

    const SOFT: &str =
        r#"<safety_controller k_position="100" k_velocity="40" soft_lower_limit="-2" soft_upper_limit="9"/>"#;

    /// An arm as franka_description writes it, between other joints, with joint 3's element replaced.
    fn urdf(third: &str) -> String {
        let joint = |index: usize| {
            format!(
                r#"<joint name="fr3_joint{index}" type="revolute"><origin rpy="0 0 0" xyz="0 0 0"/><axis xyz="0 0 1"/>
                   <limit effort="87.0" lower="-2.{index}" upper="1.{index}" velocity="0.{index}"/></joint>"#
            )
        };
        let joints: String =
            (1..=7).rev().map(|index| if index == 3 { third.to_owned() } else { joint(index) }).collect();
        format!(
            r#"<?xml version="1.0" ?><!-- made by xacro --><robot name="fr3"><link name="base"/>
               <joint name="fr3_joint8" type="fixed"><parent link="a"/></joint>{joints}
               <joint name="fr3_finger_joint1" type="prismatic"><limit effort="100" lower="0" upper="0.04" velocity="0.2"/></joint>
               <ros2_control name="FrankaHardwareInterface" type="system"><joint name="fr3_joint1"/></ros2_control></robot>"#
        )
    }

    fn third(inside: &str) -> String {
        format!(r#"<joint name="fr3_joint3" type="revolute">{inside}</joint>"#)
    }

    fn read(urdf: &str) -> Result<Limits> {
        described_limits(urdf, &Robot::Fr3.joint_names())
    }

    #[test]
    fn limits_are_found_by_name_and_the_tighter_of_soft_and_hard_count() {
        let limit = r#"<limit effort="87" lower="-2.3" upper="1.3" velocity="0.3"/>"#;
        let found = read(&urdf(&third(&format!("{SOFT}{limit}")))).unwrap();
        assert_eq!(found.position_min_rad, [-2.1, -2.2, -2.0, -2.4, -2.5, -2.6, -2.7]);
        assert_eq!(found.position_max_rad, [1.1, 1.2, 1.3, 1.4, 1.5, 1.6, 1.7]);
        assert_eq!(found.velocity_rad_per_sec, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7]);
        // the tables' accelerations and jerks stay
        let (both, table) = (Robot::Fr3.limits().and(&found), Robot::Fr3.limits());
        assert_eq!(both.acceleration_rad_per_sec2, table.acceleration_rad_per_sec2);
        assert_eq!(both.jerk_rad_per_sec3, table.jerk_rad_per_sec3);
        assert_eq!((both.position_max_rad[6], both.position_max_rad[3]), (1.7, -0.1518));
    }

    #[test]
    fn what_is_no_description_of_the_arm_is_refused_in_a_sentence() {
        let whole = |lower: &str, velocity: &str| {
            urdf(&third(&format!(r#"<limit effort="87" lower="{lower}" upper="1.3" velocity="{velocity}"/>"#)))
        };
        assert!(read(&whole("-2.3", "0.3")).is_ok());
        let twice = format!("{0}{0}", third(r#"<limit lower="-1" upper="1" velocity="1"/>"#));
        for (urdf, words) in [
            ("", "no XML"),
            ("<sdf/>", "a <sdf>"),
            ("<robot name='fr3'/>", "no fr3_joint1; it has no joints"),
            (&urdf(""), "no fr3_joint3; it has fr3_joint8, fr3_joint7"),
            (&urdf(&twice), "fr3_joint3 twice"),
            (&urdf(r#"<joint name="fr3_joint3" type="continuous"/>"#), r#"fr3_joint3 is of type "continuous""#),
            (&urdf(&third("")), "fr3_joint3 has no <limit>"),
            (&urdf(&third(r#"<limit lower="-1" velocity="1"/>"#)), "no upper"),
            (&whole("${lower}", "0.3"), "lower=\"${lower}\""),
            (&whole("NaN", "0.3"), "finite"),
            (&whole("1.3", "0.3"), "not at all"),
            (&whole("-2.3", "0"), "not at all"),
        ] {
            let said = read(urdf).unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
        let other = described_limits(&whole("-2.3", "0.3"), &Robot::Panda.joint_names()).unwrap_err().to_string();
        assert!(
            other.contains("no panda_joint1; it has fr3_joint8") && other.contains("policy.joint_prefix"),
            "{other}"
        );
    }
}
