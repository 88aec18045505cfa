#!/usr/bin/env bash
# What lag costs: the same budget of environment steps learned from weights that act 8 updates late and from fresh ones, in one
# loop: with the correction, its clip decoupled or not, and without it. Success of 300 episodes, mean action. Bar: with the
# correction at most 2 % is lost in the mean, at 5 cm and at 1 cm. Leaves its runs in runs/. Usage: scripts/lag.sh [SEED...]; STEPS sets the budget.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=("${@}")
((${#seeds[@]})) || seeds=(1 2 3 4 5)
steps=${STEPS:-350000}
folder=runs/lag-$(date +%s)
mkdir -p "$folder"
declare -A how=(
  [fresh]=""
  [corrected]="--set train.forced_lag=8 --set learner.max_lag=16"
  [coupled]="--set train.forced_lag=8 --set learner.max_lag=16 --set learner.hs_ppo.decoupled=false"
  [uncorrected]="--set train.forced_lag=8 --set learner.max_lag=16 --set learner.hs_ppo.action_ratios=false --set learner.hs_ppo.option_ratios=false"
)
for seed in "${seeds[@]}"; do
  for name in fresh corrected coupled uncorrected; do
    read -ra set <<< "${how[$name]}"
    ./handoff train --serial --seed "$seed" --env-steps "$steps" --set train.eval_episodes=1 --run "$folder/$name-$seed" "${set[@]}" > /dev/null
    ./handoff eval "$folder/$name-$seed" --episodes 300 --json > "$folder/$name-$seed.json"
  done
done
python3 - "$folder" "${seeds[@]}" << 'PY'
import json, os, sys
folder, seeds = sys.argv[1], sys.argv[2:]
NAMES = ["fresh", "corrected", "coupled", "uncorrected"]
read = lambda name, seed: json.load(open(os.path.join(folder, f"{name}-{seed}.json")))
found = {name: [[read(name, seed)[distance] for distance in ("success", "success_1cm")] for seed in seeds] for name in NAMES}
show = lambda pair: ", ".join(f"{100 * share:.1f} %" for share in pair)
print("| seed | lag 0: 5 cm, 1 cm | lag 8, corrected | the same, not decoupled | not corrected |")
print("|---|---|---|---|---|")
for row, seed in enumerate(seeds):
    print(f"| {seed} | " + " | ".join(show(found[name][row]) for name in NAMES) + " |")
means = {name: [sum(column) / len(seeds) for column in zip(*found[name])] for name in NAMES}
print("| mean | " + " | ".join(show(means[name]) for name in NAMES) + " |")
for name in ("corrected", "coupled"):
    kept = all(fresh - late <= 0.02 for fresh, late in zip(means["fresh"], means[name]))
    print(f"\n{name}: the bar is {'kept' if kept else 'missed'}: lag costs at most 2 %.")
PY
