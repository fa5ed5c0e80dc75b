#!/bin/sh
# arm_python.sh FOLDER: Debian's AArch64 Python and the peers' AArch64 wheels, unpacked below FOLDER.
# Needs no rights and changes nothing outside it. See __main__.py for what it is good for.
set -eu
mkdir -p "$1"
cd "$1"
root=$(pwd)
mkdir -p apt/state/lists/partial apt/cache/archives/partial debs wheels root/site root/proc
touch apt/status
cat > apt/apt.conf <<END
Dir::State "$root/apt/state";
Dir::Cache "$root/apt/cache";
Dir::State::status "$root/apt/status";
APT::Architecture "arm64";
APT::Architectures { "arm64"; };
END
export APT_CONFIG="$root/apt/apt.conf"
apt-get -q update
(cd debs && apt-get -q download python3.11-minimal libpython3.11-minimal libpython3.11-stdlib libc6 \
  zlib1g libexpat1 libffi8 libstdc++6 libgcc-s1 libssl3 libbz2-1.0 liblzma5 libuuid1 libgomp1 \
  libcrypt1)
for file in debs/*.deb; do dpkg -x "$file" root; done
python3 -m pip download -q -d wheels --no-deps --only-binary=:all: --python-version 311 \
  --platform manylinux_2_28_aarch64 --platform manylinux_2_27_aarch64 \
  --platform manylinux2014_aarch64 onnxruntime ncnn MNN ai-edge-litert numpy flatbuffers protobuf
for file in wheels/*.whl; do python3 -m zipfile -e "$file" root/site; done
# onnxruntime asks for the kind of core before it starts: a neoverse-n1.
cat > root/proc/cpuinfo <<END
processor	: 0
Features	: fp asimd evtstrm aes pmull sha1 sha2 crc32 atomics fphp asimdhp asimdrdm lrcpc dcpop asimddp
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x3
CPU part	: 0xd0c
CPU revision	: 1

END
