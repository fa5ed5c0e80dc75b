#!/usr/bin/env bash
# Builds a wheel into dist/ (or $2), tagged with the glibc that its library really needs.
#
#   scripts/wheel.sh                    this machine
#   scripts/wheel.sh aarch64 [FOLDER]   AArch64 Linux, cross-built
#
# ARM_RUNNER=OFF leaves the AArch64 runner out of a wheel for x86-64.
set -euo pipefail
cd "$(dirname "$0")/.."
arch=${1:-$(uname -m)}
folder=${2:-dist}
export PATH=$PWD/.venv/bin:$PATH
# The paths and the compiler's name of scripts/native.sh: to ccache, g++ is not c++.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD} CXX=${CXX:-c++}
made=$(mktemp -d)
trap 'rm -rf "$made"' EXIT

options=("-Cbuild-dir=build/wheel-$arch" "-Ccmake.define.LITE_ARM_RUNNER=${ARM_RUNNER:-ON}")
if [ "$arch" != "$(uname -m)" ]; then
  if [ "$arch" != aarch64 ]; then echo "error: cannot cross-build for $arch" >&2; exit 2; fi
  # Without this variable the wheel would silently carry this machine's tag.
  export _PYTHON_HOST_PLATFORM=linux-aarch64
  toolchain=$PWD/engine/native/cmake/aarch64-linux-gnu.cmake
  options+=("-Ccmake.define.CMAKE_TOOLCHAIN_FILE=$toolchain")
fi
# setup.sh has what the build needs, also an npm that is not pip's.
python -m build --wheel --no-isolation --skip-dependency-check "${options[@]}" --outdir "$made" .
python scripts/tag_wheel.py "$made"/*.whl "$folder"
