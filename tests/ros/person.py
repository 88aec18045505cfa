"""A person beside a policy: asks, listens, and looks at what is commanded. Knows the arm from its data sheet alone."""

import sys
import time

import rclpy
from geometry_msgs.msg import PoseStamped
from handoff.msg import OptionState
from lifecycle_msgs.srv import ChangeState, GetAvailableTransitions, GetState
from rcl_interfaces.msg import Parameter, ParameterType, ParameterValue
from rcl_interfaces.srv import GetParameters, SetParameters
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


def secs(stamp):
    return stamp.sec + stamp.nanosec * 1e-9


class Person:
    def __init__(self, node, arm="panda", states="joint_states"):
        self.node, self.base = node, f"{arm}_link0"
        self.commands, self.states, self.options = [], [], []
        node.create_subscription(JointState, "joint_command", self.commands.append, 100)
        node.create_subscription(JointState, states, self.states.append, qos_profile_sensor_data)
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
        goal.header.frame_id = self.base
        position = goal.pose.position
        position.x, position.y, position.z = 0.5, 0.2, 0.4
        goal.pose.orientation.w = 1.0
        self.until("a reader of the goal", lambda: self.node.count_subscribers("goal_pose") > 0)
        self.goal.publish(goal)

    def call(self, kind, service, request):
        client = self.node.create_client(kind, service)
        self.until(f"service {service}", client.service_is_ready)
        answer = client.call_async(request)
        self.until(f"an answer of {service}", answer.done)
        return answer.result()

    def ask(self, service, data=None):
        kind = Trigger if data is None else SetBool
        return self.call(kind, service, kind.Request() if data is None else kind.Request(data=data))

    def stage(self):
        """As `ros2 lifecycle get` does it."""
        return self.call(GetState, "policy/get_state", GetState.Request()).current_state.label

    def lead(self, label):
        """As `ros2 lifecycle set` does it: the transition of that label, if it is on offer."""
        offered = self.call(GetAvailableTransitions, "policy/get_available_transitions", GetAvailableTransitions.Request())
        found = [each.transition for each in offered.available_transitions if each.transition.label == label]
        return bool(found) and self.call(ChangeState, "policy/change_state", ChangeState.Request(transition=found[0])).success

    def set_scale(self, scale):
        """As `ros2 param set` does it; what is said against it."""
        value = ParameterValue(type=ParameterType.PARAMETER_DOUBLE, double_value=scale)
        request = SetParameters.Request(parameters=[Parameter(name="guard.scale", value=value)])
        (result,) = self.call(SetParameters, "policy/set_parameters", request).results
        require(result.successful != bool(result.reason), f"a result {result}")
        return result.reason

    def scale(self):
        (value,) = self.call(GetParameters, "policy/get_parameters", GetParameters.Request(names=["guard.scale"])).values
        return value.double_value

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
        require(not refused.success and "no policy" in refused.message, f"arming says {refused.message!r}")
        self.until("a policy", lambda: self.lead("configure"))  # its weights may be on their way
        refused = self.ask("policy/arm", True)
        require(not refused.success and "activate" in refused.message, f"arming says {refused.message!r}")
        require(self.lead("activate"), "it is not activated")
        self.tell_goal()
        self.until("decisions", lambda: len(self.options) >= 10)
        require(self.commands == [], f"{len(self.commands)} commands came before arming")
        stamps = [secs(option.header.stamp) for option in self.options]
        periods = sorted(after - before for before, after in zip(stamps, stamps[1:]))
        # a state that was lost on a busy machine makes a period longer
        require(periods[0] > 0.03 and abs(periods[len(periods) // 2] - 0.05) < 0.02, f"decisions are {periods} s apart")
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
            passed = secs(after.header.stamp) - secs(before.header.stamp)
            if passed < 0.0:
                continue  # another arming, after a reset
            passed = max(passed, 1 / 60) if passed > 0.0 else 2 / 60  # no state came between them
            for joint in range(7):
                step = abs(after.position[joint] - before.position[joint])
                require(step <= SPEED[joint] * passed + 1e-6, f"{ARM[joint]} is told to step {step} rad in {passed} s")

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
