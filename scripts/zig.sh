#!/usr/bin/env bash
# Prints the path of zig, whose `zig c++` compiles for every target: $ZIG, the one of the path, or
# that of the wheel `ziglang`.
set -euo pipefail
zig=${ZIG:-$(command -v zig || true)}
if [ -z "$zig" ]; then
  zig=$(python3 -c 'import pathlib, ziglang; print(pathlib.Path(ziglang.__file__).parent / "zig")' 2> /dev/null || true)
fi
if [ ! -x "$zig" ]; then
  echo "error: no zig; pip install ziglang, or ZIG=<its path>" >&2
  exit 1
fi
echo "$zig"
