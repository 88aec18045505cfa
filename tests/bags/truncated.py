"""Makes mcap files in the folder that is given, and of each NAME.cuts: [[bytes that are left, messages that the mcap package reads of them,
record by record until it stops], ...], at the ends of all records and at 1,000 random bytes. Needs mcap and its compressors."""

import json
import random
import struct
import sys
from io import BytesIO
from pathlib import Path

from mcap.exceptions import McapError
from mcap.opcode import Opcode
from mcap.stream_reader import StreamReader
from mcap.records import Message
from mcap.writer import CompressionType
from messages import stream
from storages import mcap
from zstandard import ZstdError

RANDOM = random.Random(11)
LAYOUTS = {
    "loose": {"use_chunking": False},
    "none": {"compression": CompressionType.NONE},
    "zstd": {"compression": CompressionType.ZSTD},
    "lz4": {"compression": CompressionType.LZ4},
}


def ends(data, begin, end):
    """Of all records, those in chunks that are not compressed included."""
    while begin + 9 <= end:
        body = begin + 9
        following = body + int.from_bytes(data[begin + 1 : body], "little")
        if data[begin] == Opcode.CHUNK and data[body + 28 : body + 32] == bytes(4):
            yield from ends(data, body + 40, following)
        yield following
        begin = following


def whole(data, written):
    """How many messages come out as they were written. The package gives the part of a message that is there for one."""
    count = 0
    try:
        for record in StreamReader(BytesIO(data)).records:
            if isinstance(record, Message):
                if written[count][1:] != (record.log_time, record.data):
                    break
                count += 1
    except (McapError, ZstdError, RuntimeError, struct.error):
        pass
    return count


def main(out):
    for layout, options in LAYOUTS.items():
        path = out / f"{layout}.mcap"
        written = list(stream())
        mcap(path, True, written, **options)
        data = path.read_bytes()
        assert whole(data, written) == len(written)
        cuts = [cut for cut in ends(data, 8, len(data) - 8) if cut < len(data)]
        cuts += [RANDOM.randrange(8, len(data)) for _ in range(1000)]
        (out / f"{layout}.cuts").write_text(json.dumps([[cut, whole(data[:cut], written)] for cut in cuts]))


main(Path(sys.argv[1]))
