#!/usr/bin/env bash
# How soon reach is learned, over five seeds. Success is of the policy as it trains (sampled actions), over the last 100
# episodes: 99 % at 5 cm, 97 % at 1 cm. Goals on-policy, in both update modes: 60 s and 82,000 steps; 120 s and 344,000 steps,
# which are the steps that a tuned Stable-Baselines3 PPO needs. Goals off-policy: 25,000 and 50,000 steps, both within 300 s.
# All with the peers' arm: 0.08 rad a tick, targets taken at once.
# Options are those of 300 episodes at the end: share, median run.
# Leaves its runs in runs/. Let the machine do nothing else.
# Usage: scripts/seeds.sh [--algo hs_ppo|ppo|osac|sac] [MINUTES [SEED...]]
set -euo pipefail
cd "$(dirname "$0")/.."
algo=hs_ppo
if [[ ${1-} == --algo ]]; then
  algo=$2
  shift 2
fi
case $algo in
  hs_ppo | ppo) modes=(sync async) usual=2.5 goals=(82000 60 344000 120) ;;
  osac | sac) modes=(async) usual=5 goals=(25000 300 50000 300) ;;
  *)
    echo "unknown algorithm '$algo': hs_ppo, ppo, osac and sac are known" >&2
    exit 2
    ;;
esac
minutes=${1:-$usual}
seeds=("${@:2}")
((${#seeds[@]})) || seeds=(1 2 3 4 5)
folder=runs/seeds-$algo-$(date +%s)
for mode in "${modes[@]}"; do
  for seed in "${seeds[@]}"; do
    run=$folder/$mode-$seed
    ./handoff train --algo "$algo" --seed "$seed" --minutes "$minutes" --update-mode "$mode" --set sim.led=false --set action.scale=0.08 --set train.eval_episodes=1 --run "$run" > /dev/null
    ./handoff eval "$run" --episodes 300 --stochastic --json > "$run/evaluation.json"
  done
done
python3 - "$folder" "${modes[*]}" "${goals[*]}" "${seeds[@]}" << 'PY'
import json, os, sys
folder, modes, goals, seeds = sys.argv[1], sys.argv[2].split(), [int(goal) for goal in sys.argv[3].split()], sys.argv[4:]
GOALS = {"charts/success": (0.99, *goals[:2]), "charts/success_strict": (0.97, *goals[2:])}
print("| mode | seed | 99 % at 5 cm: steps, time | 97 % at 1 cm: steps, time | env steps/s | at the end: 5 cm, 1 cm | options: share, median run [ticks] |")
print("|---|---|---|---|---|---|---|")
kept = 0
for mode in modes:
    for seed in seeds:
        run = os.path.join(folder, f"{mode}-{seed}")
        rows = [json.loads(line) for line in open(os.path.join(run, "metrics.jsonl"))]
        options = json.load(open(os.path.join(run, "evaluation.json")))["options"]
        cells = []
        for name, (share, most_steps, most_secs) in GOALS.items():
            row = next((row for row in rows if (row[name] or 0) >= share), None)
            ok = row is not None and row["env_steps"] <= most_steps and row["wall_secs"] <= most_secs
            kept += ok
            cells.append(f"{row['env_steps']:,}, {row['wall_secs']:.0f} s" + ("" if ok else " (late)") if row else "not reached")
        rate = (rows[-1]["env_steps"] - rows[0]["env_steps"]) / max(rows[-1]["wall_secs"] - rows[0]["wall_secs"], 1e-9)
        end = ", ".join(f"{100 * (rows[-1][name] or 0):.0f} %" for name in GOALS)
        used = "; ".join(f"{100 * option['share']:.0f} %, {option['median_duration'] or '-'}" for option in options)
        print(f"| {mode} | {seed} | {cells[0]} | {cells[1]} | {rate:,.0f} | {end} | {used} |")
print(f"\n{kept} of {2 * len(modes) * len(seeds)} goals are kept.")
PY
printf '%s, %s cores\n' "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" "$(nproc)"
