"""Writes what rosbag2 writes, by SQLite and the mcap package: storage files of each version, packed in each way, and metadata.yaml."""

import sqlite3

import lz4.frame
import zstandard
from mcap.writer import Writer as McapWriter
from messages import STORE, TOPICS
from ruamel.yaml import YAML

PACK = {"zstd": zstandard.compress, "lz4": lz4.frame.compress}


def qos_text(latched, words):
    """Offers as Jazzy writes them, in words, or as it was before, in numbers."""
    durability = ("transient_local" if latched else "volatile") if words else 1 if latched else 2
    history, reliability, liveliness = ("keep_last", "reliable", "automatic") if words else (1, 1, 1)
    return f"""- history: {history}
  depth: 3
  reliability: {reliability}
  durability: {durability}
  deadline: {{sec: 2147483647, nsec: 4294967295}}
  lifespan: {{sec: 9223372036, nsec: 854775807}}
  liveliness: {liveliness}
  liveliness_lease_duration: {{sec: 9223372036, nsec: 854775807}}
  avoid_ros_namespace_conventions: false
"""


def sqlite(path, version, words, messages):
    """A database as rosbag2 makes it in a storage version."""
    base = sqlite3.connect(path)
    base.execute("PRAGMA synchronous=OFF")
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
    rows = [(time, ids[topic], data) for topic, time, data in messages]
    base.executemany("INSERT INTO messages(timestamp, topic_id, data) VALUES(?, ?, ?)", rows)
    base.commit()
    base.close()


def mcap(path, words, messages, **options):
    """An mcap file in small chunks."""
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
    for topic, time, data in messages:
        writer.add_message(channel_id=channels[topic], log_time=time, publish_time=time - 5, data=data)
    writer.finish()


def metadata(path, storage, version, files, compression):
    """metadata.yaml of a version, of files with their messages: [(name, messages)]. `compression`: (mode, format)."""

    def offers(latched):
        text = qos_text(latched, version >= 9)
        return YAML(typ="safe").load(text) if version >= 9 else text

    def span(messages):
        moments = [time for _, time, _ in messages]
        start = min(moments)
        return {
            "starting_time": {"nanoseconds_since_epoch": start},
            "duration": {"nanoseconds": max(moments) - start},
            "message_count": len(messages),
        }

    def topic(name, kind, latched):
        since = {
            1: {"name": name, "type": kind, "serialization_format": "cdr"},
            4: {"offered_qos_profiles": offers(latched)},
            7: {"type_description_hash": ""},
        }
        count = sum(topic == name for _, messages in files for topic, _, _ in messages)
        return {"topic_metadata": having(since, version), "message_count": count}

    names = [name for name, _ in files]
    since = {
        1: {
            "version": version,
            "storage_identifier": storage,
            **span([message for _, messages in files for message in messages]),
            "topics_with_message_count": [topic(name, *rest) for name, rest in TOPICS.items()],
            "relative_file_paths": names if version >= 4 else [f"{path.name}/{name}" for name in names],
        },
        3: {"compression_mode": compression[0], "compression_format": compression[1]},
        5: {"files": [{"path": name, **span(messages)} for name, messages in files]},
        6: {"custom_data": None},
        8: {"ros_distro": "test"},
    }
    with (path / "metadata.yaml").open("w") as out:
        YAML(typ="safe").dump({"rosbag2_bagfile_information": having(since, version)}, out)


def having(since, version):
    """What a version has, of what there is since which."""
    return {key: value for first, part in since.items() if first <= version for key, value in part.items()}
