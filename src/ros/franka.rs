//! franka_ros2, where the program was built beside its messages (franka_msgs): a robot's mode, and its hand.

use super::Node;
use crate::error::Result;
use crate::guard::Goal;

impl Node {
    /// Gives every `robot_mode` of a robot that tells its state on `topic` (franka_msgs/FrankaRobotState) to `each`. Whether it
    /// can: a program that was built without franka_msgs hears none.
    pub fn hear_modes(&mut self, topic: &str, each: impl FnMut(u8) + Send + 'static) -> Result<bool> {
        #[cfg(franka_msgs)]
        {
            let mut each = each;
            let take = move |state: r2r::franka_msgs::msg::FrankaRobotState| each(state.robot_mode);
            self.subscribe(topic, super::sensor(), take)?;
        }
        #[cfg(not(franka_msgs))]
        let _neither = (topic, each);
        Ok(cfg!(franka_msgs))
    }

    /// The hand that the node `name` of franka_ros2's package franka_gripper serves; none without franka_msgs.
    pub fn hand(&mut self, name: &str) -> Result<Option<Hand>> {
        #[cfg(franka_msgs)]
        return Hand::new(self, name).map(Some);
        #[cfg(not(franka_msgs))]
        {
            let _nobody = name;
            Ok(None)
        }
    }
}

/// Nobody's.
#[cfg(not(franka_msgs))]
pub enum Hand {}

#[cfg(not(franka_msgs))]
impl Hand {
    /// Never called.
    pub async fn pursue(&self, _goal: Goal) -> Result<()> {
        match *self {}
    }
}

#[cfg(franka_msgs)]
pub use with_franka_msgs::Hand;

#[cfg(franka_msgs)]
mod with_franka_msgs {
    use super::super::{Client, srv};
    use super::{Goal, Node, Result};
    use crate::error::Error;
    use futures::StreamExt as _;
    use r2r::franka_msgs::action::{Grasp, Homing, Move};
    use r2r::franka_msgs::msg::GraspEpsilon;
    use r2r::{ActionClient, WrappedActionTypeSupport};
    use std::time::Duration;

    /// Between the fingers when open; the hand's whole range (Franka Hand data sheet, grasping range) [m].
    const OPEN_M: f64 = 0.08;
    /// Between fingers that hold nothing, at most [m].
    const CLOSED_M: f64 = 0.002;
    /// Of the fingers; franka_gripper's default [m/s].
    const SPEED_M_PER_SEC: f64 = 0.1;
    /// Of a grasp; the hand holds 70 N (Franka Hand data sheet, continuous grasping force) [N].
    const FORCE_N: f64 = 40.0;
    /// How long the hand's node may take to say that it has heard a goal.
    const PATIENCE: Duration = Duration::from_secs(2);

    /// A Franka Hand.
    pub struct Hand {
        name: String,
        homing: ActionClient<Homing::Action>,
        open: ActionClient<Move::Action>,
        grasp: ActionClient<Grasp::Action>,
        stop: Client<srv::Trigger::Service>,
    }

    impl Hand {
        pub(super) fn new(node: &mut Node, name: &str) -> Result<Self> {
            let refused = |error| Error::invalid(format!("the actions of {name} cannot be used: {error}"));
            let stop = node.client(&format!("{name}/stop"))?;
            let inner = &mut node.inner;
            Ok(Self {
                name: name.into(),
                homing: inner.create_action_client(&format!("{name}/homing")).map_err(refused)?,
                open: inner.create_action_client(&format!("{name}/move")).map_err(refused)?,
                grasp: inner.create_action_client(&format!("{name}/grasp")).map_err(refused)?,
                stop,
            })
        }

        /// Until it is done; an error says why it is not. A grasp is done where something is between the fingers.
        pub async fn pursue(&self, goal: Goal) -> Result<()> {
            match goal {
                Goal::Home => {
                    let done = self.send(&self.homing, "homing", Homing::Goal::default()).await?;
                    self.outcome("homing", done.success, &done.error)
                }
                Goal::Open => {
                    let wide = Move::Goal { width: OPEN_M, speed: SPEED_M_PER_SEC };
                    let done = self.send(&self.open, "move", wide).await?;
                    self.outcome("move", done.success, &done.error)
                }
                Goal::Grasp => {
                    let half = 0.5 * OPEN_M;
                    let anything = Grasp::Goal {
                        width: half,
                        epsilon: GraspEpsilon { inner: half - CLOSED_M, outer: half },
                        speed: SPEED_M_PER_SEC,
                        force: FORCE_N,
                    };
                    let done = self.send(&self.grasp, "grasp", anything).await?;
                    self.outcome("grasp", done.success, &done.error)
                }
                Goal::Stop => {
                    let done = self.stop.call(&srv::Trigger::Request::default(), PATIENCE).await?;
                    self.outcome("stop", done.success, &done.message)
                }
            }
        }

        fn outcome(&self, what: &str, success: bool, why: &str) -> Result<()> {
            if success { Ok(()) } else { Err(Error::invalid(format!("{}/{what} failed: {why}", self.name))) }
        }

        async fn send<A>(&self, client: &ActionClient<A>, what: &str, goal: A::Goal) -> Result<A::Result>
        where
            A: WrappedActionTypeSupport + 'static,
        {
            let failed = |error| Error::invalid(format!("{}/{what} was not accepted: {error}", self.name));
            let accepted = client.send_goal_request(goal).map_err(failed)?;
            let Ok(accepted) = tokio::time::timeout(PATIENCE, accepted).await else {
                let sentence = format!("{}/{what} does not answer: does the hand's node run?", self.name);
                return Err(Error::invalid(sentence));
            };
            let (_goal, result, mut feedback) = accepted.map_err(failed)?;
            let mut result = std::pin::pin!(result);
            loop {
                tokio::select! {
                    done = &mut result => return done.map(|(_status, result)| result).map_err(failed),
                    Some(_width) = feedback.next() => {}
                }
            }
        }
    }
}
