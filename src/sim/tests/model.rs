use super::moved;
use crate::config::Seed;
use crate::robot::{ARM_DOF, CAPSULES, PAIRS, PerJoint, Robot, place, tcp};
use crate::sim::HOME;
use crate::sim::model::load;
use mujoco_rs::prelude::{MjData, MjModel, MjtObjBase};
use nalgebra::{Matrix3, Point3, Vector3};
use rand::RngExt as _;

const TIMESTEP_SECS: f64 = 1.0 / 240.0;

fn anywhere(draw: u64) -> PerJoint {
    let (limits, mut rng) = (Robot::Panda.limits(), Seed::root(11).rng(draw));
    std::array::from_fn(|joint| rng.random_range(limits.position_min_rad[joint]..limits.position_max_rad[joint]))
}

#[test]
fn mujoco_and_our_kinematics_place_the_tcp_alike() {
    let model = load(Robot::Panda, TIMESTEP_SECS, true).unwrap();
    let site = model.name_to_id(MjtObjBase::mjOBJ_SITE, "tcp").unwrap();
    let mut data = MjData::new(&model);
    for draw in 0..1000 {
        let q = anywhere(draw);
        data.qpos_mut()[..ARM_DOF].copy_from_slice(&q);
        data.kinematics();
        let base_from_tcp = tcp(&q);
        let position = Vector3::from(data.site_xpos()[site]);
        let rotation = Matrix3::from_row_slice(&data.site_xmat()[site]);
        assert!((position - base_from_tcp.translation.vector).amax() < 1e-9, "{q:?}");
        assert!((rotation - base_from_tcp.rotation.to_rotation_matrix().matrix()).amax() < 1e-9, "{q:?}");
    }
}

#[test]
fn mujoco_and_our_capsules_are_the_same() {
    let model = load(Robot::Panda, TIMESTEP_SECS, false).unwrap();
    let geoms: Vec<usize> = (0..CAPSULES.len())
        .map(|capsule| model.name_to_id(MjtObjBase::mjOBJ_GEOM, &format!("capsule_{capsule}")).unwrap())
        .collect();
    let mut data = MjData::new(&model);
    let q = anywhere(0);
    data.qpos_mut()[..ARM_DOF].copy_from_slice(&q);
    data.kinematics();
    for (segment, &geom) in place(&q).iter().zip(&geoms) {
        let [radius_m, half_m, _] = model.geom_size()[geom];
        let half = Matrix3::from_row_slice(&data.geom_xmat()[geom]).column(2) * half_m;
        let centre = Point3::from(data.geom_xpos()[geom]);
        let is_segment = |start: Point3<f64>, end: Point3<f64>| {
            (segment.start - start).amax() < 1e-9 && (segment.end - end).amax() < 1e-9
        };
        assert!((segment.radius_m - radius_m).abs() < 1e-12);
        assert!(is_segment(centre - half, centre + half) || is_segment(centre + half, centre - half), "geom {geom}");
    }
    let pairs: Vec<(usize, usize)> = (0..model.pair_geom1().len())
        .map(|pair| (model.pair_geom1()[pair] as usize, model.pair_geom2()[pair] as usize))
        .filter_map(|(a, b)| {
            let index = |geom| geoms.iter().position(|&g| g == geom);
            index(a).zip(index(b)).map(|(a, b)| (a.min(b), a.max(b)))
        })
        .collect();
    assert_eq!(pairs.len(), PAIRS.len());
    assert!(PAIRS.iter().all(|pair| pairs.contains(pair)));
}

#[test]
fn no_contact_at_rest_where_episodes_start() {
    let model = load(Robot::Panda, TIMESTEP_SECS, false).unwrap();
    let mut data = MjData::new(&model);
    for draw in 0..1000 {
        let start = moved(&HOME, 0.1, &mut Seed::root(5).rng(draw));
        data.reset();
        data.qpos_mut().copy_from_slice(&start);
        data.ctrl_mut().copy_from_slice(&start);
        data.step();
        assert_eq!((data.ncon(), data.nefc()), (0, 0), "{start:?}");
    }
}

#[test]
fn the_arm_meets_the_table_and_itself() {
    let model = load(Robot::Panda, TIMESTEP_SECS, false).unwrap();
    let contacts = |q: PerJoint| {
        let mut data = MjData::new(&model);
        data.qpos_mut()[..ARM_DOF].copy_from_slice(&q);
        data.forward();
        data.ncon()
    };
    // stretched forward and down; folded so that the hand comes to the shoulder
    assert!(contacts([0.0, 1.7, 0.0, -0.3, 0.0, 1.6, 0.0]) > 0);
    assert!(contacts([0.0, -1.7, 0.0, -3.0, 0.0, 1.0, 0.0]) > 0);
    assert_eq!(contacts([HOME[0], HOME[1], HOME[2], HOME[3], HOME[4], HOME[5], HOME[6]]), 0);
}

#[test]
fn names_and_limits_are_the_robots() {
    let range = |model: &MjModel, joint: &str| {
        let id = model.name_to_id(MjtObjBase::mjOBJ_JOINT, joint).unwrap();
        assert_eq!(model.jnt_range()[id], model.actuator_ctrlrange()[id]);
        model.jnt_range()[id]
    };
    let fr3 = load(Robot::Fr3, TIMESTEP_SECS, false).unwrap();
    assert_eq!(range(&fr3, "fr3_joint6"), [0.5445, 4.5169]);
    assert!(fr3.name_to_id(MjtObjBase::mjOBJ_JOINT, "panda_joint1").is_none());
    let both = load(Robot::Both, TIMESTEP_SECS, true).unwrap();
    assert_eq!(range(&both, "panda_joint6"), [0.5445, 3.7525]);
    assert_eq!(both.opt().timestep, TIMESTEP_SECS);
    assert_eq!(both.nq(), fr3.nq() + 7);
    for (joint, name) in Robot::Both.joint_names().iter().chain(&Robot::Both.finger_joint_names()).enumerate() {
        assert_eq!(both.name_to_id(MjtObjBase::mjOBJ_JOINT, name), Some(joint), "the order of every row");
        assert_eq!(both.name_to_id(MjtObjBase::mjOBJ_ACTUATOR, name), Some(joint));
    }
}
