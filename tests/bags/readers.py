"""What independent readers read: [(topic, time, bytes), ...], by time; of one time in the order of the files."""

import sqlite3

import lz4.frame
import zstandard
from mcap.reader import make_reader
from rosbags.rosbag2 import Reader

UNPACK = {"zstd": zstandard.decompress, "lz4": lz4.frame.decompress}


def in_time(messages):
    return sorted(messages, key=lambda message: message[1])


def by_rosbags(path):
    with Reader(path) as reader:
        return in_time((connection.topic, time, data) for connection, time, data in reader.messages())


def by_mcap(path):
    with path.open("rb") as file:
        found = make_reader(file).iter_messages(log_time_order=True)
        return [(channel.topic, message.log_time, message.data) for _, channel, message in found]


def by_sqlite(path):
    base = sqlite3.connect(path)
    query = "SELECT name, timestamp, data FROM messages JOIN topics ON topic_id = topics.id ORDER BY timestamp, messages.id"
    found = base.execute(query).fetchall()
    base.close()
    return found
