"""A backend's own shared library in the runner: blobs beside the fallback program."""

from __future__ import annotations

import shlex
import shutil
import subprocess

import numpy as np
import pytest
from lite_engine import Predictor, optimize, write_onnx
from lite_engine._native import header_path, runner_path
from lite_engine.backends import register_backend, unregister_backend
from lite_engine.backends.plugins import Portable
from lite_engine.errors import UsageError
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types
from lite_engine.runtime import host_target
from lite_workbench.cli import main

from tests.plugins.toy import Toy

pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler; apt-get install gcc"),
]
LETTERS = {"Relu": b"r", "Neg": b"n", "Abs": b"a"}

#: What `blob` writes: a letter for each function of a chain.
LIBRARY = """
#include <stdio.h>
#include "lite_plugin.h"

static int prepare(lite_plugin_call* call) {
  const lite_plugin_tensor* blob = &call->inputs[0];
  size_t i;
  if (call->num_inputs != 2 || !blob->data || call->inputs[1].bytes != call->outputs[0].bytes) {
    snprintf(call->error, call->error_bytes, "expected a chain of functions");
    return 1;
  }
  for (i = 0; i < blob->bytes; ++i)
    if (!strchr("rna", ((const char*)blob->data)[i])) {
      snprintf(call->error, call->error_bytes, "the blob has an unknown function");
      return 1;
    }
  return 0;
}

static int run(const lite_plugin_call* call, int thread, int threads) {
  const char* blob = call->inputs[0].data;
  const float* x = call->inputs[1].data;
  float* y = call->outputs[0].data;
  int64_t i, end;
  if (x[0] == 99) {
    snprintf(call->error, call->error_bytes, "the device is gone");
    return 1;
  }
  lite_plugin_share(call->inputs[1].size, thread, threads, &i, &end);
  for (; i < end; ++i) {
    size_t k;
    float v = x[i];
    for (k = 0; k < call->inputs[0].bytes; ++k)
      v = blob[k] == 'r' ? (v > 0 ? v : 0) : blob[k] == 'n' ? -v : v < 0 ? -v : v;
    y[i] = v;
  }
  return 0;
}

static const lite_plugin_kernel kernels[] = {{"backend::chain", 0, prepare, run, 0}};
LITE_PLUGIN("libchain", kernels)
"""


class Chain(Toy):
    """Takes chains of functions of one number."""

    name = "chain"

    def supports(self, node):
        return "" if node.op in LETTERS else f"no {node.op}"

    def blob(self, graph):
        return b"".join(LETTERS[n.op] for n in graph.nodes)


@pytest.fixture
def chain():
    backend = Chain()
    register_backend(backend)
    yield backend
    unregister_backend("chain")


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return _built(tmp_path_factory.mktemp("chain"))


def _built(folder, compiler="cc"):
    (folder / "chain.c").write_text(LIBRARY)
    include = header_path("lite_plugin.h").parent
    command = [compiler, "-O2", "-shared", "-fPIC", "-I", include, "chain.c", "-o", "libchain.so"]
    subprocess.run(command, check=True, cwd=folder)
    return folder / "libchain.so"


def _model():
    """Two chains with a Softmax between them."""
    graph = Graph()
    graph.inputs = [Value("x", DType.F32, (4, 6))]
    value = graph.inputs[0]
    for name in ("Neg", "Relu", "Softmax", "Neg", "Abs", "Neg"):
        value = graph.add(name, [value], name=graph.unique(name)).output
    graph.outputs = [value]
    infer_types(graph)
    return optimize(graph, targets=[host_target()])


def _run(folder, x, *arguments):
    np.save(folder / "x.npy", x)
    command = [runner_path(opencl=True), "m.lite", "--input", "x=x.npy", "--output", "out"]
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, check=False, cwd=folder
    )
    made = list((folder / "out").glob("*.npy")) if done.returncode == 0 else []
    return done, np.load(made[0]) if made else None


def _choice(folder, *arguments):
    command = [runner_path(opencl=True), "m.lite", "--info", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True, cwd=folder).stdout


def test_the_runner_takes_the_blobs_where_the_library_is_and_the_cpu_otherwise(
    chain, library, tmp_path
):
    model = _model()
    assert isinstance(chain, Portable)
    model.save(tmp_path / "m.lite", backends=["chain"])
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    (wanted,) = Predictor(model, "reference").run(x=x).values()
    given = ["--library", str(library)]
    for arguments in ([], given, [*given, "--target", "chain"], ["--backend", "cpu", *given]):
        done, y = _run(tmp_path, x, *arguments)
        assert done.returncode == 0, done.stderr
        np.testing.assert_allclose(y, wanted, rtol=1e-6)
    assert '"choice": "chain: library libchain"' in _choice(tmp_path, *given)
    assert '"steps": 3' in _choice(tmp_path, *given)
    missing = "cpu: chain: no library of this backend is loaded; name one with --library PATH"
    assert missing in _choice(tmp_path)
    assert '"choice": "cpu: asked for"' in _choice(tmp_path, "--backend", "cpu", *given)
    done, _ = _run(tmp_path, x, "--target", "chain")
    assert done.returncode == 1 and "no library of this backend is loaded" in done.stderr


@pytest.mark.parametrize(
    ("target", "compiler", "emulator"),
    [
        (host_target(), "cc", ()),
        pytest.param(
            "arm", "aarch64-linux-gnu-gcc", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu"),
            marks=pytest.mark.arm,
        ),
    ],
)  # fmt: skip
def test_the_exported_folder_runs_it(chain, tmp_path, target, compiler, emulator):
    """The command of its page, from a file of another tool."""
    if shutil.which(compiler) is None:
        pytest.skip(f"apt-get install gcc-{compiler.removesuffix('-gcc')}")
    graph = _model().graph
    write_onnx(graph, tmp_path / "m.onnx")
    made = _built(tmp_path, compiler)
    words = ["--target", target, "--plugins", "chain", "--library", str(made), "--no-report"]
    assert main(["export", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "dev"), *words]) == 0
    page = (tmp_path / "dev/README.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith("./lite_run_opencl")]
    x = np.random.default_rng(0).standard_normal((4, 6)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    command = [*emulator, *shlex.split(line), "--target", "chain", "--output", "out"]
    more = ["--input", f"x={tmp_path / 'x.npy'}"]
    subprocess.run([*command, *more], check=True, cwd=tmp_path / "dev/bin")
    (file,) = (tmp_path / "dev/bin/out").iterdir()
    (wanted,) = Predictor(graph, "reference").run(x=x).values()
    np.testing.assert_allclose(np.load(file), wanted, rtol=1e-6)


def test_a_trimmed_runner_and_a_page_load_no_libraries(chain, library, tmp_path, capsys):
    write_onnx(_model().graph, tmp_path / "m.onnx")
    words = ["export", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "dev"), "--no-report"]
    for more in (["--target", "web", "--plugins", "chain"], ["--trim", "--library", str(library)]):
        assert main([*words, *more]) == 2
        assert "a trimmed runner or a page cannot load libraries" in (capsys.readouterr().err)
    assert main([*words, "--target", host_target(), "--library", "nowhere.so"]) == 2
    assert "nowhere.so does not exist" in capsys.readouterr().err
    assert not (tmp_path / "dev").exists()


def test_a_run_that_fails_there_goes_on_on_the_cpu(chain, library, tmp_path):
    model = _model()
    model.save(tmp_path / "m.lite", backends=["chain"])
    x = np.full((4, 6), 99, np.float32)
    done, y = _run(tmp_path, x, "--library", str(library))
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(y, Predictor(model, "reference").run(x=x).popitem()[1], rtol=1e-6)
    done, _ = _run(tmp_path, x, "--library", str(library), "--target", "chain")
    assert done.returncode == 1
    assert "backend::chain): libchain: the device is gone" in done.stderr


def test_a_blob_that_the_library_refuses_is_the_reason_for_the_cpu(chain, library, tmp_path):
    chain.blob = lambda graph: b"x" * len(graph.nodes)
    _model().save(tmp_path / "m.lite", backends=["chain"])
    choice = _choice(tmp_path, "--library", str(library))
    assert '"choice": "cpu: ' in choice and "libchain: the blob has an unknown function" in choice


def test_the_file_runs_in_python_when_the_plugin_is_gone(chain, tmp_path):
    model = _model()
    model.save(tmp_path / "m.lite", backends=["chain"])
    x = np.ones((4, 6), np.float32)
    (wanted,) = Predictor(model, "reference").run(x=x).values()
    unregister_backend("chain")
    (y,) = Predictor(tmp_path / "m.lite").run(x=x).values()
    np.testing.assert_allclose(y, wanted, rtol=1e-6)


def test_the_command_writes_the_file(chain, library, tmp_path):
    write_onnx(_model().graph, tmp_path / "m.onnx")
    out = str(tmp_path / "m.lite")
    target = host_target()
    convert = ["convert", str(tmp_path / "m.onnx"), "-o", out, "--targets", target]
    assert main([*convert, "--plugins", "chain"]) == 0
    assert '"choice": "chain: library libchain"' in _choice(tmp_path, "--library", str(library))


def test_a_backend_without_blobs_is_refused(tmp_path):
    register_backend(Toy())
    try:
        with pytest.raises(UsageError, match="toy has no form for running without Python"):
            _model().save(tmp_path / "m.lite", backends=["toy"])
    finally:
        unregister_backend("toy")
    assert not list(tmp_path.iterdir())
