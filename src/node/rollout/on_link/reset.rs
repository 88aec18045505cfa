//! A service resets the simulator before an episode: the arm is disarmed before that is asked, and until it is done.

use super::{OnLink, Stage};
use crate::link::OUT_OF_ORDER_SECS;

/// States that come this long after the answer are of after the reset, whatever their stamps [s].
const SETTLED_SECS: f64 = 0.5;

/// A reset that was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Asked {
    /// Header stamp of the state at which it was [s].
    stamp_secs: f64,
    /// When it was answered.
    answered_secs: Option<f64>,
}

impl OnLink {
    pub(super) fn is_resetting(&self) -> bool {
        matches!(self.stage, Stage::Resetting { .. })
    }

    /// The reset that was asked for is done, or was refused.
    pub fn reset_answered(&mut self, now_secs: f64) {
        if let Stage::Resetting { asked: Some(asked), .. } = &mut self.stage {
            asked.answered_secs = Some(now_secs);
        }
    }

    /// After each state: whether the simulator is to be reset now. Goes on once a state is from after the reset.
    pub(super) fn is_reset_due(&mut self, stamp_secs: f64, now_secs: f64) -> bool {
        let Stage::Resetting { start, asked } = self.stage else { return false };
        if !self.guard.is_quiet() || self.leaves {
            return false;
        }
        let Some(asked) = asked else {
            self.stage = Stage::Resetting { start, asked: Some(Asked { stamp_secs, answered_secs: None }) };
            return true;
        };
        let went_back = stamp_secs < asked.stamp_secs - OUT_OF_ORDER_SECS;
        if went_back || asked.answered_secs.is_some_and(|at| SETTLED_SECS <= now_secs - at) {
            self.stage = Stage::Moving { start, since_secs: stamp_secs };
        }
        false
    }
}
