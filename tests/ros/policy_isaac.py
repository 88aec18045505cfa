"""An arm as Isaac Sim's bridge tells it, written from its documentation: joints in another order, fingers among them, no velocities,
values rounded to 1e-4, one command a tick out of a queue of ten, the last one held; and a person beside it."""

from collections import deque

import rclpy
from person import ARM, READY, Person, require
from rclpy.parameter import Parameter
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState

NAMES = ["panda_finger_joint2", *reversed(ARM), "panda_finger_joint1"]


class Isaac:
    def __init__(self, node):
        self.position = dict(zip(ARM, READY)) | {"panda_finger_joint1": 0.04, "panda_finger_joint2": 0.04}
        self.target = dict(self.position)
        self.queue = deque(maxlen=10)
        self.ticks, self.told = 0, True
        self.states = node.create_publisher(JointState, "joint_states", 10)
        self.clock = node.create_publisher(Clock, "/clock", 10)
        node.create_subscription(JointState, "joint_command", lambda command: self.queue.append(command), 10)
        node.create_timer(1 / 60, self.tick)

    def tick(self):
        self.ticks += 1
        if self.queue:
            command = self.queue.popleft()
            require(len(command.name) == len(command.position) > 0, "a command with as many positions as names")
            self.target |= {name: value for name, value in zip(command.name, command.position) if value == value}
        for name, target in self.target.items():
            self.position[name] += 0.7 * (target - self.position[name])
        nanos = round(self.ticks * 1e9 / 60)
        clock = Clock()
        clock.clock.sec, clock.clock.nanosec = divmod(nanos, 10**9)
        self.clock.publish(clock)
        if self.told:
            state = JointState(name=NAMES, position=[round(self.position[name], 4) for name in NAMES])
            state.header.stamp = clock.clock
            self.states.publish(state)


def main():
    rclpy.init()
    node = rclpy.create_node("isaac", parameter_overrides=[Parameter("use_sim_time", value=False)])
    arm, person = Isaac(node), Person(node)
    person.until("states", lambda: len(person.states) >= 10)
    person.decides_dry()
    person.moves(180)

    arm.told = False
    person.falls_silent("no states")
    person.keeps_limits(person.commands)
    arm.told = True
    silent = len(person.commands)
    person.listen(1.0)
    require(len(person.commands) == silent, "commands come again by themselves")

    person.moves(60, least=0.0)  # it may stand where the guard lets it go no farther
    person.agree("policy/arm", False)
    person.falls_silent("disarmed")


main()
