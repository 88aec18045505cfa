#!/usr/bin/env bash
# What options cost: four against one at the same budget of environment steps, on-policy and off-policy, in one loop, so that
# the outcome does not hang on what else the machine does. Success of 300 episodes, mean action. Bar: four options lose at most
# 2 % at 5 cm. Leaves its runs in runs/. Usage: scripts/options_cost.sh [SEED...]; STEPS_ON and STEPS_OFF set the budgets.
set -euo pipefail
cd "$(dirname "$0")/.."
seeds=("${@}")
((${#seeds[@]})) || seeds=(1 2 3 4 5)
steps_on=${STEPS_ON:-350000} steps_off=${STEPS_OFF:-50000}
folder=runs/options-cost-$(date +%s)
mkdir -p "$folder"
for seed in "${seeds[@]}"; do
  for pair in "hs_ppo ppo $steps_on" "osac sac $steps_off"; do
    read -r options flat steps <<< "$pair"
    for algo in "$options" "$flat"; do
      run=$folder/$algo-$seed
      ./handoff train --serial --algo "$algo" --seed "$seed" --env-steps "$steps" --set train.eval_episodes=1 --run "$run" > /dev/null
      ./handoff eval "$run" --episodes 300 --json > "$folder/$algo-$seed.json"
    done
  done
done
python3 - "$folder" "${seeds[@]}" << 'PY'
import json, os, sys
folder, seeds = sys.argv[1], sys.argv[2:]
print("| algorithm | seed | 4 options: 5 cm, 1 cm | 1 option: 5 cm, 1 cm | cost at 5 cm |")
print("|---|---|---|---|---|")
kept = 0
for options, flat in [("hs_ppo", "ppo"), ("osac", "sac")]:
    costs = []
    for seed in seeds:
        four, one = (json.load(open(os.path.join(folder, f"{algo}-{seed}.json"))) for algo in (options, flat))
        costs.append(100 * (one["success"] - four["success"]))
        cells = [f"{100 * found['success']:.1f} %, {100 * found['success_1cm']:.1f} %" for found in (four, one)]
        print(f"| {options} | {seed} | {cells[0]} | {cells[1]} | {costs[-1]:+.1f} % |")
    mean = sum(costs) / len(costs)
    kept += mean <= 2
    print(f"| {options} | mean | | | {mean:+.1f} % |")
print(f"\n{kept} of 2 algorithms keep the bar: options cost at most 2 %.")
PY
