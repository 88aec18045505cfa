#!/usr/bin/env python3
"""How fast bags are read and decoded, against `rosbags`, on the same bag of JointStates in one run."""

import argparse
import json
import resource
import subprocess
import tempfile
import time
from pathlib import Path

import numpy as np
from rosbags.highlevel import AnyReader
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

ROOT = Path(__file__).parents[1]
STORE = get_typestore(Stores.ROS2_JAZZY)
KIND = "sensor_msgs/msg/JointState"


def make(path, size, storage):
    joint_state = STORE.types[KIND]
    header = STORE.types["std_msgs/msg/Header"]
    stamp = STORE.types["builtin_interfaces/msg/Time"]
    names = [f"panda_joint{joint}" for joint in range(1, 8)]
    with Writer(path, version=9, storage_plugin=StoragePlugin[storage.upper()]) as writer:
        links = [writer.add_connection(topic, KIND, typestore=STORE) for topic in ("/joint_states", "/joint_command")]
        written, tick = 0, 0
        draw = np.random.default_rng(1)
        templates = []
        for _ in range(1000):
            values = draw.normal(size=(3, 7))
            message = joint_state(header(stamp(0, 0), ""), names, *values)
            templates.append(bytes(STORE.serialize_cdr(message, KIND)))
        while written < size:
            data = templates[tick % 1000]
            for link in links:
                writer.write(link, 1_700_000_000_000_000_000 + tick * 1_000_000, data)
                written += len(data)
            tick += 1


def rosbags(path):
    begin, used = time.monotonic(), time.process_time()
    count, total = 0, 0.0
    with AnyReader([path]) as reader:
        for connection, _, data in reader.messages():
            total += float(reader.deserialize(data, connection.msgtype).position.sum())
            count += 1
    return count, total, time.monotonic() - begin, time.process_time() - used


def main():
    options = argparse.ArgumentParser(prog="./handoff bench bag", description=__doc__)
    options.add_argument("--gigabytes", type=float, default=1.0, help="size of the bag, which is thrown away [default: 1]")
    options.add_argument("--storage", choices=["mcap", "sqlite3"], default="mcap", help="[default: mcap]")
    options.add_argument("--program", required=True, help=argparse.SUPPRESS)  # the example bag_speed, built
    options = options.parse_args()
    program = [options.program]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "bag"
        make(path, options.gigabytes * 1e9, options.storage)
        subprocess.check_output([*program, str(path)], cwd=ROOT)  # the bag is in the cache for both
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        ours = json.loads(subprocess.check_output([*program, str(path)], cwd=ROOT))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        count, total, secs, cpu = rosbags(path)
    assert count == ours["messages"] and abs(total - ours["sum"]) < 1e-6 * max(1.0, abs(total)), (count, total, ours)
    print(f"{options.storage}: {count} messages, {ours['bytes'] / 1e9:.2f} GB")
    our_cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"handoff {ours['secs']:.2f} s, {our_cpu:.2f} s of CPU ({ours['bytes'] / ours['secs'] / 1e6:.0f} MB/s), {ours['peak_mb']:.0f} MB of memory")
    print(f"rosbags {secs:.2f} s, {cpu:.2f} s of CPU ({ours['bytes'] / secs / 1e6:.0f} MB/s)")
    print(f"ratio {secs / ours['secs']:.1f}; of CPU time {cpu / our_cpu:.1f}")


main()
