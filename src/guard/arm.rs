//! Seven joints as one arm: what couples them may only slow them down.

use super::bounds::Bounds;
use super::joint::{Law, Step, allowed, brake, braking_jerk, toward};
use super::reason::{Reason, Reasons};
use super::space::{REACH_M, Room, Space};
use super::stop::{Motion, Stop};
use crate::robot::{ARM_DOF, PerJoint, jacobian};
use nalgebra::{SMatrix, SVector};

#[cfg(test)]
mod tests;

/// The speed of the tool centre point is planned at this share of its cap: a stop bends, and its way is looked at in a few places.
const SPEED_HEADROOM: f64 = 0.8;
/// Halvings in the search for the share of braking that keeps the speed.
const HALVINGS: u32 = 8;
/// A way is looked at in steps of about so much, the joints' ways added up [rad] ...
const LOOK_RAD: f64 = 0.05;
/// ... but at no more poses than these: seven joints' stops of a radian each.
const LOOKS: u32 = 140;

type Motions = [Motion; ARM_DOF];
type Linear = SMatrix<f64, 3, ARM_DOF>;

/// What the arm is to do in a tick.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Aim {
    /// Move to these positions [rad].
    Track(PerJoint),
    /// Come to rest and stay.
    Stop,
}

/// The commanded motion of the arm.
#[derive(Clone, Debug)]
pub(super) struct Arm {
    motions: Motions,
    bounds: [Bounds; ARM_DOF],
    /// Bounds that wait until the motion obeys them.
    next_bounds: Option<[Bounds; ARM_DOF]>,
    law: Law,
    space: Space,
    speed_m_per_sec: f64,
    tick_secs: f64,
    /// A boundary stopped the arm: it comes to rest before it is led on.
    blocked: bool,
}

fn positions(motions: &Motions) -> PerJoint {
    motions.map(|motion| motion.position)
}

impl Arm {
    /// At rest at `anchor`, which may lie beyond the bounds: then it may move inwards only.
    pub(super) fn new(
        anchor: &PerJoint,
        bounds: [Bounds; ARM_DOF],
        law: Law,
        space: Space,
        speed: f64,
        tick_secs: f64,
    ) -> Self {
        Self {
            motions: anchor.map(Motion::rest),
            bounds,
            next_bounds: None,
            law,
            space,
            speed_m_per_sec: speed,
            tick_secs,
            blocked: false,
        }
    }

    /// Commanded positions [rad].
    pub(super) fn positions(&self) -> PerJoint {
        positions(&self.motions)
    }

    /// Commanded velocities [rad/s].
    pub(super) fn velocities(&self) -> PerJoint {
        self.motions.map(|motion| motion.velocity)
    }

    /// Whether no joint moves.
    pub(super) fn is_rest(&self) -> bool {
        self.motions.iter().all(|motion| motion.is_rest())
    }

    /// The stop, tick by tick: positions [rad] and velocities [rad/s], the last at rest; none for an arm at rest.
    pub(super) fn way_to_rest(&self) -> Vec<(PerJoint, PerJoint)> {
        let stops: [Stop; ARM_DOF] = std::array::from_fn(|joint| self.bounds[joint].stop(self.motions[joint]));
        let total = stops.iter().map(Stop::secs).fold(0.0, f64::max);
        let ticks = (total / self.tick_secs).ceil() as u32;
        let motions = (1..=ticks).map(|tick| -> Motions {
            let secs = f64::from(tick) * self.tick_secs;
            std::array::from_fn(|joint| stops[joint].at(self.motions[joint], secs))
        });
        motions.map(|motions| (positions(&motions), motions.map(|motion| motion.velocity))).collect()
    }

    /// For so long along the stop [s].
    pub(super) fn coast(&mut self, secs: f64) {
        self.motions = std::array::from_fn(|joint| brake(&self.bounds[joint], self.motions[joint], secs).next);
    }

    /// Other bounds. They hold as soon as the motion obeys them and its stop under them has room; until then the arm brakes
    /// under the old.
    pub(super) fn rebound(&mut self, bounds: [Bounds; ARM_DOF]) {
        self.next_bounds = Some(bounds);
    }

    fn adopt(&mut self) -> bool {
        let Some(bounds) = self.next_bounds else { return true };
        let obeyed = self.motions.iter().zip(&bounds).all(|(motion, bounds)| bounds.hold(*motion, motion.position));
        let before = std::mem::replace(&mut self.bounds, bounds);
        let here = self.motions.map(|next| Step { next, jerk: None, limited: false });
        if obeyed && self.blocked_by(&here, self.space.room(&self.positions())).is_none() {
            self.next_bounds = None;
        } else {
            self.bounds = before;
        }
        self.next_bounds.is_none()
    }

    /// A target drawn into the joints' ranges, and then back along the way to it until there is room for the arm.
    pub(super) fn reachable(&self, target: &PerJoint) -> (PerJoint, Reasons) {
        let mut reasons = Reasons::default();
        let ranges = self.bounds.map(|bounds| bounds.range());
        let ends = positions(&self.ends());
        let clipped: PerJoint = std::array::from_fn(|joint| {
            let (low, high) = ranges[joint];
            // an arm that was found beyond its range is not driven in by force
            target[joint].clamp(low.min(ends[joint]), high.max(ends[joint]))
        });
        reasons.add_if(clipped != *target, Reason::Position);
        let demanded = self.space.room(&ends).demanded();
        let along = |share: f64| std::array::from_fn(|joint| ends[joint] + share * (clipped[joint] - ends[joint]));
        let blocked = |share: f64| self.space.room(&along(share)).short_of(demanded);
        let looks = looks(&ends, &clipped);
        let shares = (1..=looks).map(|look| f64::from(look) / f64::from(looks));
        let Some((beyond, reason)) = shares.clone().find_map(|share| Some((share, blocked(share)?))) else {
            return (clipped, reasons);
        };
        reasons.add(reason);
        let (mut free, mut beyond) = (beyond - 1.0 / f64::from(looks), beyond);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (free + beyond);
            if blocked(middle).is_none() {
                free = middle;
            } else {
                beyond = middle;
            }
        }
        (along(free), reasons)
    }

    /// Where the joints' stops end.
    fn ends(&self) -> Motions {
        std::array::from_fn(|joint| {
            let motion = self.motions[joint];
            Motion::rest(self.bounds[joint].stop(motion).end(motion))
        })
    }

    /// A tick. Tells what kept the arm from its aim.
    pub(super) fn advance(&mut self, aim: Aim) -> Reasons {
        let mut reasons = Reasons::default();
        let adopted = self.adopt();
        reasons.add_if(!adopted, Reason::Rates);
        self.blocked &= !self.is_rest();
        let steps = match aim {
            Aim::Track(target) if adopted && !self.blocked => self.led(&target, &mut reasons),
            Aim::Track(_) | Aim::Stop => self.braked(),
        };
        self.motions = steps.map(|step| step.next);
        reasons
    }

    fn braked(&self) -> [Step; ARM_DOF] {
        std::array::from_fn(|joint| brake(&self.bounds[joint], self.motions[joint], self.tick_secs))
    }

    /// Towards a target, as fast as the tool centre point may move, while the stop has room.
    fn led(&mut self, target: &PerJoint, reasons: &mut Reasons) -> [Step; ARM_DOF] {
        let mut steps: [Step; ARM_DOF] =
            std::array::from_fn(|joint| toward(&self.bounds[joint], self.motions[joint], target[joint], &self.law));
        reasons.add_if(steps.iter().any(|step| step.limited), Reason::Rates);
        let linear: Linear = jacobian(&self.positions()).fixed_rows::<3>(0).into_owned();
        if !self.slow(&linear, &steps) {
            reasons.add(Reason::TcpSpeed);
            steps = self.slowed(&linear, steps);
        }
        if let Some(reason) = self.blocked_by(&steps, self.space.room(&self.positions())) {
            reasons.add(reason);
            self.blocked = true;
            steps = self.braked();
        }
        steps
    }

    fn stops(&self, steps: &[Step; ARM_DOF]) -> [Stop; ARM_DOF] {
        std::array::from_fn(|joint| self.bounds[joint].stop(steps[joint].next))
    }

    /// Whether the tool centre point keeps its speed in the middle of the steps, after them, and on the way of their stop.
    ///
    /// Where accelerations are constant the velocity is linear in time and, but for the arm's turning, its norm convex: the most is
    /// where a piece of a joint's stop begins or ends, or where its acceleration changes sign. For the turning there are looks between.
    fn slow(&self, linear: &Linear, steps: &[Step; ARM_DOF]) -> bool {
        let most = SPEED_HEADROOM * self.speed_m_per_sec;
        let stops = self.stops(steps);
        let speed = |linear: &Linear, motions: &Motions| {
            (linear * SVector::<f64, ARM_DOF>::from_fn(|joint, _| motions[joint].velocity)).norm()
        };
        // the arm turns on its way, and the tip with it
        let within = |motions: &Motions| {
            speed(linear, motions) + self.bend(motions) <= most
                || speed(&jacobian(&positions(motions)).fixed_rows::<3>(0).into_owned(), motions) <= most
        };
        let signs = (0..ARM_DOF).map(|joint| steps[joint].next.acceleration.abs() / self.bounds[joint].jerk);
        let total = stops.iter().map(Stop::secs).fold(0.0, f64::max);
        let next = steps.map(|step| step.next);
        let ends = std::array::from_fn(|joint| stops[joint].end(next[joint]));
        let looks = looks(&positions(&next), &ends);
        let evenly = (0..looks).map(|look| total * f64::from(look) / f64::from(looks));
        let mut times = stops.iter().flat_map(Stop::edges).chain(signs).chain(evenly);
        within(&std::array::from_fn(|joint| self.midway(joint, &steps[joint])))
            && times.all(|secs| within(&std::array::from_fn(|joint| stops[joint].at(next[joint], secs))))
    }

    /// Since where the arm is now its Jacobian has changed the tip's speed by less than this [m/s].
    fn bend(&self, motions: &Motions) -> f64 {
        let turned = |joint: usize| (motions[joint].position - self.motions[joint].position).abs();
        let swept: f64 = motions.iter().map(|motion| motion.velocity.abs()).sum();
        REACH_M * swept * (0..ARM_DOF).map(turned).sum::<f64>()
    }

    /// A joint in the middle of its step.
    fn midway(&self, joint: usize, step: &Step) -> Motion {
        let (motion, secs) = (self.motions[joint], 0.5 * self.tick_secs);
        match step.jerk {
            Some(jerk) => motion.after(jerk, secs),
            None => self.bounds[joint].stop(motion).at(motion, secs),
        }
    }

    /// The largest share of the steps, the rest braking, that keeps the speed.
    fn slowed(&self, linear: &Linear, wanted: [Step; ARM_DOF]) -> [Step; ARM_DOF] {
        let braked = self.braked();
        let dt = self.tick_secs;
        let shared = |share: f64| -> [Step; ARM_DOF] {
            std::array::from_fn(|joint| {
                let (bounds, motion) = (&self.bounds[joint], self.motions[joint]);
                let Some(jerk) = wanted[joint].jerk else { return braked[joint] };
                let braking = braking_jerk(bounds, motion, dt);
                let jerk = braking + share * (jerk - braking);
                if !allowed(bounds, motion, jerk, dt) {
                    return braked[joint];
                }
                Step { next: motion.after(jerk, dt), jerk: Some(jerk), limited: true }
            })
        };
        let (mut best, mut good, mut bad) = (braked, 0.0, 1.0);
        for _ in 0..HALVINGS {
            let middle = 0.5 * (good + bad);
            let steps = shared(middle);
            if self.slow(linear, &steps) {
                (good, best) = (middle, steps);
            } else {
                bad = middle;
            }
        }
        best
    }

    /// No joint goes farther in a step and its stop [rad]: one may turn back, but goes no farther than its speed carries it.
    fn way(&self, joint: usize, next: Motion, stop: &Stop) -> f64 {
        (next.position - self.motions[joint].position).abs() + stop.secs() * stop.fastest(next)
    }

    /// The first boundary that the stop of the steps would cross; `room` is where the arm is now.
    fn blocked_by(&self, steps: &[Step; ARM_DOF], room: Room) -> Option<Reason> {
        let stops = self.stops(steps);
        let next = steps.map(|step| step.next);
        let ends = std::array::from_fn(|joint| stops[joint].end(next[joint]));
        if room.is_beyond((0..ARM_DOF).map(|joint| self.way(joint, next[joint], &stops[joint])).sum()) {
            return None;
        }
        let demanded = room.demanded();
        let total = stops.iter().map(Stop::secs).fold(0.0, f64::max);
        let looks = looks(&positions(&next), &ends);
        (1..=looks).find_map(|look| {
            // evenly along the way of a constant deceleration
            let secs = total * (1.0 - (1.0 - f64::from(look) / f64::from(looks)).sqrt());
            let pose = std::array::from_fn(|joint| stops[joint].at(next[joint], secs).position);
            self.space.room(&pose).short_of(demanded)
        })
    }
}

/// At how many poses a way is looked at.
fn looks(from: &PerJoint, to: &PerJoint) -> u32 {
    let way: f64 = from.iter().zip(to).map(|(from, to)| (to - from).abs()).sum();
    (way / LOOK_RAD).ceil().clamp(1.0, f64::from(LOOKS)) as u32
}
