"""What the other side knows by itself."""

import hashlib
import struct
import sys
import uuid


def require(found, want, what):
    if found != want:
        sys.exit(f"{sys.argv[0]}: {what} is {found}, want {want}")


def floats(values):
    return struct.pack("<Q", len(values)) + struct.pack(f"<{len(values)}f", *values)


def weights_hash(m):
    """sha256 over everything that acts and everything that names it, little endian."""
    content = uuid.UUID(m.run).bytes
    content += struct.pack("<IQQQ?", m.life, m.version, m.updates, m.env_steps, m.random_warmup)
    content += m.contract.encode()
    content += struct.pack("<fd", m.normaliser_clip, m.normaliser_count)
    content += floats(m.normaliser_mean) + floats(m.normaliser_std) + floats(m.parameters)
    return hashlib.sha256(content).digest()
