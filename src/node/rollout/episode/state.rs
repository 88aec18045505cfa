//! An environment's state between two updates, for an exact resume.

use super::{Episode, Stage, Sums};
use crate::error::{Error, Result};
use crate::option::Running;
use crate::robot::ARM_DOF;
use crate::task::Start;
use nalgebra::{Isometry3, Quaternion, Translation3, UnitQuaternion};
use serde::{Deserialize, Serialize};

/// x y z [m], qw qx qy qz.
type Pose = [f64; 7];

/// Everything but what was recorded, which has been shipped.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EpisodeState {
    number: u64,
    t: u32,
    decisions: u64,
    base_from_goal: Pose,
    position: [f64; ARM_DOF],
    reference: [f64; ARM_DOF],
    running: Running,
    observation: Vec<f32>,
    stage: Resting,
    sums: Sums,
    recorded: u64,
}

/// A stage without a decision under way.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
enum Resting {
    Fresh,
    Starting { position: [f64; ARM_DOF], base_from_goal: Pose },
    Arrived,
}

impl Episode {
    /// Refuses while a step is under way or unshipped.
    pub(in crate::node::rollout) fn state(&self) -> Result<EpisodeState> {
        let stage = match &self.stage {
            Stage::Fresh => Resting::Fresh,
            Stage::Starting(start) => {
                Resting::Starting { position: start.position, base_from_goal: numbers(&start.base_from_goal) }
            }
            Stage::Arrived => Resting::Arrived,
            Stage::Pending(_) => return Err(Error::invalid("an environment is saved between two updates only")),
        };
        if !self.open.steps.is_empty() {
            return Err(Error::invalid("an environment is saved after its steps were shipped only"));
        }
        Ok(EpisodeState {
            number: self.number,
            t: self.t,
            decisions: self.decisions,
            base_from_goal: numbers(&self.base_from_goal),
            position: self.position,
            reference: self.reference,
            running: self.running,
            observation: self.observation.clone(),
            stage,
            sums: self.sums.clone(),
            recorded: self.recorded,
        })
    }

    /// Goes on from a state of an environment of the same contract.
    pub(in crate::node::rollout) fn restore(&mut self, state: EpisodeState) -> Result<()> {
        let options = self.sums.option_steps.len();
        let started = matches!(state.stage, Resting::Arrived);
        if state.sums.option_steps.len() != options || state.sums.option_runs.len() != options {
            return Err(Error::invalid(format!("a saved environment counts other options than the {options} here")));
        }
        if started && state.observation.len() != self.open.obs_size {
            let (found, want) = (state.observation.len(), self.open.obs_size);
            return Err(Error::invalid(format!("a saved environment observes {found} floats; {want} are right")));
        }
        self.stage = match state.stage {
            Resting::Fresh => Stage::Fresh,
            Resting::Arrived => Stage::Arrived,
            Resting::Starting { position, base_from_goal } => {
                Stage::Starting(Start { position, base_from_goal: pose(base_from_goal) })
            }
        };
        (self.number, self.t, self.decisions) = (state.number, state.t, state.decisions);
        self.base_from_goal = pose(state.base_from_goal);
        self.position = state.position;
        (self.reference, self.running, self.observation) = (state.reference, state.running, state.observation);
        (self.sums, self.recorded, self.open.first) = (state.sums, state.recorded, state.recorded);
        Ok(())
    }
}

fn numbers(pose: &Isometry3<f64>) -> Pose {
    let (at, turn) = (pose.translation.vector, pose.rotation);
    [at.x, at.y, at.z, turn.w, turn.i, turn.j, turn.k]
}

/// The very numbers: normalising again could change the last bit.
fn pose([x, y, z, w, i, j, k]: Pose) -> Isometry3<f64> {
    let turn = UnitQuaternion::new_unchecked(Quaternion::new(w, i, j, k));
    Isometry3::from_parts(Translation3::new(x, y, z), turn)
}
