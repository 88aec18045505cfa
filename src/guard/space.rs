//! Where the arm may be: a box for the tool centre point, a floor, itself.

use super::{Config, Reason};
use crate::robot::{PerJoint, floor_clearance_of, place, self_clearance_of, tcp};

/// Between two poses that are looked at a way bends by less than this [m]: that much is kept beside the margins. A way of s [rad],
/// the joints' ways added up, bends by s² / 8 of the reach at most: 1.6 mm for twice what looks are apart on average.
const BEND_M: f64 = 0.005;

/// No point of the arm is farther from a joint's axis [m]: 0.316 + 0.384 + 0.107 + 0.1034 along it, 0.0825, 0.0825 and 0.088 across,
/// and a link's radius.
pub(super) const REACH_M: f64 = 1.25;

/// Distances to keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Space {
    low_m: [f64; 3],
    high_m: [f64; 3],
    floor_m: f64,
    floor_margin_m: f64,
    self_margin_m: f64,
}

/// How far a pose is inside each boundary [m]; negative outside.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Room([f64; 3]);

impl Room {
    const REASONS: [Reason; 3] = [Reason::Workspace, Reason::Floor, Reason::SelfCollision];

    /// What is left of each, or 0 where there is room: nothing that is outside may go further out.
    pub(super) fn demanded(self) -> Self {
        Self(self.0.map(|room| room.min(0.0)))
    }

    /// Whether an arm cannot come to a boundary when its joints move by so much in all [rad].
    pub(super) fn is_beyond(self, way_rad: f64) -> bool {
        // two links may come towards one another
        self.0.iter().all(|room| *room > 2.0 * REACH_M * way_rad)
    }

    /// The first boundary of which there is less than `demanded`.
    pub(super) fn short_of(self, demanded: Self) -> Option<Reason> {
        let short = |index: &usize| self.0[*index] < demanded.0[*index];
        (0..3).find(short).map(|index| Self::REASONS[index])
    }
}

impl Space {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            low_m: config.workspace_min_m,
            high_m: config.workspace_max_m,
            floor_m: config.floor_m,
            floor_margin_m: config.floor_margin_m,
            self_margin_m: config.self_margin_m,
        }
    }

    /// The room at a pose.
    pub(super) fn room(&self, position: &PerJoint) -> Room {
        let placed = place(position);
        let tip = tcp(position).translation.vector;
        let inside = (0..3).map(|axis| (tip[axis] - self.low_m[axis]).min(self.high_m[axis] - tip[axis]));
        let rooms = [
            inside.fold(f64::INFINITY, f64::min),
            floor_clearance_of(&placed, self.floor_m) - self.floor_margin_m,
            self_clearance_of(&placed) - self.self_margin_m,
        ];
        Room(rooms.map(|room| room - BEND_M))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::robot::READY;

    #[test]
    fn the_ready_pose_has_its_room() {
        let space = Space::new(&Config { workspace_min_m: [0.0, -0.5, 0.4], ..Config::default() });
        let Room([inside, floor, itself]) = space.room(&READY);
        // the tip at (0.30689, 0, 0.48688) is nearest to z = 0.4; the shoulder's capsule is 0.273 m above the floor; the
        // forearm is 0.1615 m from link 7; 5 mm are kept of each
        assert!((inside - 0.08188).abs() < 5e-6, "{inside}");
        assert!((floor - 0.248).abs() < 1e-9, "{floor}");
        assert!((itself - 0.1365).abs() < 1e-4, "{itself}");
    }

    #[test]
    fn the_nearest_wall_counts() {
        let near = |low: [f64; 3], high: [f64; 3]| {
            let space = Space::new(&Config { workspace_min_m: low, workspace_max_m: high, ..Config::default() });
            space.room(&READY).0[0]
        };
        assert!((near([0.2, -1.0, 0.0], [1.0, 1.0, 1.0]) - 0.10189).abs() < 5e-6);
        assert!((near([-1.0, -1.0, 0.0], [0.4, 1.0, 1.0]) - 0.08811).abs() < 5e-6);
        assert!((near([-1.0, -1.0, 0.0], [1.0, 0.05, 1.0]) - 0.045).abs() < 5e-6);
        assert!((near([-1.0, -1.0, 0.0], [1.0, 1.0, 0.4]) + 0.09188).abs() < 5e-6);
    }

    #[test]
    fn no_pose_comes_nearer_than_its_way() {
        let space = Space::new(&Config::default());
        let limits = crate::robot::Robot::Panda.limits();
        let mut shares = (0..).map(|index: u32| (f64::from(index) * 0.618_033_988_75).fract());
        let mut pose = || -> PerJoint {
            std::array::from_fn(|joint| {
                let (low, high) = (limits.position_min_rad[joint], limits.position_max_rad[joint]);
                low + shares.next().unwrap() * (high - low)
            })
        };
        for _ in 0..300 {
            let (from, towards) = (pose(), pose());
            let to: PerJoint = std::array::from_fn(|joint| from[joint] + 0.02 * (towards[joint] - from[joint]));
            let way: f64 = (0..crate::robot::ARM_DOF).map(|joint| (to[joint] - from[joint]).abs()).sum();
            let (Room(before), Room(after)) = (space.room(&from), space.room(&to));
            for (before, after) in before.iter().zip(after) {
                assert!((before - after).abs() <= 2.0 * REACH_M * way, "{from:?} {to:?}");
            }
            assert!(!Room([1.0, 1.0, 2.0 * REACH_M * way]).is_beyond(way) && Room([5.0; 3]).is_beyond(way));
        }
    }

    #[test]
    fn an_arm_is_beyond_what_two_links_cannot_reach() {
        // 0.1 rad at 1.25 m, of two links
        assert!(Room([0.251; 3]).is_beyond(0.1) && !Room([0.249, 1.0, 1.0]).is_beyond(0.1));
    }

    #[test]
    fn what_is_outside_may_not_go_further_out() {
        let demanded = Room([0.3, -0.1, 0.2]).demanded();
        assert_eq!(demanded, Room([0.0, -0.1, 0.0]));
        assert_eq!(Room([0.1, -0.1, 0.1]).short_of(demanded), None);
        assert_eq!(Room([-0.1, 0.0, 0.1]).short_of(demanded), Some(Reason::Workspace));
        assert_eq!(Room([0.1, -0.2, 0.1]).short_of(demanded), Some(Reason::Floor));
        assert_eq!(Room([0.1, 0.0, -0.1]).short_of(demanded), Some(Reason::SelfCollision));
    }
}
