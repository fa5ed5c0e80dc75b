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
from lite_engine.ir import DType, Node, Value
from lite_engine.model_file.program_file import tensor_file_name, write_program_file
from lite_engine.ops import Sample, get_op, samples
from lite_engine.ops.activation import apply_activation
from lite_engine.plan import make_plan
from lite_engine.plan.model import Plan

from tests.small_models import image

from ..cases import merged
from ..runtime import test_bands as bands
from ..tiny import one_step_plan
from . import cases_f32 as f32
from . import cases_int8 as int8
from . import test_strassen as strassen
from .oracle_int8 import int_conv_case, int_deconv_case, product_cases

pytestmark = pytest.mark.arm


def run_on_arm(plan: Plan, folder, isa: str, cpu: str = "max", options=()) -> list[np.ndarray]:
    """Outputs of a program for one instruction set, two threads; inputs are given by `options`."""
    program = write_program_file(plan, folder / "cases.lite", ("arm",))
    run_file(program, folder, isa, cpu, options)
    return [np.load(folder / f"{tensor_file_name(i)}.npy") for i in plan.outputs]


def run_file(program, folder, isa: str, cpu: str, options) -> None:
    """Leaves the outputs in `folder`."""
    limit = ["--max-isa", isa] if isa else []
    command = [
        str(runner_path("aarch64")),
        str(program),
        *limit,
        "--threads",
        "2",
        "--output",
        str(folder),
        *options,
    ]
    if platform.machine() != "aarch64":
        emulator = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
        command = [str(emulator), "-cpu", cpu, *command]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("cpu", ["max", "cortex-a53"])
def test_float_kernels(cpu, tmp_path):
    """A core that reorders and one that does not: tiles differ."""
    sizes = [*f32.CONVS, *(c[:5] for c in f32.ROUNDED)]
    cases = [f32.conv_case(*c) for c in sizes]
    plans = [
        one_step_plan(
            op, c[0], inputs, [np.zeros(want.shape, np.float32)], attrs, range(len(inputs))
        )
        for c, (op, inputs, attrs, want) in zip(sizes, cases)
    ]
    profile = tmp_path / "profile.json"
    results = run_on_arm(merged(plans), tmp_path, "", cpu, ["--profile", str(profile)])
    taken = {s["variant"].split("__")[0] for s in json.loads(profile.read_text())["steps"]}
    wide = ("43x53", "43x63", "25x45")
    forms = {f"f32_conv2d_winograd{form}" for form in ("23", "43", *wide, "43x23", "23_by2", "25")}
    assert forms | {"f32_conv2d_gemm"} <= taken
    for got, c, case in zip(results, sizes, cases):
        w43 = (f32.W43, f32.W43_BF16, f32.F32_3X3, f32.F32_5X5)
        f32.close(got, case[3], 1e-4 if c[0] in w43 else 3e-5)
    for got, c, case in zip(results[len(f32.CONVS) :], f32.ROUNDED, cases[len(f32.CONVS) :]):
        assert f32.rounding_error(got, case[3]) < c[5], c


@pytest.mark.parametrize("cpu", ["max", "cortex-a53"])
def test_large_products(cpu, tmp_path):
    """Seven products for eight, where numbers may be added."""
    cases = []
    for rows, depth, columns in ((197, 256, 512), (150, 1152, 304), (193, 512, 264)):
        a, b, bias, residual = strassen.operands(rows, depth, columns)
        cases.append(([a, b, bias], a.astype(np.float64) @ b + bias))
        cases.append(([a, b, bias, residual], cases[-1][1] + residual))
    bad = strassen.operands(200, 512, 256)[:3]
    bad[0][17, 300] = np.nan
    cases.append((bad, bad[0].astype(np.float64) @ bad[1] + bad[2]))
    plans = [
        one_step_plan("Gemm", "f32_gemm", inputs, [np.zeros(want.shape, np.float32)], {}, range(4))
        for inputs, want in cases
    ]
    profile = tmp_path / "profile.json"
    results = run_on_arm(merged(plans), tmp_path, "", cpu, ["--profile", str(profile)])
    steps = json.loads(profile.read_text())["steps"]
    assert all("strassen" in s["variant"] for s in steps), [s["variant"] for s in steps]
    for got, (_, want) in zip(results, cases, strict=True):
        rows = np.isfinite(want).all(1)
        assert np.isnan(got[~rows]).all()
        assert f32.rounding_error(got[rows], want[rows]) < strassen.ROUNDING


#: Two levels of the scheme add up twice as often as one.
ROUNDING_TWICE = 4e-6


@pytest.mark.parametrize("cpu", ["max", "cortex-a53"])
def test_largest_products(cpu, tmp_path):
    """Seven products for eight twice: tiles, panels and their pairs left over, several blocks of
    rows and pieces of the depth, rows that may not be added; the same with any number of
    threads."""
    cases = []
    a, b, bias, _ = strassen.operands(655, 1024, 476)
    cases.append(([a, b, bias], {}, a.astype(np.float64) @ b + bias))
    a, b, bias, residual = strassen.operands(420, 2304, 384)
    added = a.astype(np.float64) @ b + bias + residual
    cases.append(([a, b, bias, residual], {"activation": "Gelu"}, added))
    bad = strassen.operands(655, 1024, 476)[:3]
    bad[0][17, 300] = np.nan
    cases.append((bad, {"activation": "Relu"}, bad[0].astype(np.float64) @ bad[1] + bad[2]))
    plans = [
        one_step_plan(
            "Gemm", "f32_gemm", inputs, [np.zeros(want.shape, np.float32)], attrs, range(4)
        )
        for inputs, attrs, want in cases
    ]
    profile = tmp_path / "profile.json"
    plan = merged(plans)
    results = run_on_arm(plan, tmp_path, "", cpu, ["--profile", str(profile)])
    steps = json.loads(profile.read_text())["steps"]
    assert all("strassen2" in s["variant"] for s in steps), [s["variant"] for s in steps]
    for got, (_, attrs, linear) in zip(results, cases, strict=True):
        want = apply_activation(attrs.get("activation", ""), [], linear)
        rows = np.isfinite(linear).all(1)
        assert np.isnan(got[~rows]).all()
        assert f32.rounding_error(got[rows], want[rows]) < ROUNDING_TWICE
    for got, other in zip(results, run_on_arm(plan, tmp_path, "", cpu, ["--threads", "3"])):
        assert np.array_equal(got, other, equal_nan=True)


@pytest.mark.parametrize("graph", [bands.separable(), bands.dense()], ids=lambda g: g.name)
def test_bands(graph, tmp_path, monkeypatch):
    """Layers that take turns over rows, with the tile of packed rows, Winograd's and halves."""
    monkeypatch.setattr("lite_engine.plan.bands._LARGE_BYTES", 0)
    feeds = image(graph)
    (wanted,) = Predictor(graph, "reference").run(feeds).values()
    np.save(tmp_path / "x.npy", feeds["x"])
    profile = tmp_path / "profile.json"
    for precision, tile, limit in (("fp32", "12x8", 1e-4), ("fp16", "8x16", 1e-2)):
        plan = make_plan(graph, "cpu", precision=precision)
        options = [
            "--profile",
            str(profile),
            "--input",
            f"{tensor_file_name(plan.inputs[0])}={tmp_path / 'x.npy'}",
        ]
        (got,) = run_on_arm(plan, tmp_path, "", options=options)
        steps = json.loads(profile.read_text())["steps"]
        taken = [s["variant"] for s in steps if s["variant"].endswith("_band")]
        assert len(taken) > 3 and any(tile in variant for variant in taken)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=limit * np.abs(wanted).max())


@pytest.mark.parametrize("isa", ["neon", "neondot", "neoni8mm"])
def test_integer_kernels(isa, tmp_path):
    convolutions = int8.CONVS + int8.EXACT
    cases = [int_conv_case(*c) for c in convolutions]
    plans = [
        one_step_plan("QLinearConv", c[0], inputs, [np.zeros_like(want)], attrs, range(len(inputs)))
        for c, (inputs, attrs, want) in zip(convolutions, cases)
    ]
    transposed = [int_deconv_case(*c) for c in int8.DECONVS]
    plans += [
        one_step_plan(
            "QLinearConvTranspose",
            int8.DECONV,
            inputs,
            [np.zeros_like(want)],
            attrs,
            range(len(inputs)),
        )
        for inputs, attrs, want in transposed
    ]
    profile = tmp_path / "profile.json"
    results = run_on_arm(merged(plans), tmp_path, isa, options=["--profile", str(profile)])
    taken = [s["variant"].split("__")[0] for s in json.loads(profile.read_text())["steps"]]
    exact = taken[len(int8.CONVS) : len(convolutions)]
    assert exact == ["i8_conv2d_winograd43" if isa == "neon" else int8.GEMM] * len(int8.EXACT)
    for got, (_, _, want) in zip(results, cases + transposed, strict=True):
        assert np.array_equal(got, want)


@pytest.mark.parametrize("isa", ["neon", "neondot", "neoni8mm"])
def test_integer_products(isa, tmp_path):
    cases = [c for c in product_cases() if c[2].size and c[0][0].size]
    plans = [
        one_step_plan(
            "QLinearMatMul", "i8_matmul", inputs, [np.zeros_like(want)], attrs, range(len(inputs))
        )
        for inputs, attrs, want in cases
    ]
    for got, (_, _, want) in zip(run_on_arm(merged(plans), tmp_path, isa), cases, strict=True):
        assert np.array_equal(got, want)


@pytest.mark.parametrize("cpu", ["max", "cortex-a53"])
def test_float_attention(cpu, tmp_path):
    """Tiles of every height, in both orders of loads; threads change no bit."""
    op, rng = get_op("Attention"), np.random.default_rng(0)
    calls = [
        Sample([rng.standard_normal((1, 2, n, size)).astype(np.float32) for n, size in shapes], {})
        for rows in (*range(4, 26), 97)
        for shapes in [((rows, 6), (22, 6), (22, 13))]
    ]
    calls += samples(op, DType.F32)
    plans, wanted = [], []
    for c in calls:
        values = [None if x is None else Value("x", DType.of(x), x.shape) for x in c.inputs]
        (want,) = op.run(Node(op.name, values, [Value("y")], dict(c.attrs)), c.inputs)
        wanted.append(want)
        given = range(len(c.inputs))
        plans.append(one_step_plan(op.name, "f32_attention", c.inputs, [0 * want], c.attrs, given))
    plan = merged(plans)
    profile = tmp_path / "profile.json"
    results = run_on_arm(plan, tmp_path, "", cpu, ["--profile", str(profile)])
    taken = {s["variant"] for s in json.loads(profile.read_text())["steps"]}
    assert taken == {"f32_attention__neon_1x8", "f32_attention__neon_12x8"}
    for got, want in zip(results, wanted, strict=True):
        f32.close(got, want)
    for threads in ("1", "5"):
        again = run_on_arm(plan, tmp_path, "", cpu, ["--threads", threads])
        assert all(map(np.array_equal, again, results))


@pytest.mark.parametrize("isa", ["neon", "neondot", "neoni8mm"])
def test_integer_attention(isa, tmp_path):
    op = get_op("QLinearAttention")
    both = zip(samples(op, DType.U8), samples(op, DType.I8), strict=True)
    calls = [pair[i % 2] for i, pair in enumerate(both)]
    wanted = []
    for call in calls:
        values = [None if x is None else Value("x", DType.of(x), x.shape) for x in call.inputs]
        wanted += op.run(Node(op.name, values, [Value("y")], dict(call.attrs)), call.inputs)
    plans = [
        one_step_plan(
            op.name, "i8_attention", c.inputs, [np.zeros_like(want)], c.attrs, range(len(c.inputs))
        )
        for c, want in zip(calls, wanted, strict=True)
    ]
    for got, want in zip(run_on_arm(merged(plans), tmp_path, isa), wanted, strict=True):
        assert np.array_equal(got, want)
