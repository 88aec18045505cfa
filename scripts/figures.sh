#!/usr/bin/env bash
# The figures of the README: trains reach for 2 and for 6 minutes, evaluates 300 episodes each, prints a table.
# Usage: scripts/figures.sh [SEED]. Leaves its runs in runs/.
set -euo pipefail
cd "$(dirname "$0")/.."
seed=${1:-1}
printf '| training | env steps | env steps/s | 99 %% at 5 cm after | 97 %% at 1 cm after | success at 5 cm | at 1 cm | options: share, median run [ticks] |\n|---|---|---|---|---|---|---|---|\n'
for minutes in 2 6; do
  run=runs/figures-$seed-$minutes-$(date +%s)
  ./handoff train --seed "$seed" --minutes "$minutes" --run "$run" > /dev/null
  evaluation=$(./handoff eval "$run" --episodes 300 --json)
  RUN=$run MINUTES=$minutes python3 - "$evaluation" << 'PY'
import json, os, sys
evaluation = json.loads(sys.argv[1])
rows = [json.loads(line) for line in open(os.path.join(os.environ["RUN"], "metrics.jsonl"))]
last = rows[-1]

def after(key, bar):
    """Of the last 100 training episodes, actions sampled."""
    first = next((row for row in rows if bar <= (row.get(key) or 0)), None)
    return f"{first['env_steps']:,} steps, {first['wall_secs']:.0f} s" if first else "-"

learned = f"{after('charts/success', 0.99)} | {after('charts/success_strict', 0.97)}"
percent = lambda share: f"{100 * share:.1f} %"
options = "; ".join(f"{percent(o['share'])}, {o['median_duration']:g}" for o in evaluation["options"] if o["median_duration"])
steps, rate = last["env_steps"], last["env_steps"] / last["wall_secs"]
forced, spread = evaluation["forced_share"], last["options/spread"]
print(f"| {os.environ['MINUTES']} min | {steps:,} | {rate:,.0f} | {learned} | {percent(evaluation['success'])} | {percent(evaluation['success_1cm'])} | {options}; ended by d_max {percent(forced)}; spread {spread:.2f} |")
PY
done
printf '\n%s, %s cores\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)"
