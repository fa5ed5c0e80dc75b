"""The compute kernels on AArch64: all cases in one program that `lite_run` runs, emulated."""

from __future__ import annotations

import json
import platform
import shutil
import subprocess

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine._native import runner_path
from lite_engine.model_file.program_file import tensor_file_name, write_program_file
from lite_engine.plan import make_plan
from lite_engine.plan.model import Plan

from tests.small_models import image

from . import test_bands as bands
from . import test_compute_f32 as f32
from . import test_compute_int8 as int8
from .cases import merged
from .tiny import one_step_plan

pytestmark = pytest.mark.arm


def run_on_arm(plan: Plan, folder, isa: str, cpu: str = "max", options=()) -> list[np.ndarray]:
    """Outputs of a program for one instruction set, two threads; inputs are given by `options`."""
    program = write_program_file(plan, folder / "cases.lite", ("arm",))
    limit = ["--max-isa", isa] if isa else []
    command = [str(runner_path("aarch64")), str(program), *limit, "--threads", "2",
               "--output", str(folder), *options]
    if platform.machine() != "aarch64":
        emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
        command = [str(emulator), "-cpu", cpu, *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return [np.load(folder / f"{tensor_file_name(i)}.npy") for i in plan.outputs]


# Sums of up to 128 products are rounded to fp16 one by one: sqrt(128 / 3) * 2**-12 of a sum is one
# deviation, 0.5 % of the mean where an output is three times that; the worst of thousands is four.
F16_SUMS = 2e-2


@pytest.mark.parametrize("isa", ["neon", "neonfp16"])
def test_float_kernels(isa, tmp_path):
    cases = [f32.conv_case(*c) for c in f32.CONVS]
    plans = [
        one_step_plan(op, c[0], inputs, [np.zeros(want.shape, np.float32)], attrs,
                      range(len(inputs)))
        for c, (op, inputs, attrs, want) in zip(f32.CONVS, cases)
    ]
    for got, c, case in zip(run_on_arm(merged(plans), tmp_path, isa), f32.CONVS, cases):
        short, w43 = isa == "neonfp16" and c[0] == f32.F16, (f32.W43, f32.W43_BF16, f32.F32_3X3)
        f32.close(got, case[3], F16_SUMS if short else 1e-4 if c[0] in w43 else 3e-5)


def test_fp16_sums_do_not_grow_with_depth(tmp_path):
    """4608 products: the sum is widened every 128, and without fp16 arithmetic it is float32."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((1, 6, 6, 512)).astype(np.float16).astype(np.float32)
    w = rng.standard_normal((24, 512, 3, 3)).astype(np.float16).astype(np.float32)
    want = f32.conv(x, w, pads=[1, 1, 1, 1])
    plan = one_step_plan("Conv", f32.F16, [x, w], [np.zeros(want.shape, np.float32)],
                         {"pads": [1, 1, 1, 1]}, range(2))
    errors = {}
    for isa in ("neon", "neonfp16"):
        (got,) = run_on_arm(plan, tmp_path, isa)
        errors[isa] = np.linalg.norm(got - want) / np.linalg.norm(want)
    assert errors["neon"] < 2e-6 < 1e-4 < errors["neonfp16"] < 2e-3


@pytest.mark.parametrize("cpu", ["cortex-a72", "max"])
def test_fp16_runs_where_there_is_no_fp16(cpu, tmp_path):
    """The same file: halves where the CPU multiplies them, float32 where it does not."""
    x, w = np.full((1, 4, 4, 8), 1 + 2**-12, np.float32), np.eye(8, dtype=np.float32)
    plan = one_step_plan("Conv", f32.F16, [x, w.reshape(8, 8, 1, 1)], [x.copy()], {}, range(2))
    (got,) = run_on_arm(plan, tmp_path, "", cpu)
    assert np.all(got == (1 if cpu == "max" else 1 + 2**-12))


@pytest.mark.parametrize("graph", [bands.separable(), bands.dense()], ids=lambda g: g.name)
def test_bands(graph, tmp_path, monkeypatch):
    """Layers that take turns over rows, with the tile of packed rows and Winograd's."""
    monkeypatch.setattr("lite_engine.plan.bands._LARGE_BYTES", 0)
    feeds = image(graph)
    plan = make_plan(graph, "cpu")
    profile = tmp_path / "profile.json"
    options = ["--profile", str(profile)]
    for i, value in zip(plan.inputs, graph.inputs, strict=True):
        file = tmp_path / f"{value.name}.npy"
        np.save(file, feeds[value.name])
        options += ["--input", f"{tensor_file_name(i)}={file}"]
    got = run_on_arm(plan, tmp_path, "neon", options=options)
    steps = json.loads(profile.read_text())["steps"]
    taken = [s["variant"] for s in steps if s["variant"].endswith("_band")]
    assert len(taken) > 3 and any("12x8" in variant for variant in taken)
    wanted = Predictor(graph, "reference").run(feeds)
    for value, y in zip(graph.outputs, got, strict=True):
        np.testing.assert_allclose(y, wanted[value.name], rtol=0,
                                   atol=1e-4 * np.abs(wanted[value.name]).max())


@pytest.mark.parametrize("isa", ["neon", "neondot", "neoni8mm"])
def test_integer_kernels(isa, tmp_path):
    cases = [int8.int_conv_case(*c) for c in int8.CONVS]
    plans = [
        one_step_plan("QLinearConv", c[0], inputs, [np.zeros_like(want)], attrs,
                      range(len(inputs)))
        for c, (inputs, attrs, want) in zip(int8.CONVS, cases)
    ]
    transposed = [int8.int_deconv_case(*c) for c in int8.DECONVS]
    plans += [
        one_step_plan("QLinearConvTranspose", int8.DECONV, inputs, [np.zeros_like(want)], attrs,
                      range(len(inputs)))
        for inputs, attrs, want in transposed
    ]
    results = run_on_arm(merged(plans), tmp_path, isa)
    for got, (_, _, want) in zip(results, cases + transposed, strict=True):
        assert np.array_equal(got, want)
