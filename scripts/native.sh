#!/usr/bin/env bash
# Builds the native library and lite_run; configures once, then incremental.
#
#   scripts/native.sh            this machine, installed into engine/lite_engine/_native
#   scripts/native.sh aarch64    AArch64, cross-compiled, installed beside it
#   scripts/native.sh armv7      32-bit ARM with NEON, cross-compiled, installed beside it
#   scripts/native.sh wasm       WebAssembly, cross-compiled with zig, installed beside it
#   scripts/native.sh asan|tsan  sanitized, left in build/asan, build/tsan
#   scripts/native.sh fuzzer     coverage-guided fuzz targets (clang), left in build/fuzzer
#   scripts/native.sh TARGET     for another system with zig, left in build/TARGET: x86_64-windows-gnu,
#                                aarch64-macos.11.0, x86_64-linux-musl, …
#
# JOBS=N limits the parallel compilations.
set -euo pipefail
cd "$(dirname "$0")/.."
variant=${1:-native}
build=build/$variant
export PATH=$PWD/.venv/bin:$PATH
# ccache takes paths as relative to the repository, so that a copy of it shares the objects.
export CCACHE_BASEDIR=${CCACHE_BASEDIR:-$PWD}

options=()
case $variant in
  native) ;;
  aarch64)
    if [ "$(uname -m)" = aarch64 ]; then
      build=build/native
    elif ! command -v aarch64-linux-gnu-g++ > /dev/null; then
      echo "error: no AArch64 cross compiler; sudo apt-get install g++-aarch64-linux-gnu" >&2
      exit 1
    else
      options=(-DCMAKE_TOOLCHAIN_FILE="$PWD/engine/native/cmake/aarch64-linux-gnu.cmake")
    fi ;;
  armv7)
    if ! command -v arm-linux-gnueabihf-g++ > /dev/null; then
      echo "error: no cross compiler for 32-bit ARM; sudo apt-get install g++-arm-linux-gnueabihf" >&2
      exit 1
    fi
    options=(-DCMAKE_TOOLCHAIN_FILE="$PWD/engine/native/cmake/arm-linux-gnueabihf.cmake") ;;
  wasm)
    options=(-DCMAKE_TOOLCHAIN_FILE="$PWD/engine/native/cmake/zig.cmake" -DLITE_ZIG_TARGET=wasm32-wasi
             -DLITE_ZIG="$(scripts/zig.sh)") ;;
  asan) options=(-DLITE_SANITIZE=address -DCMAKE_BUILD_TYPE=RelWithDebInfo) ;;
  tsan) options=(-DLITE_SANITIZE=thread -DCMAKE_BUILD_TYPE=RelWithDebInfo) ;;
  fuzzer)
    clang=$(command -v clang++ clang++-19 clang++-18 clang++-17 clang++-16 clang++-15 clang++-14 | head -1)
    if [ -z "$clang" ]; then
      echo "error: no clang; sudo apt-get install clang" >&2
      exit 1
    fi
    options=(-DLITE_SANITIZE=fuzzer -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_CXX_COMPILER="$clang") ;;
  *-windows-* | *-macos* | *-linux-*)
    options=(-DCMAKE_TOOLCHAIN_FILE="$PWD/engine/native/cmake/zig.cmake" -DLITE_ZIG_TARGET="$variant"
             -DLITE_ZIG="$(scripts/zig.sh)") ;;
  *) echo "usage: $0 [native|aarch64|armv7|wasm|asan|tsan|fuzzer|TARGET]" >&2; exit 2 ;;
esac
if ! command -v cmake > /dev/null; then
  echo "error: no cmake; run scripts/setup.sh, or sudo apt-get install cmake ninja-build" >&2
  exit 1
fi

# One build of a variant at a time: parallel `make` calls wait for each other.
mkdir -p "$build"
exec 9> "$build/.lock"
flock 9
if [ ! -f "$build/CMakeCache.txt" ] || ! cmake -L -N "$build" > /dev/null 2>&1; then
  generator=()
  command -v ninja > /dev/null && generator=(-G Ninja)
  cmake -S engine/native -B "$build" "${generator[@]}" "${options[@]}"
fi
cmake --build "$build" --parallel "${JOBS:-$(nproc)}"
case $variant in
  native | aarch64 | armv7 | wasm)
    cmake --install "$build" --prefix engine --component runtime | grep -v -- '-- Up-to-date' || true ;;
esac
