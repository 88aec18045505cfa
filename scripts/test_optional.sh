#!/usr/bin/env bash
# The tests of messages that handoff uses where it is built beside them, with what it uses of them (tests/franka_msgs,
# tests/simulation_interfaces), in a build of its own: ten minutes on two cores the first time. That program is for the tests alone: it
# does not understand a robot's messages. Usage: scripts/test_optional.sh
set -euo pipefail
cd "$(dirname "$0")/.."
environment=$(./handoff env)
eval "$environment"
source scripts/environment.sh
target=${CARGO_TARGET_DIR:-target}/optional
prefix=$(realpath --canonicalize-missing "$target/prefix")
for package in franka_msgs simulation_interfaces; do
  cmake -S "tests/$package" -B "$target/$package" -G Ninja -DCMAKE_BUILD_TYPE=Release "-DCMAKE_INSTALL_PREFIX=$prefix" > /dev/null
  cmake --build "$target/$package" --target install > /dev/null
done
path_prepend AMENT_PREFIX_PATH "$prefix"
path_prepend CMAKE_PREFIX_PATH "$prefix"
path_prepend LD_LIBRARY_PATH "$prefix/lib"
path_prepend PYTHONPATH "$prefix"/lib/python3*/site-packages "$prefix"/local/lib/python3*/dist-packages
cargo test --release --test tests --target-dir "$target" -- --include-ignored --exact \
  ros::policy::an_fr3_is_moved_while_its_mode_allows_and_after_a_stop_once_recovered_and_armed \
  train::links::a_simulator_is_reset_before_each_episode_by_the_standard_service
