//! Quality of service by name. Depth is history on the wire; what waits for an actor is bounded by its own queue.

/// A QoS profile.
pub type Qos = r2r::QosProfile;

/// Newest wins, nothing lost on the way: states and commands in lockstep, Isaac Sim's topics.
pub fn newest() -> Qos {
    Qos::default().keep_last(1).reliable().volatile()
}

/// Newest wins, a lost one is not sent again: states of franka_ros2, whose writers are best effort.
pub fn sensor() -> Qos {
    Qos::default().keep_last(1).best_effort().volatile()
}

/// Everything of a numbered stream. DDS overwrites what is not acknowledged once `depth` are on the way, so the
/// protocol's window must be smaller; `depth` covers a window of 8 for each of 16 writers, and their resends.
pub fn everything() -> Qos {
    Qos::default().keep_last(128).reliable().volatile()
}

/// The last value, also for who comes late: weights, descriptions.
pub fn latched() -> Qos {
    Qos::default().keep_last(1).reliable().transient_local()
}
