"""Plays what a bag holds into a running policy that stays dry, and compares its decisions with those that the analysis foretold.
Topics have no order among them: before a state that is due for a decision, the policy says that it has heard the last command; the
decision is waited for. Nothing is timed."""

import json
import sys
from pathlib import Path

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import PoseStamped
from person import Person, require
from sensor_msgs.msg import JointState


def nanos(stamp):
    return stamp.sec * 10**9 + stamp.nanosec


def main():
    plan = json.loads(Path(sys.argv[1]).read_text())
    foretold = {decision["stamp"]: decision for decision in plan["decisions"]}
    rclpy.init()
    node = rclpy.create_node("player")
    person = Person(node)
    told = []
    node.create_subscription(DiagnosticArray, "/diagnostics", lambda array: told.extend(array.status), 10)
    publishers = {topic: node.create_publisher(JointState, topic, 10) for topic in ("/joint_states", "/joint_command")}
    for topic in publishers:
        person.until(f"the policy hears {topic}", lambda topic=topic: publishers[topic].get_subscription_count() > 1)
    person.until("a policy", lambda: person.lead("configure"))
    require(person.lead("activate"), "it is not activated")
    given = None
    heard = lambda: any(v.key == "command_stamp" and v.value == given for s in told for v in s.values)  # noqa: E731
    for message in plan["messages"]:
        if "goal" in message:
            goal = PoseStamped()
            goal.header.frame_id = message["frame"]
            goal.pose.position.x, goal.pose.position.y, goal.pose.position.z = message["goal"]
            goal.pose.orientation.w = 1.0
            person.until("a reader of the goal", lambda: person.goal.get_subscription_count() > 0)
            person.goal.publish(goal)
            told.clear()
            aims = lambda: any(s.message.startswith("active") and "no goal" not in s.message for s in told)  # noqa: E731
            person.until("the goal is heard", aims)
            continue
        state = JointState(name=message["name"], position=message["position"], velocity=message["velocity"])
        state.header.stamp.sec, state.header.stamp.nanosec = divmod(message["stamp"], 10**9)
        stamp, due = message["stamp"], message["topic"] == "/joint_states" and message["stamp"] in foretold
        if due and given is not None:
            person.until("the command is heard", heard)
        publishers[message["topic"]].publish(state)
        if message["topic"] == "/joint_command":
            given = f"{stamp / 1e9:.9f}"
        if due:
            person.until("a decision", lambda stamp=stamp: person.options and nanos(person.options[-1].header.stamp) >= stamp)
    require(len(person.options) == len(foretold), f"{len(person.options)} decisions; {len(foretold)} were foretold")
    for option in person.options:
        expected = foretold[nanos(option.header.stamp)]
        found = (option.option, option.duration)
        require(found == (expected["option"], expected["duration"]), f"{found} instead of {expected}")
        near = [abs(a - b) < 1e-6 for a, b in zip(option.option_probs, expected["probs"])]
        require(all(near) and abs(option.termination_prob - expected["end"]) < 1e-6, f"{option} instead of {expected}")
    played = sum(message["topic"] == "/joint_command" for message in plan["messages"])
    require(len(person.commands) <= played, "the policy commanded, and was not armed")


main()
