//! What a rollout on a link says of itself.

use super::{OnLink, Stage};
use crate::node::Report;

/// Without a state for this long, that is said [s].
const SILENT_SECS: f64 = 5.0;

impl OnLink {
    /// What keeps the arm from acting, if something does. `topic` is where its states come from.
    fn aside(&self, topic: &str, now_secs: f64) -> Option<String> {
        let silent = self.heard_secs.is_none_or(|at| self.settings.guard.state_timeout_secs < now_secs - at);
        if silent {
            return Some(format!("waiting for joint states on {topic}"));
        }
        if self.is_resetting() {
            return Some("waiting for the simulator's reset".into());
        }
        if self.guard.is_quiet() {
            let why = self.trouble.clone().unwrap_or_else(|| self.guard.report().sentence);
            let ask = if self.settings.arms_itself && self.link.simulated { "" } else { "; call ~/arm" };
            return Some(format!("{why}{ask}"));
        }
        matches!(self.stage, Stage::Moving { .. }).then(|| "moving to a start pose".into())
    }

    /// What to do where no state comes: topic, and what would be right.
    fn silence(&self, topic: &str, now_secs: f64) -> Option<String> {
        let since = self.heard_secs.unwrap_or(0.0);
        (SILENT_SECS <= now_secs - since).then(|| {
            let whom = if self.link.simulated { "a simulator that plays" } else { "the robot's driver" };
            format!(
                "no joint states come on {topic} (sensor_msgs/JointState): start {whom} in this ROS domain, and look at the topic's \
                 name and namespace with `ros2 topic list`"
            )
        })
    }

    /// Looks at the time: what the protocol says of this arm from now on.
    pub fn look(&mut self, topic: &str, now_secs: f64) {
        let aside = self.aside(topic, now_secs);
        self.agent.aside(aside);
        // another run's policy moves no arm that was armed for this one
        self.agent.may_adopt(self.link.simulated || self.guard.is_quiet());
    }

    /// What it says to whoever looks after it.
    pub fn report(&self, topic: &str, now_secs: f64) -> Report {
        let mut report = self.agent.report();
        report.waits_for.extend(self.silence(topic, now_secs));
        report.counts.extend([
            ("late_ticks", self.ticks.late),
            ("missing_ticks", self.ticks.missing),
            ("refused_states", self.refused_states),
            ("blocked_moves", self.blocked_moves),
        ]);
        report
    }
}
