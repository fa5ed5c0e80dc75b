#!/usr/bin/env bash
# Builds the image of the lessons from what is committed, with docker, podman or buildah.
#
#   scripts/image.sh [NAME] [OPTION...]    options go to the builder: --build-arg BASE=…, --volume …
#
# Then: docker run --rm -p 8888:8888 NAME
set -euo pipefail
cd "$(dirname "$0")/.."
name=${1:-lite-workbench}
builder=$(command -v docker podman buildah | head -n 1)
if [ -z "$builder" ]; then
  echo "error: no docker, podman or buildah; install one: sudo apt-get install buildah" >&2
  exit 1
fi
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
git archive HEAD | tar -x -C "$context"
"$builder" build -t "$name" -f "$context/scripts/packaging/Dockerfile" "${@:2}" "$context"
