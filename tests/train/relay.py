"""A foreign simulator's way of speaking: joints in another order, more joints between them, no velocities.

python3 relay.py FROM TO: what the arm in namespace FROM says is said in TO, and commands go back.
"""

import sys

import rclpy
from rclpy.executors import ExternalShutdownException
from sensor_msgs.msg import JointState


def main(inner, outer):
    rclpy.init(args=sys.argv)
    node = rclpy.create_node("relay")
    states = node.create_publisher(JointState, f"{outer}/joint_states", 10)
    commands = node.create_publisher(JointState, f"{inner}/joint_command", 10)

    def state(message):
        scrambled = JointState(header=message.header)
        scrambled.name = [*reversed(message.name), "lift_joint"]
        scrambled.position = [*reversed(message.position), 0.7]
        scrambled.name.insert(2, "rail_joint")
        scrambled.position.insert(2, 0.3)
        states.publish(scrambled)

    node.create_subscription(JointState, f"{inner}/joint_states", state, 10)
    node.create_subscription(JointState, f"{outer}/joint_command", commands.publish, 10)
    try:
        rclpy.spin(node)
    except (KeyboardInterrupt, ExternalShutdownException):
        pass  # the end of the test


main(sys.argv[1], sys.argv[2])
