"""Checks what Rust sends, changes it in a known way and sends it back; knows nothing of the Rust code."""

import array
import hashlib
import json

import rclpy
from checks import require, weights_hash
from handoff.msg import ArmCommands, ArmStates, PolicyWeights, TransitionBatch
from rclpy.qos import DurabilityPolicy, QoSProfile


def contract_hash(text):
    contract = json.loads(text)
    contract["told"] = {key: type(value)(0) for key, value in contract["told"].items()}
    return hashlib.sha256(json.dumps(contract, separators=(",", ":")).encode()).digest()


def batch(m):
    require(m.run, "00000000-0000-0000-0000-00000000002a", "run")
    require((m.life, m.rollout, m.incarnation, m.seq, m.base), (3, "/arm", 2**63 + 1, 11, 9), "heading")
    require(bytes(m.contract_hash), bytes(range(32)), "contract_hash")
    (f,) = m.fragments
    require((f.num_steps, f.obs_size, f.action_size), (2, 3, 2), "sizes")
    require(list(f.observations), [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0], "observations")
    require(list(f.action), [0.25, -0.25, 1.25, -1.25], "action")
    require(list(f.end), [f.NONE, f.TRUNCATED], "end")
    require(list(f.forced), [f.INIT, f.MAX_STEPS], "forced")
    require((list(f.final_steps), list(f.final_observations)), ([1], [7.0, 8.0, 9.0]), "finals")
    (e,) = m.episodes
    require((e.stamp.sec, e.stamp.nanosec, e.end), (12, 500_000_000, e.TRUNCATED), "episode")
    m.seq += 1
    f.reward = array.array("f", [2 * reward for reward in f.reward])
    f.end[1] = f.TERMINATED
    f.option_terminated = [not flag for flag in f.option_terminated]
    e.option_runs = [runs + 1 for runs in e.option_runs]
    return m


def weights(m):
    require(bytes(m.contract_hash), contract_hash(m.contract), "contract_hash")
    require(bytes(m.hash), weights_hash(m), "hash")
    m.version += 1
    m.parameters = array.array("f", [-value for value in m.parameters])
    m.hash = list(weights_hash(m))
    return m


def states(m):
    require((m.num_envs, m.dof, m.tick), (2, 9, 5), "states")
    require(m.header.stamp.nanosec, 250_000_000, "stamp")
    require(json.loads(m.told)["latency_ticks"], 1, "told")
    answer = ArmCommands(sim_life=m.sim_life, tick=m.tick, rollout="/arm", incarnation=7, num_envs=2, dof=9)
    answer.operation = [ArmCommands.RESET, ArmCommands.HOLD]
    answer.position = array.array("d", [value + 1.0 for value in m.position])
    answer.seed = [2**64 - 1, 0]
    return answer


def main():
    rclpy.init()
    node = rclpy.create_node("echo")
    latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
    ways = [
        (TransitionBatch, "batch", TransitionBatch, batch, 10),
        (PolicyWeights, "weights", PolicyWeights, weights, latched),
        (ArmStates, "states", ArmCommands, states, 10),
    ]
    publishers = [node.create_publisher(out, f"{name}/back", qos) for _, name, out, _, qos in ways]
    while not all(publisher.get_subscription_count() for publisher in publishers):
        rclpy.spin_once(node, timeout_sec=0.01)
    answered = []
    for (kind, name, _, change, qos), publisher in zip(ways, publishers):

        def answer(message, change=change, publisher=publisher, name=name):
            publisher.publish(change(message))
            answered.append(name)

        node.create_subscription(kind, name, answer, qos)
    while len(answered) < len(ways):
        rclpy.spin_once(node)
    # alive until what was sent is acknowledged
    for publisher in publishers:
        publisher.wait_for_all_acked()


main()
