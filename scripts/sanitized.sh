#!/usr/bin/env bash
# The native sources under sanitizers, incremental: AddressSanitizer and UBSan for kernels and loader,
# ThreadSanitizer for the thread pool, and where there is clang the fuzz targets. Prints what a
# compiler says only where a build fails.
#
#   scripts/sanitized.sh
set -euo pipefail
cd "$(dirname "$0")/.."
variants=(asan tsan)
if command -v clang++ > /dev/null || command -v clang++-15 > /dev/null; then variants+=(fuzzer); fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
for variant in "${variants[@]}"; do
  scripts/native.sh "$variant" > "$log" 2>&1 || { cat "$log" >&2; exit 1; }
done
