#!/usr/bin/env bash
# The builds that only `make test-sweeps` and `make test-long` need, incremental: AddressSanitizer and
# UBSan for kernels and loader, ThreadSanitizer for the thread pool, and, where their compilers are, the
# fuzz targets and 32-bit ARM. Prints what a compiler says only where a build fails.
#
#   scripts/sweep_builds.sh
set -euo pipefail
cd "$(dirname "$0")/.."
have() { command -v "$1" > /dev/null; }
variants=(asan tsan)
if have clang++ || have clang++-15; then variants+=(fuzzer); fi
if have arm-linux-gnueabihf-g++; then variants+=(armv7); fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for variant in "${variants[@]}"; do
  scripts/native.sh "$variant" > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
done
