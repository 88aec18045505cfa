# Sourced by ../handoff: which ROS 2 is in use, and the environment of the build and the program.
# shellcheck shell=bash disable=SC2154

variables=(ROS_DISTRO ROS_VERSION ROS_PYTHON_VERSION RMW_IMPLEMENTATION AMENT_PREFIX_PATH CMAKE_PREFIX_PATH LD_LIBRARY_PATH PYTHONPATH PATH)

# path_without_ours NAME: takes out of a path variable what an environment of ours put in, this clone's or another's.
path_without_ours() {
  local entries entry kept=
  IFS=: read -ra entries <<< "${!1-}"
  for entry in "${entries[@]}"; do
    [[ -z $entry || $entry == */.handoff/* ]] || kept+=${kept:+:}$entry
  done
  if [[ -n $kept ]]; then export "$1=$kept"; else unset "$1"; fi
}

# path_prepend NAME ENTRY...: puts the entries that exist before a path variable, in their order.
path_prepend() {
  local name=$1 entry front=
  shift
  for entry in "$@"; do
    [[ -d $entry ]] && front+=$entry:
  done
  front+=${!name-}
  export "$name=${front%:}"
}

# Sets `ros` to `installed` or `brought`.
choose_ros() {
  local name
  for name in AMENT_PREFIX_PATH CMAKE_PREFIX_PATH LD_LIBRARY_PATH PYTHONPATH PATH; do
    path_without_ours "$name"
  done
  ros=brought
  [[ -n ${ROS_DISTRO-} && -n ${AMENT_PREFIX_PATH-} ]] || return 0
  ros=installed
  case $ROS_DISTRO in
    humble | jazzy | lyrical | rolling) ;;
    *) die "the ROS 2 client r2r 0.9.7 does not know '$ROS_DISTRO': source humble, jazzy, lyrical or rolling, or none, and Jazzy is brought along" ;;
  esac
}

enter_ros() {
  if [[ $ros == installed ]]; then
    PATH+=:$state/tools/path # behind the system's own cmake
    return
  fi
  local prefix=$state/ros
  export ROS_DISTRO=jazzy ROS_VERSION=2 ROS_PYTHON_VERSION=3
  export RMW_IMPLEMENTATION=rmw_fastrtps_cpp # the only one in the wheels
  path_prepend PATH "$prefix/bin" "$state/tools/path"
  path_prepend AMENT_PREFIX_PATH "$prefix"
  path_prepend CMAKE_PREFIX_PATH "$prefix"
  path_prepend LD_LIBRARY_PATH "$prefix/lib" "$prefix"/lib/python3*/site-packages/ros_*.libs
}

enter_messages() {
  path_prepend AMENT_PREFIX_PATH "$messages"
  path_prepend CMAKE_PREFIX_PATH "$messages"
  path_prepend LD_LIBRARY_PATH "$messages/lib"
  path_prepend PYTHONPATH "$messages"/lib/python3*/site-packages "$messages"/local/lib/python3*/dist-packages
}

print_environment() {
  local name
  for name in "${variables[@]}"; do
    [[ -z ${!name-} ]] || printf 'export %s=%q\n' "$name" "${!name}"
  done
}
