//! A dress rehearsal: the machine of the policy node, guard and all, on the paced arm as Isaac Sim would be, in one loop without
//! ROS. It plays the episodes of [`super::evaluate::play`]: the same starts and goals.

use crate::config::{Purpose, Seed, Sim};
use crate::contract::{Contract, Snapshot};
use crate::data::{GoalPose, JointState};
use crate::error::{Error, Result};
use crate::guard;
use crate::link::{Command, Preset};
use crate::node::policy::{Pilot, Settings};
use crate::policy::Sampling;
use crate::robot::{ARM_DOF, Robot};
use crate::sim::Paced;
use crate::task::{Arm, Judgement, Start, Task};
use nalgebra::Isometry3;
use std::sync::Arc;

/// Isaac Sim's rounding of all values (isaacsim.ros2.bridge, Ros2Message.cpp).
const ROUNDING: f64 = 1e-4;
/// Its time from an arming's first states to the arming [s]: the policy decides dry meanwhile.
const DRY_SECS: f64 = 0.4;
/// Longest time that an arming may take [s].
const ARMING_SECS: f64 = 5.0;

/// How the simulator speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// As Isaac Sim: the arm's joints in order, then the fingers.
    Plain,
    /// Joints in another order with more joints between them, and no velocities.
    Scrambled,
}

/// How each of `episodes` episodes ends through a link of a simulator; in the order of the lockstep evaluation, which plays
/// `side_by_side` environments. Options and terminations are drawn otherwise.
pub fn rehearse(
    snapshot: &Arc<Snapshot>,
    sim: &Sim,
    (preset, guard): (Preset, &guard::Config),
    wire: Wire,
    episodes: usize,
    side_by_side: usize,
    seed: u64,
) -> Result<Vec<Judgement>> {
    if !preset.link().simulated {
        return Err(Error::invalid(format!("--link {} is hardware: give sim, isaac or isaac_moveit", preset.name())));
    }
    let mut stage = World::new(snapshot, sim, (preset, guard), wire, seed)?;
    let evaluation = Seed::root(seed).of(Purpose::Evaluation);
    let limits = snapshot.contract.robot.limits();
    (0..episodes)
        .map(|episode| {
            let (env, number) = (episode % side_by_side, episode / side_by_side);
            let draws = evaluation.child(env as u64).of(Purpose::Episodes);
            let start = stage.task.start(limits, &mut draws.rng(number as u64));
            stage
                .play(&start)
                .map_err(|error| Error::invalid(format!("episode {number} of environment {env}: {error}")))
        })
        .collect()
}

/// The node's machine, the arm, and time.
struct World {
    task: &'static dyn Task,
    contract: Arc<Contract>,
    base_frame: String,
    pilot: Pilot,
    paced: Paced,
    wire: Wire,
    /// Steady [s].
    now_secs: f64,
}

impl World {
    fn new(
        snapshot: &Arc<Snapshot>,
        sim: &Sim,
        (preset, guard): (Preset, &guard::Config),
        wire: Wire,
        seed: u64,
    ) -> Result<Self> {
        let contract = snapshot.contract.clone();
        let arm = if contract.robot == Robot::Both { Robot::Panda } else { contract.robot };
        let guard = guard.clone();
        let sim =
            Sim { state_rate_hz: guard.command_rate_hz, rounding: ROUNDING, told: Default::default(), ..sim.clone() };
        let mut pilot = Pilot::new(Settings {
            arm,
            preset,
            prefix: String::new(),
            described: None,
            guard,
            seed: Seed::root(seed).of(Purpose::Evaluation),
            sampling: Sampling::MeanAction,
            autostart: true,
        })?;
        pilot.weights(snapshot)?;
        let task = crate::task::find(&contract.task)?;
        let base_frame = format!("{}_link0", arm.prefix());
        Ok(Self { task, contract, base_frame, pilot, paced: Paced::new(arm, &sim)?, wire, now_secs: 0.0 })
    }

    /// One episode, as long as the task's.
    fn play(&mut self, start: &Start) -> Result<Judgement> {
        self.paced.place(&start.position)?;
        self.pilot.goal(&goal(&self.base_frame, &start.base_from_goal))?;
        let begun = self.now_secs;
        loop {
            self.tick()?;
            let waited = self.now_secs - begun;
            if DRY_SECS <= waited {
                match self.pilot.arm(self.now_secs) {
                    Ok(_) => break,
                    Err(error) if ARMING_SECS <= waited => return Err(error),
                    Err(_) => {}
                }
            }
        }
        let mut decisions = 0;
        loop {
            let (state, decided) = self.tick()?;
            if self.pilot.is_quiet() {
                return Err(Error::invalid(self.pilot.status(self.now_secs).sentence));
            }
            decisions += u32::from(decided);
            // the state of the tick after the last step shows where it led
            if decisions == self.task.episode_steps() + 1 {
                let arm = Arm::new(arm(&state.position), arm(&state.velocity), [0.0; ARM_DOF]);
                let action = vec![0.0; self.contract.action_size()];
                return Ok(self.task.judge(&arm, &start.base_from_goal, &action));
            }
        }
    }

    /// A tick of the simulator. Its true state, and whether the policy decided on it.
    fn tick(&mut self) -> Result<(JointState, bool)> {
        self.now_secs += self.paced.tick_secs();
        let (state, wrong) = self.paced.step()?;
        if let Some(wrong) = wrong {
            return Err(wrong);
        }
        self.pilot.clock(state.stamp_secs, self.now_secs);
        self.pilot.publishers(1);
        let heard = match self.wire {
            Wire::Plain => state.clone(),
            Wire::Scrambled => scrambled(state.clone()),
        };
        let acts = self.pilot.states(&heard, self.now_secs)?;
        if let Some(Command::Positions(command)) = acts.command {
            self.paced.push(command)?;
        }
        Ok((state, acts.option.is_some()))
    }
}

fn arm(values: &[f64]) -> [f64; ARM_DOF] {
    std::array::from_fn(|joint| values.get(joint).copied().unwrap_or(f64::NAN))
}

fn goal(frame: &str, base_from_goal: &Isometry3<f64>) -> GoalPose {
    let (at, turn) = (base_from_goal.translation.vector, base_from_goal.rotation);
    GoalPose {
        stamp_secs: 0.0,
        frame: frame.into(),
        position: [at.x, at.y, at.z],
        orientation: [turn.w, turn.i, turn.j, turn.k],
    }
}

fn scrambled(mut state: JointState) -> JointState {
    state.velocity.clear();
    state.names.reverse();
    state.position.reverse();
    for (place, name) in [(0, "rail_joint"), (4, "lift_joint")] {
        state.names.insert(place, name.into());
        state.position.insert(place, 0.7);
    }
    state
}
