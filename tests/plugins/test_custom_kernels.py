"""Kernels of custom operators in C and OpenCL, here and in the runner, against NumPy."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import lite_engine
import numpy as np
import pytest
from lite_engine import Predictor, custom_op
from lite_engine._native import header_path, runner_path
from lite_engine.backends.cpu.custom import libraries_of
from lite_engine.devices import EmulatedDevice
from lite_engine.errors import BackendUnavailableError, LiteError, UsageError
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import get_op, infer_types
from lite_engine.runtime import host_target

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler; apt-get install gcc"),
]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)


@pytest.fixture
def walk(root, tmp_path, monkeypatch):
    """The operator, the C kernel and the OpenCL kernel of the page, as swirl.py too; the model and
    the commands."""
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    page = (root / "docs/own_operators.md").read_text()
    blocks = [(language, body) for language, body in FENCE.findall(page)]
    parts = [b for b in blocks if "Halves" not in b[1] and "acme-square" not in b[1]]
    lines = [line for _, body in parts for line in body.splitlines() if line.strip()]
    assert len(lines) <= 60
    commands = [c.split() for language, body in parts if not language for c in body.splitlines()]
    names: dict = {"commands": commands}
    code = [b for language, b in parts if language == "python" and "Cost" not in b]
    Path("swirl.py").write_text("".join(code[:3]))
    for body in code:
        exec(body, names)
    model = lite_engine.optimize(names["graph"], targets=["x86", "arm", "opencl"])
    model.save("swirl.lite", ship_kernels=True)
    return {**names, "model": model}


def _graph(op="com.acme::Swirl", **attrs):
    graph = Graph()
    graph.inputs = [Value("x", DType.F32, (2, 3, 33, 40))]
    first = graph.add("Relu", graph.inputs, name="first").output
    own = graph.add(op, [first], attrs, name="own").output
    graph.outputs = [graph.add("Neg", [own], name="last").output]
    infer_types(graph)
    return graph


X = np.random.default_rng(0).standard_normal((2, 3, 33, 40)).astype(np.float32)


def _run(graph, target, **options):
    predictor = Predictor(graph, target, **options)
    (y,) = predictor.run(x=X).values()
    return predictor, y


@pytest.mark.parametrize("threads", [1, 2])
def test_the_c_kernel_runs_between_native_layers(walk, threads):
    graph = _graph(strength=2.0)
    predictor, y = _run(graph, host_target(), threads=threads)
    np.testing.assert_allclose(y, _run(graph, "reference")[1], atol=1e-6)
    assert {s.backend for s in predictor.plan().steps} == {"cpu"}
    assert "plugin__acme" in [t.variant for t in predictor.execution().times()]


@pytest.mark.arm
def test_the_c_kernel_runs_on_emulated_arm(walk):
    if shutil.which("aarch64-linux-gnu-gcc") is None:
        pytest.skip("no cross compiler; apt-get install gcc-aarch64-linux-gnu")
    graph = _graph(strength=2.0)
    _, y = _run(graph, "arm", device=EmulatedDevice())
    np.testing.assert_allclose(y, _run(graph, "reference")[1], atol=1e-6)


@pytest.mark.opencl
def test_the_opencl_kernel_runs_on_the_device(walk):
    graph = _graph(strength=2.0)
    predictor, y = _run(graph, "opencl")
    np.testing.assert_allclose(y, _run(graph, "reference")[1], atol=1e-5)
    assert next(s for s in predictor.plan().steps if s.name == "own").backend == "opencl"


def _lite_run(*arguments, opencl=True):
    command = [runner_path(opencl=opencl), "swirl.lite", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_runner_loads_libraries_only_when_it_is_told_to(walk, tmp_path):
    x = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)
    np.save("x.npy", x)
    (library,) = libraries_of(["com.acme::Swirl"], "x86_64")
    untrusted = _lite_run()
    assert untrusted.returncode == 1
    assert "no library with a kernel for it is loaded" in untrusted.stderr
    for allowed in (["--trust"], ["--library", str(library)]):
        done = _lite_run("--input", "x=x.npy", "--output", "out", *allowed)
        assert done.returncode == 0, done.stderr
        (file,) = (tmp_path / "out").iterdir()
        np.testing.assert_allclose(np.load(file), x * np.cos(2 * x), atol=1e-6)
        file.unlink()
    assert "start lite_run_opencl" in _lite_run("--trust", opencl=False).stderr
    assert not list(tmp_path.glob("lite-*"))


@pytest.mark.opencl
def test_the_runner_runs_the_opencl_kernel_of_a_file_that_is_trusted(walk, tmp_path):
    x = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)
    np.save("x.npy", x)
    model = lite_engine.optimize(walk["graph"], targets=["opencl", "x86"])
    model.save("swirl.lite", ship_kernels=True)
    asked = ["--input", "x=x.npy", "--backend", "opencl", "--output"]
    done = _lite_run(*asked, "out", "--trust", "--profile", "profile.json")
    assert done.returncode == 0, done.stderr
    (made,) = (tmp_path / "out").iterdir()
    np.testing.assert_allclose(np.load(made), x * np.cos(2 * x), atol=1e-5)
    variants = [s["variant"] for s in json.loads(Path("profile.json").read_text())["steps"]]
    assert any(v.startswith("f32_swirl_") for v in variants), variants
    untrusted = _lite_run(*asked, "none")
    assert untrusted.returncode == 1 and "--trust" in untrusted.stderr
    (library,) = libraries_of(["com.acme::Swirl"], "x86_64")
    done = _lite_run("--input", "x=x.npy", "--output", "cpu", "--library", str(library))
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "cpu" / made.name), x * np.cos(2 * x), atol=1e-6)
    assert "--trust" in _lite_run("--info", "--library", str(library)).stdout
    model.save("swirl.lite")
    assert b"cos(STRENGTH" not in Path("swirl.lite").read_bytes()
    assert _lite_run(*asked, "none", "--trust").returncode == 1
    (text,) = Path("cache/custom").glob("swirl_*.cl")
    done = _lite_run(*asked, "given", "--library", str(text))
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "given" / made.name), np.load(made))
    assert "linked statically" in _lite_run("--library", str(text), opencl=False).stderr


@pytest.mark.opencl
def test_the_native_executor_runs_the_opencl_kernel(walk, monkeypatch):
    graph = _graph(strength=2.0)
    wanted = _run(graph, "opencl")[1]
    monkeypatch.setenv("LITE_OPENCL_EXECUTOR", "native")
    np.testing.assert_array_equal(_run(graph, "opencl")[1], wanted)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"", "not the text"),
        (b"a\0b", "not the text"),
        (b"kernel void f() {}", "no line '//@ kernel"),
    ],
)
def test_a_text_that_is_none_is_refused(walk, text, reason):
    Path("own.cl").write_bytes(text)
    done = _lite_run("--library", "./own.cl")
    assert done.returncode == 1 and "./own.cl" in done.stderr and reason in done.stderr


@pytest.mark.arm
def test_the_file_runs_on_emulated_arm(walk, tmp_path):
    """The command of the page, with this machine's path of the runner."""
    x = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)
    np.save("x.npy", x)
    command = next(c for c in walk["commands"] if c[0].startswith("qemu"))
    command[command.index("lite_run_opencl")] = str(runner_path("aarch64", opencl=True))
    subprocess.run([*command, "--input", "x=x.npy"], check=True)
    (made,) = (tmp_path / "out").iterdir()
    np.testing.assert_allclose(np.load(made), x * np.cos(2 * x), atol=1e-6)


def test_a_file_holds_no_code_unless_it_was_asked_for(walk, tmp_path):
    (library,) = libraries_of(["com.acme::Swirl"], "x86_64")
    assert library.read_bytes() in (tmp_path / "swirl.lite").read_bytes()
    walk["model"].save("swirl.lite")
    assert library.read_bytes() not in (tmp_path / "swirl.lite").read_bytes()
    assert "no library" in _lite_run("--trust").stderr


TEXT = """
#include <stdio.h>
#include "lite_plugin.h"
static int released;
static int prepare(lite_plugin_call* c) {
  if (c->inputs[0].rank == 4) return 0;
  snprintf(c->error, c->error_bytes, "expected rank 4, found %d", c->inputs[0].rank);
  return 1;
}
static int run(const lite_plugin_call* c, int thread, int threads) {
  if (lite_plugin_number(c, "fail", 0, 0)) {
    snprintf(c->error, c->error_bytes, "the sensor is unplugged");
    return 1;
  }
  memcpy(c->outputs[0].data, c->inputs[0].data, c->inputs[0].bytes);
  return 0;
}
static const lite_plugin_kernel kernels[] = {
    {"com.acme::Same", LITE_PLUGIN_ONE_THREAD, prepare, run, 0}};
LITE_PLUGIN("same", kernels)
"""


@pytest.fixture
def same(tmp_path, monkeypatch):
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path / "cache"))

    @custom_op("com.acme::Same")
    def same(x, *, fail=0):
        return x

    return same


def test_a_kernel_that_fails_is_an_error_of_its_layer(same):
    lite_engine.c_kernel(same, TEXT)
    np.testing.assert_array_equal(_run(_graph("com.acme::Same"), host_target())[1], -X.clip(0))
    with pytest.raises(LiteError, match=r"own.*com.acme::Same.*same: the sensor is unplugged"):
        _run(_graph("com.acme::Same", fail=1), host_target())


def test_a_kernel_may_refuse_a_call(same):
    lite_engine.c_kernel(same, TEXT)
    graph = Graph()
    graph.inputs = [Value("x", DType.F32, (3,))]
    graph.outputs = [graph.add("com.acme::Same", graph.inputs, name="own").output]
    infer_types(graph)
    with pytest.raises(LiteError, match="same: expected rank 4, found 1"):
        Predictor(graph, host_target()).run(x=np.zeros(3, np.float32))


def test_a_text_that_does_not_compile_is_one_line(same):
    with pytest.raises(
        UsageError, match=r"com.acme::Same: \S+ says: .*error: .*nonsense"
    ) as caught:
        lite_engine.c_kernel(same, TEXT.replace("return 0;", "return nonsense;", 1))
    assert "\n" not in str(caught.value)
    assert not same.kernels


def _built(tmp_path, text):
    (tmp_path / "own.c").write_text(text)
    made = tmp_path / "libown.so"
    include = header_path("lite_plugin.h").parent
    command = ["cc", "-shared", "-fPIC", "-I", include, tmp_path / "own.c", "-o", made]
    subprocess.run(command, check=True)
    return made


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("{LITE_PLUGIN_ABI", "{99"), "plug-in ABI 99, this runtime has 1"),
        (("lite_plugin_get", "acme_get"), "has no lite_plugin_get"),
        (("prepare, run, 0", "prepare, 0, 0"), "a kernel without run"),
    ],
)
def test_a_library_that_does_not_fit_is_refused(same, tmp_path, change, reason):
    header = header_path("lite_plugin.h").read_text()
    text = TEXT.replace('#include "lite_plugin.h"', header.replace(*change[:2])).replace(*change)
    with pytest.raises(BackendUnavailableError, match=reason):
        lite_engine.c_kernel(same, library=_built(tmp_path, text))
    assert not same.kernels


def test_a_library_may_be_given_by_architecture(same, tmp_path):
    made = _built(tmp_path, TEXT)
    lite_engine.c_kernel(same, library={"x86_64": made, "aarch64": made})
    np.testing.assert_array_equal(_run(_graph("com.acme::Same"), host_target())[1], -X.clip(0))
    with pytest.raises(BackendUnavailableError, match="no library for armv7"):
        libraries_of(["com.acme::Same"], "armv7")


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({"library": "missing/libown.so"}, "missing/libown.so does not exist"),
        ({"library": {"s390x": "libown.so"}}, "there is no library for"),
        ({"source": TEXT}, "no C compiler for .* is installed"),
    ],
)
def test_numpy_computes_an_operator_whose_library_is_missing(same, monkeypatch, given, reason):
    if "source" in given:
        monkeypatch.setenv("PATH", "/nowhere")
        monkeypatch.setenv("CC", "nothing")
    lite_engine.c_kernel(same, **given)
    predictor, y = _run(_graph("com.acme::Same"), host_target())
    np.testing.assert_array_equal(y, -X.clip(0))
    step = next(s for s in predictor.plan().steps if s.name == "own")
    assert step.backend == "reference" and re.search(reason, step.why)


def test_only_custom_operators_take_kernels():
    with pytest.raises(UsageError, match="Relu is not a custom operator"):
        lite_engine.c_kernel(get_op("Relu"), TEXT)
    with pytest.raises(UsageError, match="Relu is not a custom operator"):
        lite_engine.opencl_kernel(get_op("Relu"), "")


def test_an_opencl_text_states_what_it_reaches(same):
    with pytest.raises(UsageError, match="no line `//@ kernel NAME`"):
        lite_engine.opencl_kernel(same, "kernel void same(global const T *x) {}")
    with pytest.raises(UsageError, match="not complete"):
        lite_engine.opencl_kernel(same, "//@ kernel same\nkernel void same(global T *y, int n) {}")
