"""Writes decoded.json into the folder that is given: messages of many types in both byte orders, with their values as rosbags decodes them.
Needs rosbags."""

import json
import sys
from pathlib import Path

import numpy as np
from messages import MESSAGES, STORE, message


def plain(thing):
    """As JSON has it."""
    if isinstance(thing, np.ndarray):
        return [plain(item) for item in thing.tolist()]
    if isinstance(thing, list):
        return [plain(item) for item in thing]
    if hasattr(thing, "__dataclass_fields__"):
        fields = [name for name in thing.__dataclass_fields__ if name != "__msgtype__" and not name.isupper()]  # constants
        return {name: plain(getattr(thing, name)) for name in fields}
    return thing


def main(out):
    kinds = [
        "sensor_msgs/msg/JointState",
        "geometry_msgs/msg/PoseStamped",
        "trajectory_msgs/msg/JointTrajectory",
        "tf2_msgs/msg/TFMessage",
        "diagnostic_msgs/msg/DiagnosticArray",
        "rosgraph_msgs/msg/Clock",
        "rcl_interfaces/msg/Log",
        "std_msgs/msg/Float32MultiArray",
        "std_msgs/msg/Float64MultiArray",
        "std_msgs/msg/Bool",
        "std_msgs/msg/UInt64",
        *[f"handoff/msg/{file.stem}" for file in sorted(MESSAGES.glob("*.msg"))],
        # not among the types that handoff knows: from their definitions alone
        "sensor_msgs/msg/PointCloud2",
        "sensor_msgs/msg/Imu",
        "nav_msgs/msg/OccupancyGrid",
        "rcl_interfaces/msg/ParameterEvent",
        "std_msgs/msg/Empty",
        "visualization_msgs/msg/Marker",
    ]
    lines = []
    for kind in kinds:
        text = STORE.generate_msgdef(kind, ros_version=2)[0]
        for index in range(8):
            data = bytes(STORE.serialize_cdr(message(kind), kind, little_endian=index % 2 == 0))
            lines.append({"type": kind, "text": text, "data": data.hex(), "value": plain(STORE.deserialize_cdr(data, kind))})
    (out / "decoded.json").write_text(json.dumps(lines))


main(Path(sys.argv[1]))
