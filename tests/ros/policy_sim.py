"""The policy on the paced simulator: dry, armed, through a reset, disarmed."""

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from person import Person, require
from rosgraph_msgs.msg import Clock
from visualization_msgs.msg import MarkerArray


def main():
    rclpy.init()
    node = rclpy.create_node("person")
    person = Person(node)
    clocks = []
    node.create_subscription(Clock, "/clock", lambda clock: clocks.append(clock.clock.sec + clock.clock.nanosec * 1e-9), 10)
    person.until("states", lambda: len(person.states) >= 30 and len(clocks) >= 30)
    require(len(person.states[0].name) == 9, "arm and fingers")
    markers, health = [], []
    node.create_subscription(MarkerArray, "policy/markers", markers.append, 1)
    node.create_subscription(DiagnosticArray, "/diagnostics", lambda told: health.extend(told.status), 10)
    person.decides_dry()
    person.until("markers", lambda: markers and len(markers[-1].markers) == 3)
    goal, option, trail = markers[-1].markers
    require((goal.pose.position.x, goal.header.frame_id) == (0.5, "panda_link0"), f"the goal's marker is {goal}")
    require(option.text.startswith("option ") and len(trail.points) >= 2, f"markers {option.text!r}, {len(trail.points)} points")
    person.moves(120)
    of_policy = lambda: [dict((it.key, it.value) for it in each.values) for each in health if each.name == "/policy"]
    person.until("diagnostics of the guard", lambda: of_policy() and of_policy()[-1].get("guard/state") == "armed")
    told = of_policy()[-1]
    require({"guard/holds", "guard/saturation_ratio", "guard/scale"} <= told.keys(), f"diagnostics are {told}")
    reached = max(abs(a - b) for a, b in zip(person.states[-1].position[:7], person.states[0].position[:7]))
    require(reached > 0.05, f"the arm went {reached} rad")

    person.agree("sim/reset")
    person.until("time 0", lambda: clocks[-1] < clocks[0] + 0.5)
    person.listen(0.5)
    silent = len(person.commands)
    person.listen(1.0)
    require(len(person.commands) == silent, "commands go on after a reset")
    person.moves(60)

    require("guard.scale" in person.set_scale(1.5), "too much is refused")
    require(person.set_scale(0.1) == "" and person.scale() == 0.1, "a tenth of the limits")
    person.listen(1.5)
    slow = person.commands[-30:]
    step = max(abs(a - b) for x, y in zip(slow, slow[1:]) for a, b in zip(x.position, y.position))
    require(step <= 0.1 * 2.61 / 60 + 1e-6, f"at a tenth of the limits it steps {step} rad")

    require(person.lead("deactivate") and person.stage() == "inactive", "it is deactivated")
    person.falls_silent("deactivated")


main()
