#!/usr/bin/env bash
# Runs a command with an OpenCL loader that knows NVIDIA's driver, where no .icd file names it.
#
#   scripts/opencl_nvidia.sh python -m benchmarks.opencl.networks
set -euo pipefail
library=$(ldconfig -p | sed -n 's/.* => \(.*libnvidia-opencl\.so\.1\)$/\1/p' | head -n 1)
[ -n "$library" ] || library=$(find /usr/local /usr/lib -name libnvidia-opencl.so.1 2> /dev/null | head -n 1)
[ -n "$library" ] || { echo "error: libnvidia-opencl.so.1 not found; install NVIDIA's driver" >&2; exit 1; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
echo "$library" > "$folder/nvidia.icd"
OCL_ICD_VENDORS=$folder "$@"
