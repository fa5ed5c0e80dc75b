#!/bin/sh
# Installs a wheel into this Python, asks `lite doctor`, and runs the tests that ask for no compiler
# with the native files of the wheel: scripts/wheel_tests.sh dist/lite_workbench-…-win_amd64.whl
#
# A wheel for musl, on a system with another C library, goes into a container of Alpine; docker runs it.
#
# Left out are tests of the tools of a Linux machine (compilers, emulators, sanitizers, browsers, ssh):
# .github/workflows/test.yml runs them. Tests with a marker skip themselves and say what is missing.
set -eu
cd "$(dirname "$0")/.."
wheel=$1
case $wheel in
  *-musllinux_*)
    if [ ! -e "/lib/ld-musl-$(uname -m).so.1" ]; then
      exec docker run --rm -v "$PWD:/lite" -w /lite python:3.11-alpine scripts/wheel_tests.sh "$wheel"
    fi ;;
esac
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
python -m pip install -q "$wheel"
native=$(python -c 'from lite_engine.runtime.choice import host_target; print(host_target())')
lite doctor --backend "$native"
python -m pip install -q --no-deps --target "$unpacked" "$wheel"
cp -R "$unpacked/lite_engine/_native/." engine/lite_engine/_native/
python -m pip install -q pytest hypothesis jsonschema
case $wheel in
  *-musllinux_*) ;; # no wheels of these two for musl: tests that compare with them are skipped
  *) python -m pip install -q onnx onnxruntime ;;
esac
python -m pytest -q -o pythonpath=". engine workbench" tests/ir tests/passes tests/model_file \
  tests/native/runtime/test_runtime.py tests/reach/test_system.py tests/runtime/test_threads.py
