"""Makes bags of every combination in the folder that is given, and beside each what an independent reader reads of it:
NAME.json holds [[topic, time, sha256 of the bytes], ...] in the order of that reader. Needs rosbags, mcap and their compressors."""

import hashlib
import json
import random
import sqlite3
import sys
from pathlib import Path

import numpy as np
import zstandard
from mcap.reader import make_reader
from mcap.writer import CompressionType, IndexType
from mcap.writer import Writer as McapWriter
from rosbags.interfaces import Nodetype, Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import CompressionFormat, CompressionMode, Reader, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from ruamel.yaml import YAML

OUT = Path(sys.argv[1])
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
LONG = QosTime(9223372036, 854775807)


def qos(latched):
    durability = QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE
    return Qos(
        QosHistory.KEEP_LAST, 3, QosReliability.RELIABLE, durability, LONG, LONG, QosLiveliness.AUTOMATIC, LONG, False
    )


REST = """  deadline: {sec: 2147483647, nsec: 4294967295}
  lifespan: {sec: 9223372036, nsec: 854775807}
  liveliness: 1
  liveliness_lease_duration: {sec: 9223372036, nsec: 854775807}
  avoid_ros_namespace_conventions: false
"""


def qos_text(latched, words):
    if words:
        durability = "transient_local" if latched else "volatile"
        return f"- history: keep_last\n  depth: 3\n  reliability: reliable\n  durability: {durability}\n{REST}"
    return f"- history: 1\n  depth: 3\n  reliability: 1\n  durability: {1 if latched else 2}\n{REST}"


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


def plain(thing):
    """As JSON has it."""
    if isinstance(thing, np.ndarray):
        return [plain(item) for item in thing.tolist()]
    if isinstance(thing, list):
        return [plain(item) for item in thing]
    if hasattr(thing, "__dataclass_fields__"):
        fields = [name for name in thing.__dataclass_fields__ if name != "__msgtype__" and not name.isupper()]  # constants
        return {name: plain(getattr(thing, name)) for name in fields}
    return thing


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


def note(name, messages):
    lines = [[topic, time, hashlib.sha256(data).hexdigest()] for topic, time, data in messages]
    (OUT / f"{name}.json").write_text(json.dumps(lines))


def by_rosbags(name, path):
    with Reader(path) as reader:
        note(name, [(connection.topic, time, data) for connection, time, data in reader.messages()])


def of_mcap(path):
    with path.open("rb") as file:
        found = make_reader(file).iter_messages(log_time_order=True)
        return [(channel.topic, item.log_time, item.data) for _, channel, item in found]


def with_rosbags(name, storage, version, compression):
    path = OUT / name
    writer = Writer(path, version=version, storage_plugin=storage)
    writer.set_compression(compression, CompressionFormat.ZSTD)
    with writer:
        links = {
            topic: writer.add_connection(topic, kind, typestore=STORE, offered_qos_profiles=[qos(latched)])
            for topic, (kind, latched) in TOPICS.items()
        }
        for topic, time, data in stream():
            writer.write(links[topic], time, data)
    by_rosbags(name, path)
    return path


def edit(path, change):
    file = path / "metadata.yaml"
    yaml = YAML(typ="safe")
    document = yaml.load(file.read_text())
    change(document["rosbag2_bagfile_information"])
    with file.open("w") as out:
        yaml.dump(document, out)


def older(version):
    """Takes away what a version of metadata.yaml does not have."""

    def change(information):
        information["version"] = version
        if version < 8:
            information.pop("ros_distro", None)
        if version < 6:
            information.pop("custom_data", None)
        if version < 5:
            information.pop("files", None)
        if version < 3:
            information.pop("compression_mode", None)
            information.pop("compression_format", None)
        for topic in information["topics_with_message_count"]:
            data = topic["topic_metadata"]
            if version < 7:
                data.pop("type_description_hash", None)
            if version < 4:
                data.pop("offered_qos_profiles", None)
        if version < 4:
            folder = information["relative_file_paths"][0].rsplit("_", 1)[0]
            information["relative_file_paths"] = [f"{folder}/{file}" for file in information["relative_file_paths"]]

    return change


def sqlite(path, version, words, start=1_700_000_000_000_000_000, messages=None, wal=False):
    """A database as rosbag2 makes it in a storage version."""
    base = sqlite3.connect(path)
    base.execute("PRAGMA synchronous=OFF")
    if wal:
        base.execute("PRAGMA journal_mode=WAL")
        base.execute("PRAGMA wal_autocheckpoint=0")
    extra = {1: "", 2: ", offered_qos_profiles TEXT NOT NULL", 3: ", offered_qos_profiles TEXT NOT NULL"}
    hashed = ", offered_qos_profiles TEXT NOT NULL, type_description_hash TEXT NOT NULL"
    base.execute(
        "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, "
        f"serialization_format TEXT NOT NULL{extra.get(version, hashed)})"
    )
    base.execute(
        "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp INTEGER NOT NULL, data BLOB NOT NULL)"
    )
    base.execute("CREATE INDEX timestamp_idx ON messages (timestamp ASC)")
    if version >= 3:
        base.execute("CREATE TABLE schema(schema_version INTEGER PRIMARY KEY, ros_distro TEXT NOT NULL)")
        base.execute(
            "CREATE TABLE metadata(id INTEGER PRIMARY KEY, metadata_version INTEGER NOT NULL, metadata TEXT NOT NULL)"
        )
        base.execute("INSERT INTO schema VALUES(?, 'test')", [version])
    if version >= 4:
        base.execute(
            "CREATE TABLE message_definitions(id INTEGER PRIMARY KEY, topic_type TEXT NOT NULL, encoding TEXT NOT NULL, "
            "encoded_message_definition TEXT NOT NULL, type_description_hash TEXT NOT NULL)"
        )
        for kind in sorted({kind for kind, _ in TOPICS.values()}):
            text = STORE.generate_msgdef(kind, ros_version=2)[0]
            base.execute(
                "INSERT INTO message_definitions(topic_type, encoding, encoded_message_definition, type_description_hash) "
                "VALUES(?, 'ros2msg', ?, '')",
                [kind, text],
            )
    ids = {}
    for topic, (kind, latched) in TOPICS.items():
        row = [topic, kind, "cdr"] + ([qos_text(latched, words)] if version >= 2 else []) + ([""] if version >= 4 else [])
        marks = ", ".join("?" * len(row))
        ids[topic] = base.execute(f"INSERT INTO topics VALUES(NULL, {marks})", row).lastrowid
    written = list(stream(start) if messages is None else messages)
    for topic, time, data in written:
        base.execute("INSERT INTO messages(timestamp, topic_id, data) VALUES(?, ?, ?)", [time, ids[topic], data])
    base.commit()
    return base, written


def metadata(path, files, version, storage, compression=""):
    """metadata.yaml of files that were written by hand: [(name, messages)]."""
    def offers(latched):
        text = qos_text(latched, version >= 9)
        return YAML(typ="safe").load(text) if version >= 9 else text

    def span(messages):
        moments = [time for _, time, _ in messages]
        start = min(moments, default=2**63 - 1)
        return {
            "starting_time": {"nanoseconds_since_epoch": start},
            "duration": {"nanoseconds": max(moments) - start if moments else 0},
            "message_count": len(messages),
        }

    information = {
        "version": version,
        "storage_identifier": storage,
        **span([message for _, messages in files for message in messages]),
        "topics_with_message_count": [
            {
                "topic_metadata": {
                    "name": topic,
                    "type": kind,
                    "serialization_format": "cdr",
                    "offered_qos_profiles": offers(latched),
                    "type_description_hash": "",
                },
                "message_count": sum(name == topic for _, messages in files for name, _, _ in messages),
            }
            for topic, (kind, latched) in TOPICS.items()
        ],
        "compression_format": "zstd" if compression else "",
        "compression_mode": compression,
        "relative_file_paths": [name for name, _ in files],
        "files": [{"path": name, **span(messages)} for name, messages in files],
        "custom_data": None,
        "ros_distro": "test",
    }
    with (path / "metadata.yaml").open("w") as out:
        YAML(typ="safe").dump({"rosbag2_bagfile_information": information}, out)
    edit(path, older(version))


def with_mcap(path, words, messages=None, start=1_700_000_000_000_000_000, **options):
    """An mcap file by the mcap package, in small chunks."""
    writer = McapWriter(str(path), chunk_size=2048, **options)
    writer.start(profile="ros2", library="test")
    channels = {}
    for topic, (kind, latched) in TOPICS.items():
        text = STORE.generate_msgdef(kind, ros_version=2)[0]
        schema = writer.register_schema(name=kind, encoding="ros2msg", data=text.encode())
        channels[topic] = writer.register_channel(
            topic=topic,
            message_encoding="cdr",
            schema_id=schema,
            metadata={"offered_qos_profiles": qos_text(latched, words), "topic_type_hash": ""},
        )
    written = list(stream(start) if messages is None else messages)
    for topic, time, data in written:
        writer.add_message(channel_id=channels[topic], log_time=time, publish_time=time - 5, data=data)
    writer.finish()
    return written


def decoded(path):
    """Messages of many types in both byte orders, with their values as rosbags decodes them."""
    kinds = [
        "sensor_msgs/msg/JointState",
        "geometry_msgs/msg/PoseStamped",
        "trajectory_msgs/msg/JointTrajectory",
        "tf2_msgs/msg/TFMessage",
        "diagnostic_msgs/msg/DiagnosticArray",
        "rosgraph_msgs/msg/Clock",
        "rcl_interfaces/msg/Log",
        "std_msgs/msg/Float32MultiArray",
        "std_msgs/msg/Float64MultiArray",
        "std_msgs/msg/Bool",
        "std_msgs/msg/UInt64",
        *[f"handoff/msg/{file.stem}" for file in sorted(MESSAGES.glob("*.msg"))],
        # not among the types that handoff knows: from their definitions alone
        "sensor_msgs/msg/PointCloud2",
        "sensor_msgs/msg/Imu",
        "nav_msgs/msg/OccupancyGrid",
        "rcl_interfaces/msg/ParameterEvent",
        "std_msgs/msg/Empty",
        "visualization_msgs/msg/Marker",
    ]
    lines = []
    for kind in kinds:
        text = STORE.generate_msgdef(kind, ros_version=2)[0]
        for index in range(8):
            data = bytes(STORE.serialize_cdr(message(kind), kind, little_endian=index % 2 == 0))
            lines.append({"type": kind, "text": text, "data": data.hex(), "value": plain(STORE.deserialize_cdr(data, kind))})
    path.write_text(json.dumps(lines))


def main():
    modes = {
        "none": CompressionMode.NONE,
        "file": CompressionMode.FILE,
        "message": CompressionMode.MESSAGE,
        "storage": CompressionMode.STORAGE,
    }
    for storage in StoragePlugin:
        for version in (8, 9):
            for mode, compression in modes.items():
                if (storage, mode) != (StoragePlugin.SQLITE3, "storage"):
                    with_rosbags(f"rosbags-{storage.name.lower()}-{version}-{mode}", storage, version, compression)
    for storage in range(1, 5):
        for version in range(1, 10):
            path = OUT / f"sqlite-{storage}-{version}"
            path.mkdir()
            base, written = sqlite(path / f"{path.name}_0.db3", storage, version >= 9)
            base.close()
            metadata(path, [(f"{path.name}_0.db3", written)], version, "sqlite3")
            if storage >= 2 and version >= 4:
                by_rosbags(path.name, path)
            else:  # rosbags wants metadata and database to agree on offers, which these have no place for
                note(path.name, sorted(written, key=lambda message: message[1]))
    for compression in CompressionType:
        for words in (False, True):
            for chunks in (False, True):
                name = f"mcap-{compression.name.lower()}-{'words' if words else 'numbers'}-{'chunks' if chunks else 'loose'}"
                path = OUT / f"{name}.mcap"
                with_mcap(path, words, compression=compression, use_chunking=chunks)
                note(name, of_mcap(path))
    bare = {"use_statistics": False, "use_summary_offsets": False, "repeat_channels": False, "repeat_schemas": False}
    written = with_mcap(OUT / "mcap-bare.mcap", True, index_types=IndexType.NONE, **bare)
    note("mcap-bare", sorted(written, key=lambda message: message[1]))
    for version in range(1, 10):  # metadata of each version, over mcap; three files that overlap
        for packed in (False, True) if version >= 3 else (False,):
            name = f"split-{version}{'-file' if packed else ''}"
            path = OUT / name
            path.mkdir()
            files, read = [], []
            for index in range(3):
                start = 1_700_000_000_000_000_000 + (2 - index) * 80_000_000
                file = path / f"{name}_{index}.mcap"
                written = with_mcap(file, version >= 9, start=start, compression=CompressionType.NONE)
                read += of_mcap(file)
                if packed:
                    packed_file = path / f"{file.name}.zstd"
                    packed_file.write_bytes(zstandard.compress(file.read_bytes()))
                    file.unlink()
                    file = packed_file
                files.append((file.name, written))
            metadata(path, files, version, "mcap", "FILE" if packed else "")
            if version >= 4:
                by_rosbags(name, path)
                assert len(json.loads((OUT / f"{name}.json").read_text())) == len(read)
            note(name, sorted(read, key=lambda message: message[1]))
    decoded(OUT / "decoded.list")


main()
