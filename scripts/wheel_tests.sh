#!/usr/bin/env bash
# Runs the tests that ask for no Linux, with the native files of a wheel and with this Python, whose
# packages it adds to: scripts/wheel_tests.sh dist/lite_workbench-…-win_amd64.whl
#
# Left out are tests of the tools of a Linux machine (compilers, emulators, sanitizers, browsers, ssh):
# .github/workflows/test.yml runs them. Tests with a marker skip themselves and say what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
wheel=$1
unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
python -m pip install -q --no-deps --target "$unpacked" "$wheel"
cp -R "$unpacked/lite_engine/_native/." engine/lite_engine/_native/
python -m pip install -q pytest hypothesis onnx onnxruntime jsonschema
python -m pytest -q -o pythonpath=". engine workbench" tests/ir tests/passes tests/model_file \
  tests/native/runtime/test_runtime.py tests/reach/test_system.py tests/runtime/test_threads.py
