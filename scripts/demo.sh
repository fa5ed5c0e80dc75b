#!/usr/bin/env bash
# The whole walk without a browser: what the model is, conversion, one inference, where the time
# goes, do the backends agree, and a report that opens with no network.
#
#   scripts/demo.sh [MODEL [INPUT]]    default: the model and image that the project ships
set -euo pipefail
cd "$(dirname "$0")/.."
export PATH=$PWD/.venv/bin:$PATH
shipped=notebooks/models/digits.onnx
model=${1:-$shipped}
input=${2:-}
[ "$model" = $shipped ] && input=${input:-notebooks/models/digits.png}
[ -e "$model" ] || { echo "error: $model: no such file; make demo MODEL=FILE" >&2; exit 1; }
name=$(basename "$model"); name=${name%.*}
out=out/demo
mkdir -p $out

step() {
  printf '\n\033[1m$ lite %s\033[0m\n' "$*"
  lite "$@"
}
given=()
[ -n "$input" ] && given=(--input "$input")
step info "$model"
step convert "$model" -o "$out/$name.lite" --targets x86,arm,opencl
step run "$out/$name.lite" "${given[@]}" --top 3
step profile "$out/$name.lite"
step compare "$out/$name.lite" --backends x86,reference
step report "$out/$name.lite" -o "$out/$name.html"
printf '\nThe report is %s\n' "$out/$name.html"
