#!/usr/bin/env bash
# What is learned from a bag: 200 episodes of an early checkpoint that reaches the goal (5 cm) in 30 to 70 of 100, sampled actions, by
# behaviour cloning and by options-aware IQL, against the best policy of the same training. 300 episodes each, mean action. Bars: IQL
# closes at least 10 % of the gap from the logged return to the best one's, and is not worse than cloning. In one loop, without ROS.
# Leaves its runs in runs/. Usage: scripts/offline.sh [SEED...]; STEPS sets the training's budget, ARGS goes to `train --offline`.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=("${@}")
((${#seeds[@]})) || seeds=(1 2 3 4 5)
steps=${STEPS:-350000}
read -ra extra <<< "${ARGS:-}"
handoff=${HANDOFF:-./handoff}
folder=runs/offline-$(date +%s)
mkdir -p "$folder"
number() { python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$@"; }
for seed in "${seeds[@]}"; do
  here=$folder/$seed
  mkdir "$here"
  "$handoff" train --serial --seed "$seed" --env-steps "$steps" --run "$here/online" \
    --set learner.save_interval=4 --set learner.keep=10000 --set train.eval_episodes=1 > /dev/null
  early=
  for checkpoint in "$here"/online/checkpoints/*; do
    "$handoff" eval "$checkpoint" --episodes 100 --seed 11 --stochastic --json > "$here/early.json"
    if python3 -c 'import sys; sys.exit(not 0.3 <= float(sys.argv[1]) <= 0.7)' "$(number "$here/early.json" success)"; then
      early=$checkpoint
      break
    fi
  done
  [[ $early ]] || { echo "seed $seed: no checkpoint succeeds in 30 to 70 % of its episodes" >&2; exit 1; }
  "$handoff" eval "$early" --episodes 200 --seed 12 --stochastic --json --record "$here/bag" > "$here/logged.json"
  "$handoff" eval "$early" --episodes 300 --json > "$here/mean_action.json"
  "$handoff" eval "$here/online" --best --episodes 300 --json > "$here/best.json"
  for algo in bc iql; do
    "$handoff" train --offline "$here/bag" --algo "$algo" --seed "$seed" --run "$here/$algo" --set train.eval_episodes=1 "${extra[@]}" > /dev/null
    "$handoff" eval "$here/$algo" --episodes 300 --json > "$here/$algo.json"
  done
done
python3 - "$folder" "${seeds[@]}" << 'PY'
import json, os, sys
folder, seeds = sys.argv[1], sys.argv[2:]
NAMES = ["logged", "mean_action", "bc", "iql", "best"]
print("| seed | logged: return, 5 cm | the same, mean action | bc | iql | best | gap closed by bc | by iql |")
print("|---|---|---|---|---|---|---|---|")
closed = {"bc": [], "iql": []}
for seed in seeds:
    found = {name: json.load(open(os.path.join(folder, seed, f"{name}.json"))) for name in NAMES}
    low, high = found["logged"]["return_mean"], found["best"]["return_mean"]
    for algo in closed:
        closed[algo].append(100 * (found[algo]["return_mean"] - low) / (high - low))
    cells = [f"{found[name]['return_mean']:.2f}, {100 * found[name]['success']:.0f} %" for name in NAMES]
    print(f"| {seed} | {' | '.join(cells)} | {closed['bc'][-1]:.0f} % | {closed['iql'][-1]:.0f} % |")
mean = {algo: sum(shares) / len(shares) for algo, shares in closed.items()}
print(f"| mean | | | | | | {mean['bc']:.0f} % | {mean['iql']:.0f} % |")
kept = (mean["iql"] >= 10) + (mean["iql"] >= mean["bc"])
print(f"\n{kept} of 2 bars are kept: iql closes 10 % of the gap, and no less than bc.")
PY
