"""What the field's tools get wrong: one test per row of the table that this project exists for."""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys

import numpy as np
import pytest
from lite_engine import Predictor, optimize, settings
from lite_engine._native import runner_path
from lite_engine.compare import Side, compare
from lite_engine.errors import CalibrationError, TargetMismatchError
from lite_engine.ir import to_text
from lite_engine.runtime import host_target

from tests.small_models import attention, classifier, image

pytestmark = pytest.mark.cpu
TARGETS = ["opencl", "x86", "arm"]
OTHER = "arm" if host_target() == "x86" else "x86"


@pytest.fixture
def lite_file(tmp_path):
    """One file for every target."""
    return optimize(classifier(), targets=TARGETS).save(tmp_path / "m.lite")


def lite(*arguments, **env: str) -> subprocess.CompletedProcess[str]:
    """The `lite` command in a process of its own."""
    command = [sys.executable, "-m", "lite_workbench.cli", *map(str, arguments)]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, env={**os.environ, **env}
    )


def test_one_file_serves_every_target(lite_file, require):
    """Row 1: the same file on the CPU, on OpenCL and on emulated ARM, the same numbers; the best
    usable one is picked when it is opened, with reasons."""
    require("opencl")
    require("arm")
    feeds = image(classifier())
    want = Predictor(lite_file, "reference").run(feeds)["prob"]
    for backend in TARGETS:
        if backend != OTHER or backend == "arm":
            got = Predictor(lite_file, backend).run(feeds)["prob"]
            np.testing.assert_allclose(got, want, atol=1e-5, err_msg=backend)
    chosen = Predictor(lite_file)
    assert chosen.backend == "opencl"
    said = chosen.explain().splitlines()
    assert said[0] == "runs on opencl (fp32)"
    assert [line.split(":")[0].split()[-1] for line in said[1:]] == TARGETS


def test_falls_back_and_says_so(lite_file, tmp_path):
    """Row 1 without OpenCL: the next one runs and the reason is printed; forced, it fails with the
    cause and the fix."""
    hidden = {"OCL_ICD_VENDORS": str(tmp_path)}
    fell = lite("run", lite_file, "-v", **hidden)
    assert fell.returncode == 0, fell.stderr
    assert f"runs on {host_target()}" in fell.stdout and "- opencl: " in fell.stdout
    forced = lite("run", lite_file, "--backend", "opencl", **hidden)
    assert forced.returncode == 1
    assert forced.stderr.startswith("error: backend opencl cannot be used: ")
    assert forced.stderr.count("\n") == 1 and "install a driver" in forced.stderr


def test_a_variable_forces_the_backend(lite_file):
    """Row 2."""
    for backend in ("reference", host_target()):
        with settings.override(LITE_BACKEND=backend):
            predictor = Predictor(lite_file)
        assert predictor.backend == backend and "LITE_BACKEND" in predictor.explain()
    wrong = lite("run", lite_file, LITE_BACKEND="gpu")
    assert wrong.returncode == 2 and "not one of auto, x86, arm, wasm, opencl" in wrong.stderr


def test_a_file_for_another_machine_is_one_clear_error(tmp_path):
    """Row 3: what the file needs, what this machine has, and the command that fixes it; also from
    the runner without Python, and never a crash or other numbers."""
    path = optimize(classifier(), targets=[OTHER]).save(tmp_path / "m.lite")
    with pytest.raises(TargetMismatchError) as caught:
        Predictor(path)
    for part in (
        f"converted for {OTHER}",
        platform.machine(),
        "lite convert",
        f"{OTHER},{host_target()}",
    ):
        assert part in str(caught.value)
    command = lite("run", path)
    assert (command.returncode, command.stdout) == (1, "")
    assert command.stderr.startswith("error: ") and command.stderr.count("\n") == 1
    runner = subprocess.run([runner_path(), path], capture_output=True, text=True, timeout=60)
    assert (runner.returncode, runner.stdout) == (1, "")
    assert f"no program for '{host_target()}' (it has: {OTHER})" in runner.stderr
    assert f"--targets {host_target()}" in runner.stderr and runner.stderr.count("\n") == 1


def test_opencl_is_looked_for_everywhere(tmp_path):
    """Row 4: a vendor's library, one named by a variable and an ICD file are all tried, and each
    try is printed with its reason and a fix."""
    (tmp_path / "own.icd").write_text("/nowhere/libown.so\n")
    examined = lite("doctor", "--json", "-", OCL_ICD_VENDORS=str(tmp_path),
                    LITE_OPENCL_LIBRARY="/nowhere/libnamed.so")  # fmt: skip
    opencl = next(c for c in json.loads(examined.stdout)["checks"] if c["name"] == "OpenCL")
    tried = [str(list(t.values())) for t in opencl["tried"]]
    for name in ("/nowhere/libnamed.so", "/nowhere/libown.so", "libOpenCL.so", "libmali.so"):
        assert any(name in t for t in tried), name
    assert all(t["what"] and t["result"] for t in opencl["tried"])
    assert opencl["state"] == "good" or opencl["fix"]


def test_the_loader_path_is_respected(tmp_path):
    """Row 4: a library that only LD_LIBRARY_PATH leads to is found and opened."""
    compiler = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if compiler is None:
        pytest.skip("no C compiler; sudo apt-get install gcc")
    (tmp_path / "cl.c").write_text("int clGetPlatformIDs(void) { return -1001; }\n")
    library = tmp_path / "libmali.so"
    subprocess.run(
        [compiler, "-shared", "-fPIC", str(tmp_path / "cl.c"), "-o", str(library)], check=True
    )
    examined = lite("doctor", "--json", "-", LD_LIBRARY_PATH=str(tmp_path))
    opencl = next(c for c in json.loads(examined.stdout)["checks"] if c["name"] == "OpenCL")
    (mine,) = [t for t in opencl["tried"] if t["what"] == "libmali.so"]
    assert mine["result"] != "not there"


def test_profiling_is_always_there(lite_file):
    """Row 5: no other build, every layer timed, what it costs shown."""
    done = lite("profile", lite_file, "--backend", host_target(), "--runs", "5", "--json", "-")
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert told["overhead_ms"] >= 0 and len(told["layers"]) >= 6
    assert all(x["median_ms"] >= 0 and x["kernel"] and x["why"] for x in told["layers"])


def test_the_guilty_layer_is_named():
    """Row 6: one call, the graph as it was, isolated and accumulated error side by side."""
    model = optimize(classifier())
    before = to_text(model.graph)
    guilty = next(n.name for n in model.graph.nodes if "pw" in n.sources)
    right = Side(Predictor(model, "reference"))
    wrong = Side(Predictor(model, host_target(), faults={guilty: "swap_channels"}))
    result = compare(right, wrong, image(model.graph))
    assert not result.agrees and result.first_divergence["name"] == guilty
    assert "pw" in result.first_divergence["sources"]
    row = next(x for x in result.layers if x.name == guilty)
    assert row.isolated is not None and row.rel_l2 > 0
    assert to_text(model.graph) == before


def test_quantised_matmul_is_not_zero(tmp_path):
    """Row 7: integer weights of matrix products keep the answer; a version that loses it is
    refused before anything is saved."""
    from lite_engine.quantize import Options, Scheme, quantize

    parent = optimize(attention()).save(tmp_path / "m.lite")
    made = tmp_path / "q.lite"
    done = lite("quantize", parent, "-o", made, "--weights-only", "int8")
    assert done.returncode == 0, done.stderr
    feeds = image(attention())
    a, b = (Predictor(p, host_target()).run(feeds)["out"] for p in (parent, made))
    assert np.abs(b).max() > 0.1 and np.linalg.norm(a - b) < 0.02 * np.linalg.norm(a)
    samples = [np.float32(i) + image(classifier())["x"] for i in range(3)]
    strict = Options(method="minmax", scheme=Scheme(per_channel=False), threshold_db=200)
    with pytest.raises(CalibrationError, match="below the threshold"):
        quantize(optimize(classifier()).graph, samples, strict)


def test_the_same_input_gives_the_same_bytes(tmp_path, root):
    """Row 8, of .lite and .nb: in another process, with another hash seed, under another name."""
    source = root / "notebooks" / "models" / "digits.onnx"
    commands = """if True:
        import sys
        from lite_workbench.cli import main
        source, out = sys.argv[1:]
        assert main(["convert", source, "-o", out + ".lite", "--targets", "x86,arm,opencl"]) == 0
        assert main(["opt", "--model_file=" + source, "--optimize_out=" + out]) == 0
    """
    running = []  # both at once
    for seed in "12":
        (tmp_path / seed).mkdir()
        running.append(
            subprocess.Popen(
                [sys.executable, "-c", commands, source, tmp_path / seed / "m"],
                env={**os.environ, "PYTHONHASHSEED": seed}, stderr=subprocess.PIPE, text=True,
            )
        )  # fmt: skip
    for process in running:
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0, said
    for name in ("m.lite", "m.nb"):
        one, other = ((tmp_path / seed / name).read_bytes() for seed in "12")
        assert one == other, name


def test_a_forced_backend_that_the_file_lacks(tmp_path):
    """The file's targets are a promise: what it was not converted for is not run."""
    path = optimize(classifier(), targets=[host_target()]).save(tmp_path / "m.lite")
    with pytest.raises(TargetMismatchError, match="lite convert"):
        Predictor(path, "opencl")
    with pytest.raises(TargetMismatchError, match="lite convert"):
        Predictor(path, OTHER)
