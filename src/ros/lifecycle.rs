//! A managed node: what `ros2 lifecycle` asks of it (https://design.ros2.org/articles/node_lifecycle.html). r2r has none, so its
//! services are served here, with the numbers of lifecycle_msgs and the labels and transitions of rcl_lifecycle.

use super::node::{Node, Publisher};
use super::qos::everything;
use super::time;
use crate::data::{Change, Moved, Stage};
use crate::error::Result;
use r2r::lifecycle_msgs::msg::{State, Transition, TransitionDescription, TransitionEvent};
use r2r::lifecycle_msgs::srv::{ChangeState, GetAvailableStates, GetAvailableTransitions, GetState};
use std::sync::{Arc, Mutex, PoisonError};

/// A change: its first number, the state in between and the numbers of its success, failure and error, and where failure leads.
struct Row {
    id: u8,
    label: &'static str,
    from: u8,
    between: u8,
    to: u8,
    back: u8,
}

const UNCONFIGURED: u8 = State::PRIMARY_STATE_UNCONFIGURED as u8;
const INACTIVE: u8 = State::PRIMARY_STATE_INACTIVE as u8;
const ACTIVE: u8 = State::PRIMARY_STATE_ACTIVE as u8;
const FINALIZED: u8 = State::PRIMARY_STATE_FINALIZED as u8;
const SHUTTING_DOWN: u8 = State::TRANSITION_STATE_SHUTTINGDOWN as u8;
const ERROR: u8 = State::TRANSITION_STATE_ERRORPROCESSING as u8;

/// By number, as lifecycle_msgs/State has them.
const STATES: [(u8, &str); 11] = [
    (0, "unknown"),
    (UNCONFIGURED, "unconfigured"),
    (INACTIVE, "inactive"),
    (ACTIVE, "active"),
    (FINALIZED, "finalized"),
    (10, "configuring"),
    (11, "cleaningup"),
    (SHUTTING_DOWN, "shuttingdown"),
    (13, "activating"),
    (14, "deactivating"),
    (ERROR, "errorprocessing"),
];

const ROWS: [Row; 7] = [
    Row { id: 1, label: "configure", from: UNCONFIGURED, between: 10, to: INACTIVE, back: UNCONFIGURED },
    Row { id: 2, label: "cleanup", from: INACTIVE, between: 11, to: UNCONFIGURED, back: INACTIVE },
    Row { id: 3, label: "activate", from: INACTIVE, between: 13, to: ACTIVE, back: INACTIVE },
    Row { id: 4, label: "deactivate", from: ACTIVE, between: 14, to: INACTIVE, back: ACTIVE },
    Row { id: 5, label: "shutdown", from: UNCONFIGURED, between: SHUTTING_DOWN, to: FINALIZED, back: FINALIZED },
    Row { id: 6, label: "shutdown", from: INACTIVE, between: SHUTTING_DOWN, to: FINALIZED, back: FINALIZED },
    Row { id: 7, label: "shutdown", from: ACTIVE, between: SHUTTING_DOWN, to: FINALIZED, back: FINALIZED },
];

fn number(stage: Stage) -> u8 {
    match stage {
        Stage::Unconfigured => UNCONFIGURED,
        Stage::Inactive => INACTIVE,
        Stage::Active => ACTIVE,
        Stage::Finalized => FINALIZED,
    }
}

fn state(id: u8) -> State {
    let label = STATES.iter().find(|(number, _)| *number == id).map_or("unknown", |(_, label)| label);
    State { id, label: label.into() }
}

fn described(id: u8, label: &str, from: u8, to: u8) -> TransitionDescription {
    TransitionDescription {
        transition: Transition { id, label: label.into() },
        start_state: state(from),
        goal_state: state(to),
    }
}

impl Row {
    fn of(change: Change, from: Stage) -> Option<&'static Self> {
        let from = number(from);
        ROWS.iter().find(|row| row.from == from && row.label == change.to_string())
    }

    fn change(&self) -> Option<Change> {
        Change::ALL.into_iter().find(|change| change.to_string() == self.label)
    }

    fn begins(&self) -> TransitionDescription {
        described(self.id, self.label, self.from, self.between)
    }

    /// What the state in between ends with. The numbers are 10 times the change's, which for the three shutdowns is 50.
    fn ends(&self) -> [TransitionDescription; 3] {
        let base = 10 * self.id.min(5);
        [
            described(base, "transition_success", self.between, self.to),
            described(base + 1, "transition_failure", self.between, self.back),
            described(base + 2, "transition_error", self.between, ERROR),
        ]
    }
}

/// What may be asked for in a stage.
fn available(stage: Stage) -> Vec<TransitionDescription> {
    ROWS.iter().filter(|row| row.from == number(stage)).map(Row::begins).collect()
}

/// Every transition there is.
fn graph() -> Vec<TransitionDescription> {
    let mut all: Vec<_> = ROWS.iter().map(Row::begins).collect();
    // the three shutdowns end alike
    all.extend(ROWS[..5].iter().flat_map(Row::ends));
    all.extend([
        described(60, "transition_success", ERROR, UNCONFIGURED),
        described(61, "transition_failure", ERROR, FINALIZED),
        described(62, "transition_error", ERROR, FINALIZED),
    ]);
    all
}

/// The row that is asked for: by its label if there is one, else by its number, as rclcpp does it.
fn asked(transition: &Transition, stage: Stage) -> Option<&'static Row> {
    let mut here = ROWS.iter().filter(|row| row.from == number(stage));
    here.find(|row| if transition.label.is_empty() { row.id == transition.id } else { row.label == transition.label })
}

/// Tells where a managed node is.
#[derive(Clone)]
pub struct Lifecycle {
    stage: Arc<Mutex<Stage>>,
    events: Publisher<TransitionEvent>,
}

impl Lifecycle {
    /// The node was led to another stage.
    pub fn moved(&self, moved: &Moved) {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner) = moved.to;
        if let Some(row) = Row::of(moved.change, moved.from) {
            let [success, ..] = row.ends();
            self.tell([row.begins(), success]);
        }
    }

    fn stage(&self) -> Stage {
        *self.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, passed: [TransitionDescription; 2]) {
        for TransitionDescription { transition, start_state, goal_state } in passed {
            let timestamp = (time::wall_now() * 1e9) as u64;
            let event = TransitionEvent { timestamp, transition, start_state, goal_state };
            if let Err(error) = self.events.send(&event) {
                tracing::warn!("{error}");
            }
        }
    }

    /// Asks for a change; whether it was made. One that was is told by [`Self::moved`].
    fn ask(&self, transition: &Transition, change: &mut impl FnMut(Change) -> bool) -> bool {
        let Some((row, wanted)) = asked(transition, self.stage()).and_then(|row| Some((row, row.change()?))) else {
            return false;
        };
        let done = change(wanted);
        if !done {
            let [_, failure, _] = row.ends();
            self.tell([row.begins(), failure]);
        }
        done
    }
}

impl Node {
    /// Serves what `ros2 lifecycle` asks. `change` leads the node on, and says whether it did; each change, whoever caused it, is
    /// told to [`Lifecycle::moved`] before `change` returns.
    pub fn manage(&mut self, mut change: impl FnMut(Change) -> bool + Send + 'static) -> Result<Lifecycle> {
        let events = self.publish::<TransitionEvent>("~/transition_event", everything())?;
        let lifecycle = Lifecycle { stage: Arc::new(Mutex::new(Stage::Unconfigured)), events };
        let asked = lifecycle.clone();
        self.serve::<ChangeState::Service>("~/change_state", move |request| ChangeState::Response {
            success: asked.ask(&request.transition, &mut change),
        })?;
        let at = lifecycle.clone();
        self.serve::<GetState::Service>("~/get_state", move |_| GetState::Response {
            current_state: state(number(at.stage())),
        })?;
        self.serve::<GetAvailableStates::Service>("~/get_available_states", |_| GetAvailableStates::Response {
            available_states: STATES.iter().map(|&(id, _)| state(id)).collect(),
        })?;
        let at = lifecycle.clone();
        self.serve::<GetAvailableTransitions::Service>("~/get_available_transitions", move |_| {
            GetAvailableTransitions::Response { available_transitions: available(at.stage()) }
        })?;
        self.serve::<GetAvailableTransitions::Service>("~/get_transition_graph", |_| {
            GetAvailableTransitions::Response { available_transitions: graph() }
        })?;
        Ok(lifecycle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_can_be_asked_for_is_what_the_stages_allow() {
        for stage in Stage::ALL {
            for change in Change::ALL {
                let row = Row::of(change, stage);
                assert_eq!(row.map(|row| row.to), change.leads(stage).map(number), "{change} from {stage}");
                assert!(row.is_none_or(|row| row.change() == Some(change)));
            }
            let offered: Vec<_> = available(stage).into_iter().map(|each| each.transition).collect();
            assert_eq!(offered.len(), Change::ALL.into_iter().filter(|change| change.leads(stage).is_some()).count());
            assert!(offered.iter().all(|transition| asked(transition, stage).is_some()));
        }
    }

    #[test]
    fn a_label_counts_before_a_number() {
        let ask = |id, label: &str, stage| asked(&Transition { id, label: label.into() }, stage).map(|row| row.id);
        assert_eq!(ask(0, "configure", Stage::Unconfigured), Some(1));
        assert_eq!(ask(5, "", Stage::Unconfigured), Some(5));
        assert_eq!(ask(0, "shutdown", Stage::Active), Some(7));
        assert_eq!(ask(5, "", Stage::Active), None, "the shutdown of another stage");
        assert_eq!(ask(3, "", Stage::Finalized), None);
    }
}
