"""Publishes large states, latched weights and chatter, and writes what was published into the file that is given:
{topic: [facts of each message]}."""

import json
import sys
import time
from pathlib import Path

import rclpy
from handoff.msg import PolicyWeights
from person import PATIENCE, require
from rclpy.duration import Duration
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState
from std_msgs.msg import String


def main():
    rclpy.init()
    node = rclpy.create_node("talker")
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    weights = node.create_publisher(PolicyWeights, "policy_weights", latched)
    states = node.create_publisher(JointState, "/arm/joint_states", 100)
    chatter = node.create_publisher(String, "chatter", 10)
    version = PolicyWeights(version=7, parameters=[0.5, 0.25])
    weights.publish(version)
    end = time.monotonic() + PATIENCE
    while not (states.get_subscription_count() and weights.get_subscription_count()):
        require(time.monotonic() < end, "nobody listens")
        rclpy.spin_once(node, timeout_sec=0.05)
    said = []
    for index in range(15):
        message = JointState(name=[f"joint{index}"], effort=[float(index)] * 20000)
        message.header.stamp.nanosec = index
        states.publish(message)
        chatter.publish(String(data="not asked for"))
        said.append(message)
    require(states.wait_for_all_acked(Duration(seconds=PATIENCE)), "a state did not arrive")
    facts = {
        "/policy_weights": [[version.version, list(version.parameters)]],
        "/arm/joint_states": [[m.header.stamp.nanosec, m.name, list(m.effort)] for m in said],
    }
    Path(sys.argv[1]).write_text(json.dumps(facts))


main()
