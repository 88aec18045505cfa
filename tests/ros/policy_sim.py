"""The policy on the paced simulator: dry, armed, through a reset, disarmed."""

import rclpy
from person import Person, require
from rosgraph_msgs.msg import Clock


def main():
    rclpy.init()
    node = rclpy.create_node("person")
    person = Person(node)
    clocks = []
    node.create_subscription(Clock, "/clock", lambda clock: clocks.append(clock.clock.sec + clock.clock.nanosec * 1e-9), 10)
    person.until("states", lambda: len(person.states) >= 30 and len(clocks) >= 30)
    require(len(person.states[0].name) == 9, "arm and fingers")
    person.decides_dry()
    person.moves(120)
    reached = max(abs(a - b) for a, b in zip(person.states[-1].position[:7], person.states[0].position[:7]))
    require(reached > 0.05, f"the arm went {reached} rad")

    person.agree("sim/reset")
    person.until("time 0", lambda: clocks[-1] < clocks[0] + 0.5)
    person.listen(0.5)
    silent = len(person.commands)
    person.listen(1.0)
    require(len(person.commands) == silent, "commands go on after a reset")
    person.moves(60)
    person.agree("policy/arm", False)
    person.falls_silent("disarmed")


main()
