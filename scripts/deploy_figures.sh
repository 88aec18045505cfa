#!/usr/bin/env bash
# What deployment costs: success of a policy in lockstep and through the `isaac` link (policy node and guard on the paced arm, as Isaac Sim
# behaves), on the same starts and goals; then with joints in another order, more joints and no velocities.
# Usage: scripts/deploy_figures.sh [RUN [EPISODES]]. Without RUN it trains one for two minutes with the defaults.
set -euo pipefail
cd "$(dirname "$0")/.."
run=${1:-}
if [[ -z $run ]]; then
  run=runs/deploy-$(date +%s)
  ./handoff train --minutes 2 --run "$run" > /dev/null
fi
printf '%s\n\nas Isaac Sim speaks\n' "$run"
./handoff eval "$run" --link isaac --episodes "${2:-300}"
printf '\njoints in another order, more joints, no velocities\n'
./handoff eval "$run" --link isaac --episodes "${2:-300}" --scrambled
