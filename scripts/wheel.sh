#!/usr/bin/env bash
# Builds wheels into dist/ (or $2), tagged with the system that their libraries really need.
#
#   scripts/wheel.sh                    this machine
#   scripts/wheel.sh aarch64 [FOLDER]   AArch64 Linux, cross-built
#   scripts/wheel.sh TARGET [FOLDER]    another system, cross-built with zig: one of $zig_targets
#   scripts/wheel.sh all [FOLDER]       all of them
#
# ARM_RUNNER=OFF leaves the runner for AArch64 boards out.
set -euo pipefail
cd "$(dirname "$0")/.."
zig_targets="x86_64-linux-musl aarch64-linux-musl aarch64-macos.11.0 x86_64-macos.11.0
             x86_64-windows-gnu aarch64-windows-gnu"
arch=${1:-$(uname -m)}
folder=${2:-dist}
if [ "$arch" = all ]; then
  for target in x86_64 aarch64 $zig_targets; do "$0" "$target" "$folder"; done
  exit
fi
export PATH=$PWD/.venv/bin:$PATH
# The paths and the compiler's name of scripts/native.sh: to ccache, g++ is not c++.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CXX=${CXX:-c++}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

options=("-Cbuild-dir=build/wheel-$arch" "-Ccmake.define.LITE_ARM_RUNNER=${ARM_RUNNER:-ON}")
case " $(echo $zig_targets) " in
  *" $arch "*)
    options+=("-Ccmake.define.CMAKE_TOOLCHAIN_FILE=$PWD/engine/native/cmake/zig.cmake"
              "-Ccmake.define.LITE_ZIG=$(scripts/zig.sh)" "-Ccmake.define.LITE_ZIG_TARGET=$arch") ;;
  *)
    if [ "$arch" != "$(uname -m)" ]; then
      compiler=$arch-linux-gnu-g++
      if [ ! -f "engine/native/cmake/$arch-linux-gnu.cmake" ] || ! command -v "$compiler" > /dev/null; then
        echo "error: cannot cross-build for $arch: no $compiler, and no target of zig" >&2; exit 2
      fi
      # Without this variable the wheel would silently carry this machine's tag.
      export _PYTHON_HOST_PLATFORM=linux-$arch
      toolchain=$PWD/engine/native/cmake/$arch-linux-gnu.cmake
      options+=("-Ccmake.define.CMAKE_TOOLCHAIN_FILE=$toolchain")
    fi ;;
esac
# setup.sh has what the build needs, also an npm that is not pip's.
python -m build --wheel --no-isolation --skip-dependency-check "${options[@]}" --outdir "$made" .
python scripts/tag_wheel.py "$made"/*.whl "$folder"
