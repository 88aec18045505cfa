"""`ros2 lifecycle` on the policy node, beside a managed node of rclpy: both say the same in every stage."""

import rclpy
from diagnostic_msgs.msg import DiagnosticArray
from lifecycle_msgs.msg import TransitionEvent
from lifecycle_msgs.srv import ChangeState, GetAvailableStates, GetAvailableTransitions, GetState
from person import require
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode, TransitionCallbackReturn
from rosgraph_msgs.msg import Clock


class Other(LifecycleNode):
    """Fails to configure at first, as a policy without weights."""

    ready = False

    def on_configure(self, state):
        return TransitionCallbackReturn.SUCCESS if self.ready else TransitionCallbackReturn.FAILURE


def described(each):
    return (each.transition.id, each.transition.label, *((state.id, state.label) for state in (each.start_state, each.goal_state)))


def main():
    rclpy.init()
    person, other = rclpy.create_node("person"), Other("other")
    executor = SingleThreadedExecutor()
    executor.add_node(person)
    executor.add_node(other)
    events, said = {"policy": [], "other": []}, []
    for node, passed in events.items():
        person.create_subscription(TransitionEvent, f"{node}/transition_event", passed.append, 100)
    person.create_subscription(DiagnosticArray, "/diagnostics", lambda told: said.extend(told.status), 10)
    weights = person.create_publisher(Clock, "ask_for_weights", 1)

    def until(what, holds):
        for _ in range(600):
            if holds():
                return
            executor.spin_once(timeout_sec=0.1)
        require(False, f"{what}: it does not come")

    def call(node, kind, name, request=None):
        client = person.create_client(kind, f"/{node}/{name}")
        until(f"service {name} of {node}", client.service_is_ready)
        answer = client.call_async(request or kind.Request())
        until(f"an answer of {name} of {node}", answer.done)
        return answer.result()

    def both(kind, name, read, request=None):
        ours, theirs = (read(call(node, kind, name, request)) for node in ("policy", "other"))
        require(ours == theirs, f"{name} says {ours}; rclpy says {theirs}")
        return ours

    def look():
        both(GetAvailableStates, "get_available_states", lambda it: sorted((each.id, each.label) for each in it.available_states))
        for name in ("get_available_transitions", "get_transition_graph"):
            both(GetAvailableTransitions, name, lambda it: sorted(described(each) for each in it.available_transitions))
        return both(GetState, "get_state", lambda it: (it.current_state.id, it.current_state.label))[1]

    def asks(number, label=""):
        request = ChangeState.Request()
        request.transition.id, request.transition.label = number, label
        return request

    def lead(number, label=""):
        return both(ChangeState, "change_state", lambda it: it.success, asks(number, label))

    until("events", lambda: all(person.count_publishers(f"/{node}/transition_event") == 1 for node in events))
    require(look() == "unconfigured", "it begins unconfigured")
    require(not lead(1) and look() == "unconfigured", "without weights it is not configured")
    until("a learner", lambda: weights.get_subscription_count() == 1)
    weights.publish(Clock())
    until("weights", lambda: any("configure to load it" in status.message for status in said if status.name == "/policy"))
    other.ready = True
    for number, label in [(3, ""), (0, "deactivate"), (99, ""), (0, "fly")]:  # rclpy's own raises at these
        answer = call("policy", ChangeState, "change_state", asks(number, label))
        require(not answer.success, f"{label or number} leads on from unconfigured")
    for number, label, stage in [
        (1, "configure", "inactive"),
        (0, "cleanup", "unconfigured"),
        (0, "configure", "inactive"),
        (3, "", "active"),
        (4, "", "inactive"),
        (0, "activate", "active"),
        (0, "shutdown", "finalized"),
    ]:
        require(lead(number, label), f"{label or number} leads to {stage}")
        require(look() == stage, f"{label or number} leads to {stage}")
    until("all events", lambda: all(len(passed) >= 16 for passed in events.values()))
    # rcl tells where from and where to, and leaves the transition empty
    ours, theirs = ([described(each)[2:] for each in passed] for passed in events.values())
    graph = call("policy", GetAvailableTransitions, "get_transition_graph").available_transitions
    require({described(each) for each in events["policy"]} <= {described(each) for each in graph}, "events are of the graph")
    require(ours == theirs, f"events {ours}; of rclpy {theirs}")
    require(all(0 < each.timestamp for each in events["policy"]), "events have their times")


main()
