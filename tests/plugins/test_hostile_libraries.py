"""Libraries that are none, or do not fit: the runner says why, on x86 and on emulated ARM."""

from __future__ import annotations

import platform
import shutil
import subprocess

import pytest
from lite_engine import optimize
from lite_engine._native import header_path, runner_path
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(platform.machine() != "x86_64", reason="the compilers below are x86-64's"),
]
#: Compiled as it is, it fits; TABLE, EXPORT and KERNEL are what is changed.
SOURCE = """
#include <stddef.h>
#include "lite_plugin.h"
#ifndef KERNEL
#define KERNEL {"com.acme::Op", 0, 0, run, 0}
#endif
#ifndef TABLE
#define TABLE {LITE_PLUGIN_ABI, 1, "acme", kernels}
#endif
#ifndef EXPORT
#define EXPORT lite_plugin_get
#endif
static int run(const lite_plugin_call* call, int thread, int threads) { return 0; }
static const lite_plugin_kernel kernels[] = {KERNEL};
static const lite_plugin plugin = TABLE;
#ifdef NOTHING
const lite_plugin* lite_plugin_get(void) { return NULL; }
#else
const lite_plugin* EXPORT(void) { return &plugin; }
#endif
"""
COMPILERS = {"x86_64": "gcc", "aarch64": "aarch64-linux-gnu-gcc"}
EMULATOR = {"x86_64": (), "aarch64": ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")}
UNFIT = {
    "ABI": ('-DTABLE={99,1,"acme",kernels}', "has plug-in ABI 99, this runtime has 1"),
    "negative": ('-DTABLE={1,-1,"acme",kernels}', "has no table of kernels"),
    "null": ('-DTABLE={1,1,"acme",NULL}', "has no table of kernels"),
    "endless": ('-DTABLE={1,2147483647,"acme",kernels}', "has more kernels than fit"),
    "no run": ('-DKERNEL={"com.acme::Op",0,0,0,0}', "a kernel without run"),
    "no name": ("-DKERNEL={0,0,0,run,0}", "a kernel without run"),
    "two words": ('-DKERNEL={"an op",0,0,run,0}', "an operator that is not one word"),
    "symbol": ("-DEXPORT=acme_get", "has no lite_plugin_get"),
    "nothing": ("-DNOTHING", "gave no kernels"),
}
ARCHITECTURES = ["x86_64", pytest.param("aarch64", marks=pytest.mark.arm)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("hostile")
    graph = Graph("m")
    graph.inputs = [Value("x", DType.F32, (4, 6))]
    graph.outputs = [graph.add("Neg", graph.inputs, name="y").output]
    infer_types(graph)
    optimize(graph, targets=["x86", "arm"]).save(place / "m.lite")
    (place / "acme.c").write_text(SOURCE)
    return place


def _library(folder, arch: str, name: str, *options: str):
    if shutil.which(COMPILERS[arch]) is None:
        pytest.skip(f"no {COMPILERS[arch]}")
    made = folder / f"lib{name.replace(' ', '_')}.{arch}.so"
    include = header_path("lite_plugin.h").parent
    command = [COMPILERS[arch], "-shared", "-fPIC", "-I", include, *options, "acme.c", "-o", made]
    subprocess.run(list(map(str, command)), check=True, cwd=folder)
    return f"./{made.name}"


def _run(folder, arch: str, library: str) -> subprocess.CompletedProcess[str]:
    command = [*EMULATOR[arch], runner_path(arch, opencl=True), "m.lite", "--library", library]
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, cwd=folder)


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_a_library_that_does_not_fit_is_one_line(folder, arch):
    done = _run(folder, arch, _library(folder, arch, "fits"))
    assert done.returncode == 0, done.stderr
    for name, (option, reason) in UNFIT.items():
        library = _library(folder, arch, name, option)
        done = _run(folder, arch, library)
        assert done.returncode == 1, (name, done)
        assert f"{library} " in done.stderr and reason in done.stderr, (name, done.stderr)
        assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_what_is_no_library_is_one_line(folder, arch):
    (folder / "text.so").write_text("no library")
    (folder / "empty.so").touch()
    other = next(a for a in COMPILERS if a != arch)
    cut = folder / "cut.so"
    cut.write_bytes((folder / _library(folder, arch, "fits")).read_bytes()[:700])
    names = ["./text.so", "./empty.so", "./cut.so", "./missing.so", "./", "acme.so",
             _library(folder, other, "foreign")]  # fmt: skip
    for name in names:
        done = _run(folder, arch, name)
        assert done.returncode == 1, (name, done)
        assert f"cannot load the library {name}: " in done.stderr, done.stderr
        assert done.stderr.count("\n") == 1
