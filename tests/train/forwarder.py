"""A wire between two network interfaces that loses frames by a seeded draw, and that can be cut.

python3 forwarder.py LEFT RIGHT SEED; on standard input, a line each: `loss 0.3`, `cut`, `heal`. Ends with its input.
"""

import os
import random
import select
import socket
import sys

PACKET_OUTGOING = 4
ETH_P_ALL = 3


def listen(interface):
    wire = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
    wire.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    wire.bind((interface, 0))
    return wire


def without_checksum(frame):
    """A virtual interface leaves UDP checksums to hardware that is not there; 0 says that there is none (RFC 768)."""
    ipv4_udp = len(frame) >= 42 and frame[12:14] == b"\x08\x00" and frame[23] == 17
    if not ipv4_udp or int.from_bytes(frame[20:22], "big") & 0x1FFF:
        return frame
    at = 14 + 4 * (frame[14] & 15) + 6
    return frame[:at] + b"\0\0" + frame[at + 2 :]


def main(left, right, seed):
    draw = random.Random(int(seed))
    one, other = listen(left), listen(right)
    ends = {one: other, other: one}
    loss, cut = 0.0, False
    print("ready", flush=True)
    while True:
        ready, _, _ = select.select([*ends, sys.stdin], [], [])
        if sys.stdin in ready:
            orders = os.read(sys.stdin.fileno(), 4096).decode().splitlines()
            if not orders:
                break
            for order in orders:
                if order.startswith("loss "):
                    loss = float(order[5:])
                else:
                    cut = order == "cut"
            continue
        for wire in ready:
            frame, address = wire.recvfrom(1 << 17)
            if address[2] == PACKET_OUTGOING:
                continue
            if cut or draw.random() < loss:
                continue
            try:
                ends[wire].send(without_checksum(frame))
            except OSError:
                pass  # the interface is full, or going away: as good as lost


main(*sys.argv[1:])
