"""Topics and random messages of the bags that are made."""

import random
from pathlib import Path

import numpy as np
from rosbags.interfaces import Nodetype
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

MESSAGES = Path(__file__).parents[2] / "msg"
STORE = get_typestore(Stores.ROS2_JAZZY)
for path in sorted(MESSAGES.glob("*.msg")):
    STORE.register(get_types_from_msg(path.read_text(), f"handoff/msg/{path.stem}"))
RANDOM = random.Random(7)
TOPICS = {
    "/joint_states": ("sensor_msgs/msg/JointState", False),
    "/ns/goal_pose": ("geometry_msgs/msg/PoseStamped", False),
    "/chatter": ("std_msgs/msg/String", False),
    "/policy_weights": ("handoff/msg/PolicyWeights", True),
    "/clock": ("rosgraph_msgs/msg/Clock", False),
    "/never": ("std_msgs/msg/Empty", False),
}


def value(kind, depth=0):
    """A random value of a field, as rosbags has it."""
    node, detail = kind
    if node == Nodetype.BASE:
        name = detail[0]
        if name == "string":
            return "".join(RANDOM.choice("abcé ") for _ in range(RANDOM.randrange(9)))
        if name == "bool":
            return RANDOM.random() < 0.5
        if name.startswith("float"):
            number = RANDOM.uniform(-1e3, 1e3)
            return float(np.float32(number)) if name == "float32" else number
        if name in ("byte", "octet", "char"):
            return RANDOM.randrange(128)
        bits = int(name.lstrip("uint"))
        return RANDOM.randrange(2**bits) if name[0] == "u" else RANDOM.randrange(-(2 ** (bits - 1)), 2 ** (bits - 1))
    if node == Nodetype.NAME:
        return message(detail, depth + 1)
    inner, length = detail
    count = length if node == Nodetype.ARRAY else RANDOM.randrange(5)
    values = [value(inner, depth) for _ in range(count)]
    if inner[0] == Nodetype.BASE and inner[1][0] != "string":
        kind = {"byte": "uint8", "octet": "uint8", "char": "uint8"}.get(inner[1][0], inner[1][0])
        return np.array(values, dtype=kind)
    return values


def message(name, depth=0):
    fields = STORE.fielddefs[name][1]
    return STORE.types[name](**{field: value(kind, depth) for field, kind in fields})


def stream(start=1_700_000_000_000_000_000, count=60):
    """Messages in the order in which they are recorded: mostly by time, some of one time, some late."""
    time = start
    for index in range(count):
        topic = RANDOM.choice([name for name in TOPICS if name != "/never"])
        time += RANDOM.choice([0, 1, 1_000_000, 7_000_000])
        late = 3_000_000 if index % 11 == 5 else 0
        name = TOPICS[topic][0]
        big = index % 7 == 3
        yield topic, time - late, bytes(STORE.serialize_cdr(message(name), name, little_endian=not big))
