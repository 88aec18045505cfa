//! What led the policy: where it wanted to go itself while the node was armed, else the commands of others.

use crate::data::JointState;
use crate::link::OUT_OF_ORDER_SECS;

/// Stamps are this exact [s].
const STAMP_SECS: f64 = 1e-3;

/// What leads from the next state on.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Leads {
    /// This.
    By(JointState),
    /// Nobody: decisions start where the arm stands.
    Nobody,
}

/// Tells an armed node from a dry one by its commands. Armed it alone has publishers, and each command carries the stamp of a state; a
/// command of another that does so too is taken for its own.
#[derive(Debug)]
pub(super) struct Lead {
    period_secs: f64,
    /// The node's last command while it is armed: its stamp, and itself where the node hears it as well.
    own: Option<(f64, Option<JointState>)>,
    /// A target that no command has followed yet.
    target: Option<JointState>,
    /// A target leads since the arming.
    targets: bool,
}

impl Lead {
    /// Of a node with this control period.
    pub(super) fn new(period_secs: f64) -> Self {
        Self { period_secs, own: None, target: None, targets: false }
    }

    /// A state is about to be decided on. Where no command came for a control period, or time went back, the node is dry again, and its
    /// last command leads.
    pub(super) fn state(&mut self, stamp_secs: f64) -> Option<Leads> {
        let armed = -OUT_OF_ORDER_SECS..=self.period_secs + STAMP_SECS;
        let (_, last) = self.own.take_if(|(stamp, _)| !armed.contains(&(stamp_secs - *stamp)))?;
        (self.target, self.targets) = (None, false);
        Some(last.map_or(Leads::Nobody, Leads::By))
    }

    /// A command. `answers`: the state that it answers; `heard`: the node listens to such commands.
    pub(super) fn command(&mut self, command: JointState, answers: Option<f64>, heard: bool) -> Option<Leads> {
        let Some(stamp_secs) = answers else { return heard.then_some(Leads::By(command)) };
        let target = self.target.take_if(|target| target.stamp_secs <= stamp_secs);
        self.targets |= target.is_some();
        self.own = Some((stamp_secs, heard.then(|| command.clone())));
        // before the first target, the guard's reference is where its commands hold the arm
        target.or((heard && !self.targets).then_some(command)).map(Leads::By)
    }

    /// Where the policy wants to go.
    pub(super) fn target(&mut self, target: JointState) -> Option<Leads> {
        if self.own.as_ref().is_some_and(|(stamp, _)| target.stamp_secs - stamp <= self.period_secs + STAMP_SECS) {
            self.targets = true;
            return Some(Leads::By(target));
        }
        self.target = Some(target);
        None
    }
}
