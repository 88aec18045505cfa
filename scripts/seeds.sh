#!/usr/bin/env bash
# How soon reach is learned: five seeds in both update modes. Success is of the policy as it trains (sampled actions), over the last
# 100 episodes: 99 % at 5 cm, 97 % at 1 cm. Goals: 60 s and 82,000 steps; 120 s and 344,000 steps, which are the steps that
# a tuned Stable-Baselines3 PPO needs, with its arm: 0.08 rad a tick, targets taken at once. Leaves its runs in runs/. Let the machine do nothing else.
# Usage: scripts/seeds.sh [MINUTES [SEED...]]
set -euo pipefail
cd "$(dirname "$0")/.."
minutes=${1:-2.5}
seeds=("${@:2}")
((${#seeds[@]})) || seeds=(1 2 3 4 5)
folder=runs/seeds-$(date +%s)
for mode in sync async; do
  for seed in "${seeds[@]}"; do
    ./handoff train --seed "$seed" --minutes "$minutes" --update-mode "$mode" --set sim.led=false --set action.scale=0.08 --set train.eval_episodes=1 --run "$folder/$mode-$seed" > /dev/null
  done
done
python3 - "$folder" "${seeds[@]}" << 'PY'
import json, os, sys
folder, seeds = sys.argv[1], sys.argv[2:]
GOALS = {"charts/success": (0.99, 82_000, 60), "charts/success_strict": (0.97, 344_000, 120)}
print("| mode | seed | 99 % at 5 cm: steps, time | 97 % at 1 cm: steps, time | env steps/s | at the end: 5 cm, 1 cm |")
print("|---|---|---|---|---|---|")
kept = 0
for mode in ["sync", "async"]:
    for seed in seeds:
        rows = [json.loads(line) for line in open(os.path.join(folder, f"{mode}-{seed}", "metrics.jsonl"))]
        cells = []
        for name, (share, most_steps, most_secs) in GOALS.items():
            row = next((row for row in rows if (row[name] or 0) >= share), None)
            ok = row is not None and row["env_steps"] <= most_steps and row["wall_secs"] <= most_secs
            kept += ok
            cells.append(f"{row['env_steps']:,}, {row['wall_secs']:.0f} s" + ("" if ok else " (late)") if row else "not reached")
        rate = (rows[-1]["env_steps"] - rows[0]["env_steps"]) / max(rows[-1]["wall_secs"] - rows[0]["wall_secs"], 1e-9)
        end = ", ".join(f"{100 * (rows[-1][name] or 0):.0f} %" for name in GOALS)
        print(f"| {mode} | {seed} | {cells[0]} | {cells[1]} | {rate:,.0f} | {end} |")
print(f"\n{kept} of {4 * len(seeds)} goals are kept.")
PY
printf '%s, %s cores\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)"
