//! Types that we read even from bags without definitions (sqlite3 before storage version 4): ours, and what they are made of.
//! The common ones: their packages' `.msg` files, common_interfaces and rcl_interfaces.

macro_rules! ours {
    ($($name:literal),* $(,)?) => { &[$((concat!("handoff/", $name), include_str!(concat!("../../../msg/", $name, ".msg")))),*] };
}

const OURS: &[(&str, &str)] = ours![
    "ArmCommands",
    "ArmStates",
    "EpisodeStats",
    "Fragment",
    "LearnerStatus",
    "OptionState",
    "PolicyWeights",
    "RolloutStatus",
    "TransitionAck",
    "TransitionBatch",
];

const COMMON: &[(&str, &str)] = &[
    ("builtin_interfaces/Time", "int32 sec\nuint32 nanosec"),
    ("builtin_interfaces/Duration", "int32 sec\nuint32 nanosec"),
    ("std_msgs/Header", "builtin_interfaces/Time stamp\nstring frame_id"),
    ("std_msgs/Bool", "bool data"),
    ("std_msgs/Empty", ""),
    ("std_msgs/Float32", "float32 data"),
    ("std_msgs/Float64", "float64 data"),
    ("std_msgs/Int32", "int32 data"),
    ("std_msgs/Int64", "int64 data"),
    ("std_msgs/String", "string data"),
    ("std_msgs/UInt8", "uint8 data"),
    ("std_msgs/UInt32", "uint32 data"),
    ("std_msgs/UInt64", "uint64 data"),
    ("std_msgs/MultiArrayDimension", "string label\nuint32 size\nuint32 stride"),
    ("std_msgs/MultiArrayLayout", "MultiArrayDimension[] dim\nuint32 data_offset"),
    ("std_msgs/Float32MultiArray", "MultiArrayLayout layout\nfloat32[] data"),
    ("std_msgs/Float64MultiArray", "MultiArrayLayout layout\nfloat64[] data"),
    ("geometry_msgs/Point", "float64 x\nfloat64 y\nfloat64 z"),
    ("geometry_msgs/Vector3", "float64 x\nfloat64 y\nfloat64 z"),
    ("geometry_msgs/Quaternion", "float64 x 0\nfloat64 y 0\nfloat64 z 0\nfloat64 w 1"),
    ("geometry_msgs/Pose", "Point position\nQuaternion orientation"),
    ("geometry_msgs/PoseStamped", "std_msgs/Header header\nPose pose"),
    ("geometry_msgs/Transform", "Vector3 translation\nQuaternion rotation"),
    ("geometry_msgs/TransformStamped", "std_msgs/Header header\nstring child_frame_id\nTransform transform"),
    ("tf2_msgs/TFMessage", "geometry_msgs/TransformStamped[] transforms"),
    (
        "sensor_msgs/JointState",
        "std_msgs/Header header\nstring[] name\nfloat64[] position\nfloat64[] velocity\nfloat64[] effort",
    ),
    ("trajectory_msgs/JointTrajectory", "std_msgs/Header header\nstring[] joint_names\nJointTrajectoryPoint[] points"),
    (
        "trajectory_msgs/JointTrajectoryPoint",
        "float64[] positions\nfloat64[] velocities\nfloat64[] accelerations\nfloat64[] effort\nbuiltin_interfaces/Duration time_from_start",
    ),
    ("rosgraph_msgs/Clock", "builtin_interfaces/Time clock"),
    ("diagnostic_msgs/KeyValue", "string key\nstring value"),
    (
        "diagnostic_msgs/DiagnosticStatus",
        "byte level\nstring name\nstring message\nstring hardware_id\nKeyValue[] values",
    ),
    ("diagnostic_msgs/DiagnosticArray", "std_msgs/Header header\nDiagnosticStatus[] status"),
    (
        "rcl_interfaces/Log",
        "builtin_interfaces/Time stamp\nuint8 level\nstring name\nstring msg\nstring file\nstring function\nuint32 line",
    ),
];

/// The definition of `package/Type`.
pub(super) fn text(name: &str) -> Option<&'static str> {
    OURS.iter().chain(COMMON).find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bag::schema::Schema;

    #[test]
    fn every_message_of_the_package_is_here_and_all_can_be_resolved() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/msg");
        let mut files: Vec<String> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        files.sort();
        let names: Vec<String> =
            OURS.iter().map(|(name, _)| format!("{}.msg", name.split('/').next_back().unwrap())).collect();
        assert_eq!(files, names);
        for (name, _) in OURS.iter().chain(COMMON) {
            Schema::known(name).unwrap();
        }
    }
}
