//! franka_ros2's messages, where the program was built beside them: franka_msgs.

use super::Node;
use crate::error::Result;

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
}
