"""An FR3 that tells its mode, as franka_ros2's robot state broadcaster does; written from its documentation: after a reflex or a
user stop the driver ends its controllers, broadcasters among them, until a person brings them back. Its hand, as franka_gripper
serves it. And that person."""

import time

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from franka_msgs.action import Grasp, Homing, Move
from franka_msgs.msg import FrankaRobotState as State
from person import READY, Person, require
from rclpy.action import ActionServer
from rclpy.callback_groups import ReentrantCallbackGroup
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.task import Future
from sensor_msgs.msg import JointState
from std_srvs.srv import Trigger
from trajectory_msgs.msg import JointTrajectory

ARM = [f"fr3_joint{joint}" for joint in range(1, 8)]
SAG = 0.01  # rad


class Fr3:
    def __init__(self, node):
        self.position, self.mode, self.tells_state, self.tells_mode = list(READY), State.ROBOT_MODE_IDLE, True, True
        self.accepted = []
        qos = QoSProfile(depth=1, reliability=ReliabilityPolicy.BEST_EFFORT)
        self.joints = node.create_publisher(JointState, "franka/joint_states", qos)
        self.state = node.create_publisher(State, "franka_robot_state_broadcaster/robot_state", 10)
        node.create_subscription(JointTrajectory, "fr3_arm_controller/joint_trajectory", self.accept, 10)
        node.create_timer(0.005, self.tick)

    def accept(self, trajectory):
        self.accepted.append(trajectory)
        if self.mode in (State.ROBOT_MODE_IDLE, State.ROBOT_MODE_MOVE):
            self.mode, self.position = State.ROBOT_MODE_MOVE, list(trajectory.points[0].positions)

    def tick(self):
        joints = JointState(name=ARM, position=self.position, velocity=[0.0] * 7)
        joints.header.stamp.sec, joints.header.stamp.nanosec = divmod(time.time_ns(), 10**9)
        if self.tells_state:
            self.joints.publish(joints)
        if self.tells_state and self.tells_mode:
            self.state.publish(State(header=joints.header, robot_mode=self.mode))


class Hand:
    """Grasps what is `between` its fingers [m]; takes no time, or until it is stopped."""

    def __init__(self, node):
        self.goals, self.running, self.between, self.slow = [], None, 0.0, False
        apart = ReentrantCallbackGroup()
        self.servers = [
            ActionServer(node, kind, f"franka_gripper/{name}", self.executes(name, kind), callback_group=apart)
            for name, kind in [("homing", Homing), ("move", Move), ("grasp", Grasp)]
        ]
        node.create_service(Trigger, "franka_gripper/stop", self.stop, callback_group=apart)

    def executes(self, name, kind):
        async def execute(handle):
            goal = handle.request
            self.goals.append((name, goal))
            self.running = Future()
            if not self.slow:
                self.running.set_result(True)
            success = await self.running
            if name == "grasp":
                epsilon = goal.epsilon
                success &= goal.width - epsilon.inner < self.between < goal.width + epsilon.outer
            (handle.succeed if success else handle.abort)()
            return kind.Result(success=success, error="" if success else "nothing is there")

        return execute

    def stop(self, _, answer):
        self.goals.append(("stop", None))
        self.running.set_result(False)
        answer.success = True
        return answer


def hand_does_as_asked(node, person, told):
    hand = Hand(node)

    def asked(opens, names):
        before = len(hand.goals)
        person.agree("policy/hand", opens)
        person.until(names, lambda: len(hand.goals) >= before + len(names))
        found = [name for name, _ in hand.goals[before:]]
        require(found == names, f"the hand is sent {found}, not {names}")

    def is_told(**wanted):
        def values():
            return {each.key: each.value for status in told for each in status.values if each.key.startswith("hand/")}

        told.clear()
        wanted = {f"hand/{key}": value for key, value in wanted.items()}
        person.until(wanted, lambda: wanted.items() <= values().items())

    asked(True, ["homing", "move"])
    require(abs(hand.goals[1][1].width - 0.08) < 1e-9, f"it opens to {hand.goals[1][1].width} m")
    is_told(holds="false", busy="false")
    hand.between = 0.05
    asked(False, ["grasp"])
    is_told(holds="true", busy="false", failures="0")
    asked(True, ["move"])
    is_told(holds="false", busy="false", failures="0")
    hand.between = 0.0
    asked(False, ["grasp"])
    is_told(holds="false", busy="false", failures="1")
    hand.slow = True
    asked(True, ["move"])
    is_told(busy="true")
    asked(False, ["stop", "grasp"])
    hand.running.set_result(True)
    is_told(busy="false", failures="2", timeouts="0")


def main():
    rclpy.init()
    node = rclpy.create_node("fr3")
    robot, person = Fr3(node), Person(node, arm="fr3", states="franka/joint_states")
    told = []
    node.create_subscription(DiagnosticArray, "/diagnostics", lambda array: told.extend(array.status), 10)

    def is_told(words):
        told.clear()
        person.until(f"diagnostics say {words!r}", lambda: any(words in status.message for status in told))

    def stays_disarmed(why):
        is_told(f"arming is refused now: {why}")
        refused = person.ask("policy/arm", True)
        require(not refused.success and why in refused.message, f"arming says {refused.message!r}")

    def rests(why):
        before = len(robot.accepted)
        person.listen(0.5)
        require(len(robot.accepted) == before, f"{why}: trajectories come")

    def moves():
        """Armed, from where the arm stands."""
        stands, before = list(robot.position), len(robot.accepted)
        person.agree("policy/arm", True)
        person.until("trajectories", lambda: len(robot.accepted) >= before + 50)
        first = robot.accepted[before].points[0].positions
        require(max(abs(a - b) for a, b in zip(first, stands)) < 1e-3, f"it begins at {list(first)}, and stands at {stands}")

    # no motion without a mode, nor in one that forbids it
    robot.tells_mode = False
    person.until("states", lambda: len(person.states) >= 50)
    person.until("a policy", lambda: person.lead("configure"))
    require(person.lead("activate"), "it is not activated")
    person.tell_goal()
    person.until("decisions", lambda: len(person.options) >= 5)
    stays_disarmed("the robot's mode is not heard")
    robot.tells_mode = True
    for mode, words in [
        (State.ROBOT_MODE_OTHER, "the robot stopped"),
        (State.ROBOT_MODE_GUIDING, "the robot is led by hand"),
        (State.ROBOT_MODE_REFLEX, "the robot stopped itself"),
        (State.ROBOT_MODE_USER_STOPPED, "the user stop is pressed"),
        (State.ROBOT_MODE_AUTOMATIC_ERROR_RECOVERY, "the robot recovers"),
    ]:
        robot.mode = mode
        stays_disarmed(words)
    require(robot.accepted == [], "nothing is commanded before arming")
    robot.mode = State.ROBOT_MODE_IDLE
    moves()

    # a stop ends the motion, and says why; a person brings the robot back, tells so, and arms
    for mode, words in [
        (State.ROBOT_MODE_REFLEX, "the robot stopped itself"),
        (State.ROBOT_MODE_USER_STOPPED, "the user stop is pressed"),
    ]:
        robot.mode = mode
        is_told(f"stopped: {words}")
        rests(words)
        robot.tells_state = False
        stays_disarmed("no joint states come")
        robot.mode, robot.tells_state = State.ROBOT_MODE_IDLE, True
        robot.position = [position - SAG for position in robot.position]
        stays_disarmed("the robot stopped: recover, then arm again")
        rests("the robot is back")
        person.agree("policy/recover", False)
        is_told("disarmed")
        rests("recovered")
        moves()

    hand_does_as_asked(node, person, told)

    # the broadcaster alone is gone
    robot.tells_mode = False
    is_told("stopped: the robot's mode is not heard")
    rests("no mode")
    robot.tells_mode = True
    moves()


main()
