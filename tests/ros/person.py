"""A person beside a policy: asks, listens, and looks at what is commanded. Knows the arm from its data sheet alone."""

import sys
import time

import rclpy
from geometry_msgs.msg import PoseStamped
from handoff.msg import OptionState
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_srvs.srv import SetBool, Trigger

ARM = [f"panda_joint{joint}" for joint in range(1, 8)]
SPEED = [2.175] * 4 + [2.61] * 3  # rad/s
READY = [0.0, -0.785398, 0.0, -2.356194, 0.0, 1.570796, 0.785398]
PATIENCE = 20.0


def require(holds, what):
    if not holds:
        sys.exit(f"{sys.argv[0]}: {what}")


class Person:
    def __init__(self, node):
        self.node = node
        self.commands, self.states, self.options = [], [], []
        node.create_subscription(JointState, "joint_command", self.commands.append, 100)
        node.create_subscription(JointState, "joint_states", self.states.append, qos_profile_sensor_data)
        node.create_subscription(OptionState, "policy/option_state", self.options.append, 10)
        self.goal = node.create_publisher(PoseStamped, "goal_pose", 1)

    def until(self, what, holds):
        end = time.monotonic() + PATIENCE
        while not holds():
            require(time.monotonic() < end, f"{what}: not within {PATIENCE} s")
            rclpy.spin_once(self.node, timeout_sec=0.1)

    def listen(self, secs):
        end = time.monotonic() + secs
        while time.monotonic() < end:
            rclpy.spin_once(self.node, timeout_sec=0.02)

    def tell_goal(self):
        goal = PoseStamped()
        goal.header.frame_id = "panda_link0"
        position = goal.pose.position
        position.x, position.y, position.z = 0.5, 0.2, 0.4
        goal.pose.orientation.w = 1.0
        self.until("a reader of the goal", lambda: self.node.count_subscribers("goal_pose") > 0)
        self.goal.publish(goal)

    def ask(self, service, data=None):
        kind = Trigger if data is None else SetBool
        client = self.node.create_client(kind, service)
        self.until(f"service {service}", client.service_is_ready)
        request = kind.Request() if data is None else kind.Request(data=data)
        answer = client.call_async(request)
        self.until(f"an answer of {service}", answer.done)
        return answer.result()

    def agree(self, service, data=None):
        """Asks until it is granted: discovery takes a moment."""
        said = []

        def granted():
            answer = self.ask(service, data)
            said.append(answer.message)
            return answer.success

        end = time.monotonic() + PATIENCE
        while not granted():
            require(time.monotonic() < end, f"{service} was refused: {said[-1]}")
            self.listen(0.1)

    def decides_dry(self):
        """Active, a goal: decisions, no commands; refused to arm before."""
        refused = self.ask("policy/arm", True)
        require(not refused.success and "activate" in refused.message, f"arming says {refused.message!r}")
        self.agree("policy/activate", True)
        self.tell_goal()
        self.until("decisions", lambda: len(self.options) >= 10)
        require(self.commands == [], f"{len(self.commands)} commands came before arming")
        stamps = [option.header.stamp.sec + option.header.stamp.nanosec * 1e-9 for option in self.options]
        for before, after in zip(stamps, stamps[1:]):
            require(abs(after - before - 0.05) < 0.026, f"decisions at {before} and {after}")
        require(len(self.options[-1].option_probs) == 4, "four options")

    def moves(self, count, least=0.05):
        """Commands that begin where the arm stands and keep its limits."""
        first = len(self.commands)
        stood = dict(zip(self.states[-1].name, self.states[-1].position))
        self.agree("policy/arm", True)
        self.until("commands", lambda: len(self.commands) >= first + count)
        commands = self.commands[first:]
        require(all(list(command.name) == ARM for command in commands), "a command names the arm's joints in order")
        for joint, position in zip(ARM, commands[0].position):
            require(abs(position - stood[joint]) < 2e-3, f"{joint} begins at {position}, and stands at {stood[joint]}")
        self.keeps_limits(commands)
        moved = max(abs(a - b) for a, b in zip(commands[-1].position, commands[0].position))
        require(moved >= least, f"the arm was told to move {moved} rad")

    def keeps_limits(self, commands):
        for before, after in zip(commands, commands[1:]):
            for joint in range(7):
                step = abs(after.position[joint] - before.position[joint])
                require(step <= SPEED[joint] / 60 + 1e-6, f"{ARM[joint]} is told to step {step} rad in 1/60 s")

    def falls_silent(self, why):
        """The commands end, at rest, and do not come again by themselves."""
        end = time.monotonic() + PATIENCE
        before = -1
        while before != len(self.commands):
            require(time.monotonic() < end, f"{why}: the commands do not end")
            before = len(self.commands)
            self.listen(1.0)
        last = self.commands[-2:]
        step = max(abs(a - b) for a, b in zip(last[0].position, last[1].position))
        require(step <= 20 / 60**2, f"{why}: the last step is {step} rad, more than one tick's deceleration")
