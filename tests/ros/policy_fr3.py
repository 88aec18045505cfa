"""An FR3 as franka_ros2 tells it, written from its documentation: joint states at up to 1 kHz, best effort, one in twenty lost;
merged ones at 30 Hz beside them; a joint trajectory controller that takes new trajectories on the fly; a description that allows less speed than the data sheet.
And a person beside it.

policy_fr3.py PID_OF_THE_NODE
"""

import math
import os
import random
import signal
import sys
import time

import rclpy
from handoff.msg import PolicyWeights
from person import READY, Person, require
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from sensor_msgs.msg import JointState
from std_msgs.msg import String
from trajectory_msgs.msg import JointTrajectory

ARM = [f"fr3_joint{joint}" for joint in range(1, 8)]
SPEED = [1.0] * 7  # rad/s; the data sheet has 2.62, and more in the wrist
ACCELERATION = 10.0  # rad/s^2
SCALE = 0.2
TICK = 0.01  # s


def hermite(start, end, secs, at):
    """Position and velocity of the cubic between two (position, velocity)."""
    (p0, v0), (p1, v1), s = start, end, at / secs
    m0, m1 = v0 * secs, v1 * secs
    a, b = 2 * (p0 - p1) + m0 + m1, 3 * (p1 - p0) - 2 * m0 - m1
    return p0 + s * (m0 + s * (b + s * a)), (m0 + s * (2 * b + 3 * s * a)) / secs


class Controller:
    """interpolate_from_desired_state: true, allow_nonzero_velocity_at_trajectory_end: false."""

    def __init__(self, node):
        self.began, self.points = 0.0, [(0.0, [(position, 0.0) for position in READY])]
        self.accepted = []
        node.create_subscription(JointTrajectory, "fr3_arm_controller/joint_trajectory", self.accept, 10)

    def accept(self, message):
        require(list(message.joint_names) == ARM, f"joints {message.joint_names}")
        require(message.header.stamp.sec == message.header.stamp.nanosec == 0, "it begins now")
        require(message.points, "there are points")
        now, last = time.monotonic(), 0.0
        points = [(0.0, self.desired(now))]
        for point in message.points:
            secs = point.time_from_start.sec + point.time_from_start.nanosec * 1e-9
            require(secs > last, f"a point at {secs} s after one at {last} s")
            require(len(point.positions) == len(point.velocities) == 7, "seven joints")
            require(all(map(math.isfinite, [*point.positions, *point.velocities])), "numbers")
            points.append((secs, list(zip(point.positions, point.velocities))))
            last = secs
        require(abs(points[1][0] - 0.02) < 1e-9, f"the first point is at {points[1][0]} s")
        require(all(abs(velocity) < 1.2e-7 for _, velocity in points[-1][1]), "the last point is at rest")
        self.began, self.points = now, points
        self.accepted.append(points)

    def desired(self, now):
        passed = now - self.began
        for (t0, start), (t1, end) in zip(self.points, self.points[1:]):
            if passed < t1:
                return [hermite(a, b, t1 - t0, passed - t0) for a, b in zip(start, end)]
        return [(position, 0.0) for position, _ in self.points[-1][1]]


class Arm:
    def __init__(self, node):
        self.controller = Controller(node)
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.fast = node.create_publisher(JointState, "franka/joint_states", qos)
        self.merged = node.create_publisher(JointState, "joint_states", 10)
        self.rng, self.seen = random.Random(1), []
        node.create_timer(0.001, self.tick)
        node.create_timer(1 / 30, lambda: self.tell(self.merged, ["fr3_finger_joint1", "fr3_finger_joint2"]))

    def tick(self):
        now = time.monotonic()
        self.seen.append((now, self.controller.desired(now)))
        if self.rng.random() > 0.05:
            self.tell(self.fast)

    def tell(self, publisher, fingers=()):
        state = JointState(name=[*ARM, *fingers])
        state.header.stamp.sec, state.header.stamp.nanosec = divmod(time.time_ns(), 10**9)
        desired = self.seen[-1][1] if self.seen else self.controller.desired(time.monotonic())
        state.position = [position for position, _ in desired] + [0.04 for _ in fingers]
        state.velocity = [velocity for _, velocity in desired] + [0.0 for _ in fingers]
        state.effort = [0.0] * len(state.name)
        publisher.publish(state)


def describes(node):
    """As robot_state_publisher does it."""
    joints = "".join(
        f'<joint name="{name}" type="revolute"><limit effort="87" lower="-9" upper="9" velocity="{speed}"/></joint>'
        for name, speed in zip(ARM, SPEED)
    )
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_publisher(String, "robot_description", latched).publish(String(data=f'<robot name="fr3">{joints}</robot>'))


def keeps_limits(trajectories):
    """Inside each trajectory, from its first point to rest, and from one first point to the next: three ticks if two were lost."""
    for trajectory in trajectories:
        points = trajectory[1:]
        for (t0, start), (t1, end) in zip(points, points[1:]):
            require(abs(t1 - t0 - TICK) < 1e-6, f"points are {t1 - t0} s apart")
            for name, most, (p0, v0), (p1, v1) in zip(ARM, SPEED, start, end):
                require(abs(p1 - p0) <= SCALE * most * TICK, f"{name} is led {p1 - p0} rad in a tick")
                require(abs(v1 - v0) <= SCALE * ACCELERATION * TICK, f"{name} is accelerated by {(v1 - v0) / TICK} rad/s^2")
    for before, after in zip(trajectories, trajectories[1:]):
        for name, most, (p0, v0), (p1, v1) in zip(ARM, SPEED, before[1][1], after[1][1]):
            require(abs(p1 - p0) <= SCALE * most * 3 * TICK, f"{name} is led {p1 - p0} rad from one trajectory to the next")
            require(abs(v1 - v0) <= SCALE * ACCELERATION * 3 * TICK, f"{name} goes from {v0} to {v1} rad/s")


def main():
    rclpy.init()
    node = rclpy.create_node("fr3")
    describes(node)
    arm, person = Arm(node), Person(node, arm="fr3", states="franka/joint_states")
    person.until("states", lambda: len(person.states) >= 100)
    weights, latched = [], QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    node.create_subscription(PolicyWeights, "policy/policy_weights", weights.append, latched)
    person.until("the weights of the run, for who records", lambda: weights)
    person.decides_dry()
    taken = arm.controller.accepted
    require(taken == [], "nothing is commanded before arming")
    began = time.monotonic()
    person.agree("policy/arm", True)
    person.until("trajectories", lambda: len(taken) >= 300)
    rate = len(taken) / (time.monotonic() - began)
    require(rate <= 105, f"{rate} trajectories a second")
    keeps_limits(taken)
    moved = max(abs(position - ready) for (position, _), ready in zip(arm.seen[-1][1], READY))
    require(moved > 0.05, f"the arm moved {moved} rad")

    person.agree("policy/arm", False)
    person.listen(1.5)
    silent, at = len(taken), arm.seen[-1][1]
    person.listen(0.5)
    require(len(taken) == silent and arm.seen[-1][1] == at, "disarmed, it rests")

    # killed in motion: nobody brakes the arm but what it was told before
    person.agree("policy/arm", True)
    moves = lambda: max(abs(velocity) for _, velocity in arm.seen[-1][1])
    person.until("motion", lambda: moves() > 0.1)
    os.kill(int(sys.argv[1]), signal.SIGKILL)
    person.listen(1.0)
    require(moves() == 0.0, "it came to rest")
    require(len(taken[-1]) > 3, "the last trajectory led to rest")
    keeps_limits(taken[silent:])


main()
