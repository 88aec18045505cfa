"""Bags of every combination of storage, compression, version of metadata.yaml, split and form of the offers, each with what independent
readers read of it."""

import itertools
import os

from mcap.writer import CompressionType
from messages import stream
from readers import UNPACK, by_mcap, by_rosbags, by_sqlite, in_time
from storages import PACK, mcap, metadata, sqlite

STORAGES = ["mcap", "sqlite3-1", "sqlite3-2", "sqlite3-3", "sqlite3-4"]
COMPRESSIONS = ["none", *[f"{mode}-{form}" for mode in ("file", "message", "chunk") for form in ("zstd", "lz4")]]
VERSIONS = [None, *range(1, 10)]  # none: no metadata.yaml
FILES = [1, 3]
WORDS = [False, True]
START = 1_700_000_000_000_000_000


def impossible(storage, compression, version, words):
    """Why there is no such bag, or nothing."""
    mode = compression.split("-")[0]
    if mode == "chunk" and storage != "mcap":
        return "a database has no chunks"
    if mode in ("file", "message") and version in (1, 2):
        return "there was no compression before version 3"
    if words and storage == "sqlite3-1":
        return "there is no place for offers"
    return None


class Parts:
    """Storage files, made once and linked into all bags that have them."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir()
        # the files of a bag overlap in time, and the last was begun first
        self.streams = {count: [list(stream(START + (count - 1 - part) * 30_000_000, 60 // count)) for part in range(count)] for count in FILES}
        self.made = {}

    def get(self, storage, compression, count, part, words):
        key = (storage, compression, count, part, words)
        if key not in self.made:
            self.made[key] = self.make("-".join(map(str, key)), *key)
        return self.made[key]

    def make(self, name, storage, compression, count, part, words):
        """The path of a file, its messages, and those that another reader reads."""
        mode, form = [*compression.split("-"), None][:2]
        messages = self.streams[count][part]
        inside = [(topic, time, PACK[form](data)) for topic, time, data in messages] if mode == "message" else messages
        path = self.folder / name
        if storage == "mcap":
            chunks = CompressionType[form.upper()] if mode == "chunk" else CompressionType.NONE
            mcap(path, words, inside, compression=chunks)
            found = by_mcap(path)
        else:
            sqlite(path, int(storage[-1]), words, inside)
            found = by_sqlite(path)
        if mode == "message":
            found = [(topic, time, UNPACK[form](data)) for topic, time, data in found]
        if mode == "file":
            path.write_bytes(PACK[form](path.read_bytes()))
        return path, messages, found


def bags(folder):
    """Makes them; gives of each its name, what is read of it, and whether it says which topic is latched."""
    parts = Parts(folder / "parts")
    for storage, compression, version, count, words in itertools.product(STORAGES, COMPRESSIONS, VERSIONS, FILES, WORDS):
        if impossible(storage, compression, version, words):
            continue
        mode, form = [*compression.split("-"), ""][:2]
        name = f"{storage}-{compression}-{version}-{count}-{'words' if words else 'numbers'}"
        path = folder / name
        path.mkdir()
        files, read = [], []
        for part in range(count):
            made, messages, found = parts.get(storage, compression, count, part, words)
            file = f"{name}_{part}{'.mcap' if storage == 'mcap' else '.db3'}{f'.{form}' if mode == 'file' else ''}"
            os.link(made, path / file)
            files.append((file, messages))
            read += found
        read = in_time(read)
        if version:
            compressed = (mode.upper(), form) if mode in ("file", "message") else ("", "")
            metadata(path, storage.split("-")[0], version, files, compressed)
            # rosbags knows zstd alone there, and reads where metadata and storage agree on offers
            if (form != "lz4" or mode == "chunk") and (version >= 4) == (storage != "sqlite3-1"):
                assert by_rosbags(path) == read, name
        yield name, read, (version or 0) >= 4 or storage != "sqlite3-1"
