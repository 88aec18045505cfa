//! The arms of model/*.urdf are those of the tables.

use handoff::link::described_limits;
use handoff::robot::{ARM_DOF, CAPSULES, PerJoint, Robot, place, tcp};
use nalgebra::{Isometry3, Point3, Translation3, UnitQuaternion, Vector3};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use roxmltree::{Document, Node};

fn numbers(node: Node<'_, '_>, name: &str) -> [f64; 3] {
    let text = node.attribute(name).unwrap_or("0 0 0");
    let numbers: Vec<f64> = text.split(' ').map(|number| number.parse().unwrap()).collect();
    numbers.try_into().unwrap()
}

/// Where its parent has it (wiki.ros.org/urdf/XML/joint: xyz, then roll, pitch and yaw about fixed axes).
fn origin(node: Node<'_, '_>) -> Isometry3<f64> {
    let Some(origin) = child(node, "origin") else { return Isometry3::identity() };
    let ([x, y, z], [roll, pitch, yaw]) = (numbers(origin, "xyz"), numbers(origin, "rpy"));
    Isometry3::from_parts(Translation3::new(x, y, z), UnitQuaternion::from_euler_angles(roll, pitch, yaw))
}

fn child<'a>(node: Node<'a, 'a>, name: &str) -> Option<Node<'a, 'a>> {
    node.children().find(|child| child.has_tag_name(name))
}

/// `base_from_link` at `q`, up from the link.
fn base_from(robot: Node<'_, '_>, link: &str, q: &PerJoint) -> Isometry3<f64> {
    let leads_to = |joint: &Node<'_, '_>| child(*joint, "child").unwrap().attribute("link") == Some(link);
    let Some(joint) = robot.children().filter(|node| node.has_tag_name("joint")).find(leads_to) else {
        assert!(link.ends_with("_link0"), "{link} hangs on nothing");
        return Isometry3::identity();
    };
    let index = joint.attribute("name").unwrap().split("_joint").nth(1).and_then(|index| index.parse::<usize>().ok());
    let moved = match joint.attribute("type").unwrap() {
        "revolute" => {
            let axis = Vector3::from(numbers(child(joint, "axis").unwrap(), "xyz"));
            UnitQuaternion::new(axis * q[index.unwrap() - 1])
        }
        "fixed" => UnitQuaternion::identity(),
        kind => panic!("{kind}"),
    };
    let parent = child(joint, "parent").unwrap().attribute("link").unwrap();
    base_from(robot, parent, q) * origin(joint) * moved
}

#[test]
fn a_described_arm_is_that_of_the_tables() {
    for (robot, file) in
        [(Robot::Panda, include_str!("../model/panda.urdf")), (Robot::Fr3, include_str!("../model/fr3.urdf"))]
    {
        let limits = described_limits(file, &robot.joint_names()).unwrap();
        assert_eq!(limits.position_min_rad, robot.limits().position_min_rad);
        assert_eq!(limits.position_max_rad, robot.limits().position_max_rad);
        assert_eq!(limits.velocity_rad_per_sec, robot.limits().velocity_rad_per_sec);

        let document = Document::parse(file).unwrap();
        let root = document.root_element();
        let link = |name: &str| format!("{}_{name}", robot.prefix());
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for _ in 0..100 {
            let q: PerJoint = std::array::from_fn(|_| rng.random_range(-3.0..3.0));
            let (found, want) = (base_from(root, &link("hand_tcp"), &q), tcp(&q));
            assert!((found.to_homogeneous() - want.to_homogeneous()).amax() < 1e-9, "{found} {want}");

            // each capsule: a cylinder between two balls
            let mut balls = Vec::new();
            for index in 0..=ARM_DOF + 1 {
                let name = if index <= ARM_DOF { link(&format!("link{index}")) } else { link("hand") };
                let base_from_link = base_from(root, &name, &q);
                let node = root.children().find(|node| node.attribute("name") == Some(&name)).unwrap();
                for visual in node.children().filter(|node| node.has_tag_name("visual")) {
                    let shape = child(visual, "geometry").unwrap().first_element_child().unwrap();
                    let number = |name: &str| shape.attribute(name).unwrap().parse::<f64>().unwrap();
                    let placed = base_from_link * origin(visual);
                    if shape.has_tag_name("cylinder") {
                        let half = 0.5 * number("length");
                        balls.push([-half, half].map(|z| (placed * Point3::new(0.0, 0.0, z), number("radius"))));
                    } else {
                        let ends = balls.last().unwrap();
                        let (centre, radius) = (placed * Point3::origin(), number("radius"));
                        assert!(ends.iter().any(|(end, around)| (end - centre).norm() < 1e-9 && *around == radius));
                    }
                }
            }
            assert_eq!(balls.len(), CAPSULES.len());
            for (found, want) in balls.iter().zip(place(&q)) {
                for end in [want.start, want.end] {
                    let at =
                        |(ball, radius): &(Point3<f64>, f64)| (ball - end).norm() < 1e-9 && *radius == want.radius_m;
                    assert!(found.iter().any(at), "{found:?} {want:?}");
                }
            }
        }
    }
}
