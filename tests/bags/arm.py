"""Writes a bag of an arm that follows its commands into the folder that is given: a goal, then a second of states and commands at
60 Hz. Needs rosbags."""

import sys
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

STORE = get_typestore(Stores.ROS2_JAZZY)
TYPES = STORE.types
NAMES = [f"panda_joint{joint}" for joint in range(1, 8)]
READY = np.array([0.0, -0.785398, 0.0, -2.356194, 0.0, 1.570796, 0.785398])


def header(nanos, frame=""):
    return TYPES["std_msgs/msg/Header"](TYPES["builtin_interfaces/msg/Time"](nanos // 10**9, nanos % 10**9), frame)


def joints(nanos, position, velocity):
    return TYPES["sensor_msgs/msg/JointState"](header(nanos), NAMES, position, velocity, np.zeros(0))


def main(path):
    with Writer(path, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        link = {
            topic: writer.add_connection(topic, kind, typestore=STORE)
            for topic, kind in {
                "/goal_pose": "geometry_msgs/msg/PoseStamped",
                "/joint_states": "sensor_msgs/msg/JointState",
                "/joint_command": "sensor_msgs/msg/JointState",
            }.items()
        }

        def write(topic, time, message):
            writer.write(link[topic], time, STORE.serialize_cdr(message, link[topic].msgtype))

        point = TYPES["geometry_msgs/msg/Point"](0.45, 0.15, 0.4)
        pose = TYPES["geometry_msgs/msg/Pose"](point, TYPES["geometry_msgs/msg/Quaternion"](0.0, 0.0, 0.0, 1.0))
        start = 1_700_000_000 * 10**9
        write("/goal_pose", start, TYPES["geometry_msgs/msg/PoseStamped"](header(0, "panda_link0"), pose))
        for tick in range(60):
            stamp = 10 * 10**9 + round(tick * 10**9 / 60)
            phase = tick / 30 + np.arange(7)
            position = READY + 0.1 * np.sin(phase)
            velocity = 0.2 * np.cos(phase)
            write("/joint_states", start + stamp, joints(stamp, position, velocity))
            write("/joint_command", start + stamp + 2_000_000, joints(stamp, position + velocity / 20, np.zeros(0)))


main(Path(sys.argv[1]))
