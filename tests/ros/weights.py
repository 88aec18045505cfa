"""A late joiner: latched weights by topic, then the same by service; checks their hash."""

import sys

import rclpy
from checks import require, weights_hash
from handoff.msg import PolicyWeights
from handoff.srv import GetWeights
from rclpy.qos import DurabilityPolicy, QoSProfile


def main():
    want_version, want_floats = (int(argument) for argument in sys.argv[1:])
    rclpy.init()
    node = rclpy.create_node("late")
    heard = []
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_subscription(PolicyWeights, "policy_weights", heard.append, latched)
    while not heard:
        rclpy.spin_once(node)
    client = node.create_client(GetWeights, "get_weights")
    client.wait_for_service()
    answer = client.call_async(GetWeights.Request())
    rclpy.spin_until_future_complete(node, answer)
    require(answer.result().available, True, "available")
    for weights in [heard[-1], answer.result().weights]:
        require((weights.version, len(weights.parameters)), (want_version, want_floats), "weights")
        require(bytes(weights.hash), weights_hash(weights), "hash")
    require(len(heard), 1, "messages latched")


main()
