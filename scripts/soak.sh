#!/usr/bin/env bash
# Whether a long training stays as it is: memory (proportional set size of all its processes), file descriptors, /dev/shm.
# Samples every 10 s into soak.tsv of its run; the last quarter may not be above the second. Status 1: something grew.
# Usage: scripts/soak.sh [MINUTES [OPTION OF TRAIN...]]
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-30}
run=runs/soak-$(date +%s)
./handoff build
./handoff train --minutes "$minutes" --set train.eval_episodes=10 --run "$run" "${@:2}" > /dev/null &
training=$!
trap 'kill -INT "$training" 2> /dev/null || true' EXIT
verdict=0
python3 - "$run" "$training" "$minutes" << 'PY' || verdict=$?
import os, statistics, sys, time
run, training, minutes = os.path.abspath(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])
period = min(10.0, 60 * minutes / 40)

def read(path):
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""

def size_of(path):
    try:
        return os.path.getsize(path)
    except OSError:
        return 0

def sample():
    """MiB, descriptors, files and MiB of Fast DDS; None while there are no nodes."""
    memory = descriptors = nodes = 0
    shared = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        words = read(f"/proc/{name}/cmdline").split(b"\0")
        if os.fsencode(run) not in words and os.fsencode(run + "/config.yaml") not in words and int(name) != training:
            continue
        nodes += os.fsencode(run + "/config.yaml") in words
        memory += sum(int(line.split()[1]) for line in read(f"/proc/{name}/smaps_rollup").splitlines() if line.startswith(b"Pss:"))
        try:
            descriptors += len(os.listdir(f"/proc/{name}/fd"))
        except OSError:
            pass
        # what it has mapped: other programs' files come and go beside it
        for line in read(f"/proc/{name}/maps").split(b"\n"):
            path = line.partition(b"/dev/shm/")[2].split()
            if path:
                shared[path[0]] = size_of(b"/dev/shm/" + path[0])
    return [memory / 1024, descriptors, len(shared), sum(shared.values()) / 2**20] if nodes else None

names = ["memory [MiB]", "file descriptors", "/dev/shm [files]", "/dev/shm [MiB]"]
samples, start = [], time.monotonic()
trained = os.path.join(run, "metrics.jsonl")
while os.path.exists(f"/proc/{training}") and read(f"/proc/{training}/stat").rpartition(b")")[2].split()[:1] != [b"Z"]:
    found = sample()
    if found and os.path.exists(trained) and os.path.getsize(trained):
        samples.append([time.monotonic() - start, *found])
        with open(os.path.join(run, "soak.tsv"), "a") as out:
            out.write("\t".join(f"{value:.1f}" for value in samples[-1]) + "\n")
    elif samples:
        break  # the nodes have gone: what follows is the evaluation
    time.sleep(period)
if len(samples) < 8:
    sys.exit(f"only {len(samples)} samples: the training was too short, or failed (its logs: {run}/logs)")
quarter, grown = len(samples) // 4, False
print(f"{'':18} {'2nd quarter':>12} {'last quarter':>12} {'most':>10}")
for column, name in enumerate(names, 1):
    second, last = (statistics.median(row[column] for row in part) for part in (samples[quarter:2 * quarter], samples[-quarter:]))
    more = last > 1.02 * second + (4 if "MiB" in name else 0)
    grown |= more
    print(f"{name:18} {second:12.1f} {last:12.1f} {max(row[column] for row in samples):10.1f}{'  GREW' if more else ''}")
print(f"{samples[-1][0] / 60:.1f} min, {len(samples)} samples: " + ("something grew" if grown else "flat"))
sys.exit(grown)
PY
wait "$training"
trap - EXIT
exit "$verdict"
