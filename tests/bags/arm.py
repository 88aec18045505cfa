"""Writes a bag of an arm that follows its commands into the folder that is given: a goal, then a second of states and commands at
60 Hz. With `everything`: 20 s, and what a policy node and its guard say. Needs rosbags."""

import sys
from pathlib import Path

import numpy as np
from messages import STORE
from rosbags.rosbag2 import StoragePlugin, Writer

TYPES = STORE.types
NAMES = [f"panda_joint{joint}" for joint in range(1, 8)]
READY = np.array([0.0, -0.785398, 0.0, -2.356194, 0.0, 1.570796, 0.785398])
KINDS = {
    "/goal_pose": "geometry_msgs/msg/PoseStamped",
    "/joint_states": "sensor_msgs/msg/JointState",
    "/joint_command": "sensor_msgs/msg/JointState",
}
MORE = {"/policy/option_state": "handoff/msg/OptionState", "/diagnostics": "diagnostic_msgs/msg/DiagnosticArray"}


def header(nanos, frame=""):
    return TYPES["std_msgs/msg/Header"](TYPES["builtin_interfaces/msg/Time"](nanos // 10**9, nanos % 10**9), frame)


def joints(nanos, position, velocity):
    return TYPES["sensor_msgs/msg/JointState"](header(nanos), NAMES, position, velocity, np.zeros(0))


def option(nanos, decision):
    """The option of a decision: each runs for 25 of them."""
    now, since = decision // 25 % 4, decision % 25
    probabilities = np.array([0.7 if one == now else 0.1 for one in range(4)], dtype=np.float32)
    values = np.linspace(0, 1, 4, dtype=np.float32)
    return TYPES["handoff/msg/OptionState"](header(nanos), 1, 0, now, since + 1, since == 0, 0.1, probabilities, values)


def guard(nanos, second):
    """A guard that is armed after 2 s, and limits the velocity once every 5 s."""
    value = TYPES["diagnostic_msgs/msg/KeyValue"]
    values = [value("guard/state", "armed" if 2 <= second else "disarmed"), value("guard/velocity", str(second // 5))]
    status = TYPES["diagnostic_msgs/msg/DiagnosticStatus"](second == 9, "policy", "the states are late" if second == 9 else "", "", values)
    return TYPES["diagnostic_msgs/msg/DiagnosticArray"](header(nanos), [status])


def main(path, everything):
    kinds = {**KINDS, **MORE} if everything else KINDS
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        link = {topic: writer.add_connection(topic, kind, typestore=STORE) for topic, kind in kinds.items()}

        def write(topic, time, message):
            writer.write(link[topic], time, STORE.serialize_cdr(message, link[topic].msgtype))

        point = TYPES["geometry_msgs/msg/Point"](0.45, 0.15, 0.4)
        pose = TYPES["geometry_msgs/msg/Pose"](point, TYPES["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0))
        start = 1_700_000_000 * 10**9
        write("/goal_pose", start, TYPES["geometry_msgs/msg/PoseStamped"](header(0, "panda_link0"), pose))
        for tick in range(1200 if everything else 60):
            stamp = 10 * 10**9 + round(tick * 10**9 / 60)
            phase = tick / 30 + np.arange(7)
            position = READY + 0.1 * np.sin(phase)
            velocity = 0.2 * np.cos(phase)
            write("/joint_states", start + stamp, joints(stamp, position, velocity))
            write("/joint_command", start + stamp + 2_000_000, joints(stamp, position + velocity / 20, np.zeros(0)))
            if everything and tick % 3 == 0:
                write("/policy/option_state", start + stamp + 1_000_000, option(stamp, tick // 3))
            if everything and tick % 60 == 0:
                write("/diagnostics", start + stamp + 1_500_000, guard(stamp, tick // 60))


main(Path(sys.argv[1]), sys.argv[2:] == ["everything"])
