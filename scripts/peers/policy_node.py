"""A policy node in rclpy and PyTorch, as one is commonly written: joint states in, a decision, a joint command out. It decides as
`handoff policy` does, with the same weights, and has no guard.

Usage: policy_node.py SETTINGS --ros-args ..., SETTINGS a JSON object. Prints its name once it listens.
`handoff bench latency --peers` calls it.
"""

import json
import sys

import numpy as np

settings = json.loads(sys.argv[1])
sys.path.append(settings["rclpy"])

import rclpy
import torch
from geometry_msgs.msg import PoseStamped
from handoff.msg import PolicyWeights
from rclpy.qos import DurabilityPolicy, QoSProfile
from sensor_msgs.msg import JointState

DENAVIT_HARTENBERG = [  # a, d, alpha of each joint, Craig's convention
    (0.0, 0.333, 0.0), (0.0, 0.0, -np.pi / 2), (0.0, 0.316, np.pi / 2), (0.0825, 0.0, np.pi / 2),
    (-0.0825, 0.384, -np.pi / 2), (0.0, 0.0, np.pi / 2), (0.088, 0.0, np.pi / 2),
]  # fmt: skip
TIP = np.array([0.0, 0.0, 0.107 + 0.1034, 1.0])
LOGIT_MAX = 6.0


def tool(q):
    """Position of the tool centre point [m]."""
    frame = np.eye(4)
    for (a, d, alpha), angle in zip(DENAVIT_HARTENBERG, q):
        ca, sa, c, s = np.cos(alpha), np.sin(alpha), np.cos(angle), np.sin(angle)
        frame = frame @ np.array(
            [[c, -s, 0.0, a], [s * ca, c * ca, -sa, -d * sa], [s * sa, c * sa, ca, d * ca], [0.0, 0.0, 0.0, 1.0]]
        )
    return (frame @ TIP)[:3]


class Actor(torch.nn.Module):
    def __init__(self, flat):
        super().__init__()
        widths = [settings["obs"], *settings["hidden"]]
        outputs = settings["options"] * (settings["action"] + 2)
        layers = []
        for inputs, width in zip(widths, [*widths[1:], outputs]):
            layer = torch.nn.Linear(inputs, width)
            for parameter in (layer.weight, layer.bias):
                parameter.data, flat = flat[: parameter.numel()].view_as(parameter).clone(), flat[parameter.numel() :]
            layers += [layer, torch.nn.Tanh()]
        self.layers = torch.nn.Sequential(*layers[:-1])

    def forward(self, observation):
        return self.layers(observation)


class Policy:
    def __init__(self, node):
        self.names = settings["joints"]
        self.low, self.high = np.array(settings["position_min_rad"]), np.array(settings["position_max_rad"])
        self.actor = self.goal = self.reference = self.option = None
        self.age = 0
        self.draw = np.random.default_rng(1)
        latched = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
        node.create_subscription(PolicyWeights, "/policy_weights", self.take, latched)
        node.create_subscription(PoseStamped, "goal_pose", self.aim, 1)
        node.create_subscription(JointState, "joint_states", self.decide, 1)
        self.commands = node.create_publisher(JointState, "joint_command", 1)

    def take(self, weights):
        self.mean, self.std = np.array(weights.normaliser_mean), np.array(weights.normaliser_std)
        self.clip = weights.normaliser_clip
        self.actor = Actor(torch.from_numpy(np.array(weights.parameters)))

    def aim(self, goal):
        position = goal.pose.position
        self.goal = np.array([position.x, position.y, position.z])

    def decide(self, state):
        if self.actor is None or self.goal is None:
            return
        places = [state.name.index(name) for name in self.names]
        position, velocity = np.array(state.position)[places], np.array(state.velocity)[places]
        if self.reference is None:
            self.reference = position
        tip = tool(position)
        parts = [position, velocity, self.reference - position, tip, self.goal, self.goal - tip]
        normalised = np.clip((np.concatenate(parts) - self.mean) / self.std, -self.clip, self.clip)
        with torch.inference_mode():
            heads = self.actor(torch.from_numpy(normalised.astype(np.float32)))
            mean, ends, over = heads.split([len(heads) - 2 * settings["options"]] + 2 * [settings["options"]])
            if self.ends(ends):
                self.option, self.age = int(torch.multinomial(torch.softmax(over, 0), 1)), 0
            self.age += 1
            action = torch.tanh(mean.view(settings["options"], -1)[self.option]).numpy()
        reference = np.clip(self.reference + settings["scale_rad"] * action, self.low, self.high)
        leash = settings["leash_rad"]
        self.reference = np.clip(reference, position - leash, position + leash)
        command = JointState(name=self.names, position=self.reference.tolist())
        command.header.stamp = state.header.stamp
        self.commands.publish(command)

    def ends(self, logits):
        if self.option is None or self.age >= settings["max_steps"]:
            return True
        if self.age < settings["min_steps"]:
            return False
        logit = float(logits[self.option].clamp(-LOGIT_MAX, LOGIT_MAX))
        return self.draw.random() < 1.0 / (1.0 + np.exp(-logit))


def main():
    torch.set_num_threads(1)
    rclpy.init()
    node = rclpy.create_node("policy")
    policy = Policy(node)  # noqa: F841, its subscriptions live as long
    print(f"rclpy, torch {torch.__version__}", flush=True)
    rclpy.spin(node)


main()
