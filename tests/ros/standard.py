"""Listens where people look: /diagnostics and /rosout."""

import rclpy
from checks import require
from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus
from rcl_interfaces.msg import Log
from rclpy.qos import DurabilityPolicy, QoSProfile


def main():
    rclpy.init()
    node = rclpy.create_node("person")
    health, logs = [], []
    node.create_subscription(DiagnosticArray, "/diagnostics", health.append, 10)
    kept = QoSProfile(depth=100, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_subscription(Log, "/rosout", logs.append, kept)
    while not (health and logs):
        rclpy.spin_once(node)
    (status,) = health[0].status
    require((bytes(status.level), status.name), (DiagnosticStatus.WARN, "/policy"), "status")
    require([(value.key, value.value) for value in status.values], [("held_ticks", "40")], "values")
    (log,) = logs
    require((log.level, log.name, log.msg), (Log.WARN, "policy", "states are late age_secs=2.0"), "log")


main()
