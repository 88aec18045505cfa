"""Waits for the latched weights of a training: `ros2 topic echo`, as it were. Usage: hears.py, in the training's domain."""

import sys
import time

import rclpy
from handoff.msg import PolicyWeights
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy

rclpy.init()
node = rclpy.create_node("listener")
heard = []
latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL, reliability=ReliabilityPolicy.RELIABLE)
node.create_subscription(PolicyWeights, "/policy_weights", heard.append, latched)
deadline = time.monotonic() + 60
while not heard and time.monotonic() < deadline:
    rclpy.spin_once(node, timeout_sec=0.1)
sys.exit(None if heard else "no weights within a minute")
