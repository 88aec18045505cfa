"""Makes bags of every combination in the folder that is given, and beside each what independent readers read of it: NAME.json holds
{latched: whether it says which topics are latched, messages: [[topic, time, sha256 of the bytes], ...]}, by time.
Needs rosbags, mcap and their compressors."""

import hashlib
import json
import sys
from pathlib import Path

import matrix
from mcap.writer import CompressionType, IndexType
from messages import STORE, TOPICS, stream
from readers import by_mcap, by_rosbags, in_time
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from storages import mcap

LONG = QosTime(9223372036, 854775807)


def note(out, name, messages, latched=True):
    lines = [[topic, time, hashlib.sha256(data).hexdigest()] for topic, time, data in messages]
    (out / f"{name}.json").write_text(json.dumps({"latched": latched, "messages": lines}))


def qos(latched):
    durability = QosDurability.TRANSIENT_LOCAL if latched else QosDurability.VOLATILE
    return Qos(
        QosHistory.KEEP_LAST, 3, QosReliability.RELIABLE, durability, LONG, LONG, QosLiveliness.AUTOMATIC, LONG, False
    )


def of_rosbags(out):
    """Bags as rosbags writes them."""
    for storage in StoragePlugin:
        for version in (8, 9):
            for mode in CompressionMode:
                if (storage, mode) == (StoragePlugin.SQLITE3, CompressionMode.STORAGE):
                    continue  # a database has no chunks
                name = f"rosbags-{storage.name}-{version}-{mode.name}".lower()
                writer = Writer(out / name, version=version, storage_plugin=storage)
                writer.set_compression(mode, CompressionFormat.ZSTD)
                with writer:
                    links = {
                        topic: writer.add_connection(topic, kind, typestore=STORE, offered_qos_profiles=[qos(latched)])
                        for topic, (kind, latched) in TOPICS.items()
                    }
                    for topic, time, data in stream():
                        writer.write(links[topic], time, data)
                note(out, name, by_rosbags(out / name))


def single_files(out):
    """mcap files on their own, in chunks or not, with a summary or not."""
    bare = {"use_statistics": False, "use_summary_offsets": False, "repeat_channels": False, "repeat_schemas": False}
    written = list(stream())
    mcap(out / "mcap-bare.mcap", True, written, index_types=IndexType.NONE, **bare)
    note(out, "mcap-bare", in_time(written))
    for compression in CompressionType:
        for words in (False, True):
            for chunks in (False, True):
                name = f"mcap-{compression.name.lower()}-{'words' if words else 'numbers'}-{'chunks' if chunks else 'loose'}"
                path = out / f"{name}.mcap"
                mcap(path, words, stream(), compression=compression, use_chunking=chunks)
                note(out, name, by_mcap(path))


def main(out):
    of_rosbags(out)
    single_files(out)
    for bag in matrix.bags(out):
        note(out, *bag)


main(Path(sys.argv[1]))
