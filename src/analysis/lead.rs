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
        // one from before the arming was made dry
        let newest = |target: &JointState| target.stamp_secs == stamp_secs || self.own.is_some();
        let target = self.target.take().filter(newest);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(stamp_secs: f64, joint: f64) -> JointState {
        JointState { stamp_secs, names: vec!["a".into()], position: vec![joint], velocity: vec![] }
    }

    fn by(leads: Option<Leads>) -> Option<f64> {
        leads.map(|leads| match leads {
            Leads::By(command) => command.position[0],
            Leads::Nobody => f64::NEG_INFINITY,
        })
    }

    #[test]
    fn targets_lead_from_the_arming_to_the_last_command_and_else_the_commands_of_others() {
        let mut lead = Lead::new(0.05);
        assert_eq!(by(lead.target(at(1.0, 9.0))), None, "it is dry");
        assert_eq!(by(lead.command(at(7.0, 1.0), None, true)), Some(1.0), "another's");
        // armed between two decisions: it is held where it is, whatever it wanted before
        assert_eq!(by(lead.command(at(1.02, 2.0), Some(1.02), true)), Some(2.0));
        assert_eq!(by(lead.state(1.05)), None);
        assert_eq!(by(lead.command(at(1.05, 2.0), Some(1.05), true)), Some(2.0));
        assert_eq!(by(lead.target(at(1.05, 3.0))), Some(3.0));
        assert_eq!(by(lead.command(at(1.07, 2.1), Some(1.07), true)), None, "commands trail the target");
        assert_eq!(by(lead.state(1.10)), None);
        // recorded the other way round
        assert_eq!(by(lead.target(at(1.10, 4.0))), Some(4.0));
        assert_eq!(by(lead.command(at(1.10, 2.2), Some(1.10), true)), None);
        assert_eq!(by(lead.state(1.15)), None);
        // no command for more than a control period
        assert_eq!(by(lead.state(1.16)), Some(2.2));
        assert_eq!(by(lead.state(1.17)), None, "once");
        assert_eq!(by(lead.target(at(1.20, 9.0))), None);
        assert_eq!(by(lead.command(at(8.0, 1.5), None, true)), Some(1.5));
    }

    #[test]
    fn a_target_that_was_recorded_before_its_command_leads_with_it() {
        let mut lead = Lead::new(0.05);
        assert_eq!(by(lead.target(at(1.0, 3.0))), None);
        assert_eq!(by(lead.command(at(1.0, 2.0), Some(1.0), true)), Some(3.0));
    }

    #[test]
    fn trajectories_tell_an_armed_node_and_lead_nothing_themselves() {
        let mut lead = Lead::new(0.05);
        assert_eq!(by(lead.command(at(1.0, 2.0), Some(1.0), false)), None);
        assert_eq!(by(lead.target(at(1.0, 3.0))), Some(3.0));
        assert_eq!(by(lead.state(1.1)), Some(f64::NEG_INFINITY), "dry again, it starts where the arm stands");
    }
}
