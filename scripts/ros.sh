#!/usr/bin/env bash
# Repairs ROS 2 wheels after their installation into a virtual environment. Usage: scripts/ros.sh PREFIX
set -euo pipefail
prefix=$1

# These wheels link rcl straight to Fast DDS; r2r asks the linker for the usual name.
ln -sf librmw_fastrtps_cpp.so "$prefix/lib/librmw_implementation.so"

# Some C libraries name Python extension libraries that they do not use and that a native program cannot load.
for library in "$prefix"/lib/*.so; do
  if [[ $library == *__rosidl_generator_py.so || -L $library ]]; then continue; fi
  needed=$("$prefix/bin/patchelf" --print-needed "$library" | grep '__rosidl_generator_py.so$' || true)
  for name in $needed; do
    "$prefix/bin/patchelf" --remove-needed "$name" "$library"
  done
done

# Exported CMake targets name the Python of the machine that built them.
python() { "$prefix/bin/python" -c "import sys, sysconfig; print($1)"; }
include=$(python 'sysconfig.get_path("include")')
theirs=/opt/python/$(python '"cp{0}{1}-cp{0}{1}".format(*sys.version_info)')
{ grep -rlF "$theirs" "$prefix/share" --include=*.cmake || true; } |
  xargs -r sed -i -e "s#$theirs/include/$(basename "$include")#$include#g" -e "s#$theirs#$prefix#g"
