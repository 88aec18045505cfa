"""Prints what rosbags reads of the bag that is given: facts of each message by topic, over all and of each file, and durabilities.
Facts, not bytes: what lies between two aligned values is anybody's."""

import json
import sys
from pathlib import Path

from mcap.reader import make_reader
from rosbags.highlevel import AnyReader


def facts(message):
    if hasattr(message, "effort"):
        return [message.header.stamp.nanosec, message.name, message.effort.tolist()]
    return [message.version, message.parameters.tolist()]


def main(path):
    topics, files = {}, []
    with AnyReader([path]) as reader:
        for connection, _, data in reader.messages():
            topics.setdefault(connection.topic, []).append(facts(reader.deserialize(data, connection.msgtype)))
        durability = {c.topic: c.ext.offered_qos_profiles[0].durability.name for c in reader.connections}
        for file in sorted(path.glob("*.mcap")):
            files.append({})
            with file.open("rb") as stream:
                for schema, channel, message in make_reader(stream).iter_messages():
                    found = facts(reader.deserialize(message.data, schema.name))
                    files[-1].setdefault(channel.topic, []).append(found)
    print(json.dumps({"topics": topics, "files": files, "durability": durability}))


main(Path(sys.argv[1]))
