#!/usr/bin/env bash
# The test that needs franka_msgs, with the one message of it that handoff reads (tests/franka_msgs), in a build of its own: ten minutes
# on two cores the first time. That program is for the test alone: it does not understand a robot's messages.
# Usage: scripts/test_franka.sh
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$(./handoff env)
eval "$environment"
source scripts/environment.sh
target=${CARGO_TARGET_DIR:-target}/franka
prefix=$(realpath --canonicalize-missing "$target/prefix")
cmake -S tests/franka_msgs -B "$target/messages" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_INSTALL_PREFIX=$prefix" > /dev/null
cmake --build "$target/messages" --target install > /dev/null
path_prepend AMENT_PREFIX_PATH "$prefix"
path_prepend CMAKE_PREFIX_PATH "$prefix"
path_prepend LD_LIBRARY_PATH "$prefix/lib"
path_prepend PYTHONPATH "$prefix"/lib/python3*/site-packages "$prefix"/local/lib/python3*/dist-packages
cargo test --release --test tests --target-dir "$target" -- \
  --include-ignored --exact ros::policy::an_fr3_is_moved_while_its_mode_allows_and_after_a_stop_once_recovered_and_armed
