"""The fp16 kernels of AArch64: values in memory are halves. Emulated where needed."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.devices.emulated import EmulatedDevice

from tests.small_models import classifier, image

from ..cases import collected, merged
from ..tiny import Case, assert_close, one_step_plan
from . import cases_f32 as f32
from .test_compute_arm import run_file, run_on_arm

pytestmark = pytest.mark.arm

# Sums of up to 128 products are rounded to fp16 one by one: sqrt(128 / 3) * 2**-12 of a sum is one
# deviation, 0.5 % of the mean where an output is three times that; the worst of thousands is four.
SUMS = 2e-2


def as_fp16(x: np.ndarray) -> np.ndarray:
    """float32 numbers that fp16 holds."""
    with np.errstate(over="ignore"):
        return x.astype(np.float16).astype(np.float32)


def as_half(array: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(np.float16) if array.dtype == np.float32 else array


#: Convolutions by the fp32 kernel whose cases they take over.
KERNELS = {
    f32.GEMM: "f16_conv2d_gemm",
    f32.BF16: "f16_conv2d_gemm",
    f32.DEPTHWISE: "f16_conv2d_depthwise",
    f32.DECONV: "f16_deconv2d",
    f32.W23: "f16_conv2d_winograd23",
}


def test_convolutions(tmp_path):
    """Weights and bias are float32 in the file; activations, residuals and results are halves."""
    cases = [c for c in f32.CONVS if c[0] in KERNELS]
    plans, wanted = [], []
    for case in cases:
        op, inputs, attrs, want = f32.conv_case(*case, rounded=as_fp16)
        given = [x if i in (1, 2) else as_half(x) for i, x in enumerate(inputs)]
        plans.append(
            one_step_plan(
                op, KERNELS[case[0]], given, [want.astype(np.float16)], attrs, range(len(given))
            )
        )
        wanted.append(want)
    for got, want in zip(run_on_arm(merged(plans), tmp_path, ""), wanted, strict=True):
        f32.close(got.astype(np.float32), want, SUMS)


def test_sums_do_not_grow_with_depth(tmp_path):
    """4608 products: the sum is widened every 128."""
    rng = np.random.default_rng(3)
    x, w = (as_fp16(rng.standard_normal(d, np.float32)) for d in ((1, 6, 6, 512), (24, 512, 3, 3)))
    want = f32.conv(x, w, pads=[1, 1, 1, 1])
    plan = one_step_plan(
        "Conv",
        "f16_conv2d_gemm",
        [as_half(x), w],
        [want.astype(np.float16)],
        {"pads": [1, 1, 1, 1]},
        range(2),
    )
    (got,) = run_on_arm(plan, tmp_path, "")
    error = np.linalg.norm(got - want) / np.linalg.norm(want)
    assert 1e-4 < error < 2e-3


def _pair(case: Case) -> tuple[Case, Case]:
    """A case of an fp32 kernel on numbers that fp16 holds, and the same case in halves."""
    values = [x if x is None or x.dtype != np.float32 else as_fp16(x) for x in case.inputs]
    exact = replace(case, inputs=values)
    shorter: dict[str, Any] = {
        "kernel": case.kernel.replace("f32_", "f16_"),
        "inputs": [None if x is None else as_half(x) for x in values],
        "wanted": [as_half(w) for w in case.wanted],
    }
    return exact, replace(case, **shorter)


def test_what_fp32_kernels_give(tmp_path):
    """Against the fp32 kernels, which have tests of their own: at most three roundings apart."""
    kernels = ("f32_unary", "f32_binary", "f32_pool", "f32_resize")
    pairs = [_pair(c) for c in collected() if c.kernel in kernels]
    assert {c.kernel for c, _ in pairs} == set(kernels)
    plans = [c.plan(all_constant=True) for pair in pairs for c in pair]
    results = iter(run_on_arm(merged(plans), tmp_path, ""))
    for case, _ in pairs:
        exact = [next(results) for _ in case.wanted]
        for want, got in zip(exact, [next(results) for _ in case.wanted], strict=True):
            close = 0 if case.kernel == "f32_unary" else 3 * 2**-11
            assert_close(got, as_half(want), close, f"{case.op} {case.attrs}")


@pytest.mark.parametrize(("cpu", "kernel"), [("cortex-a53", "f32_"), ("max", "f16_")])
def test_one_file_for_cpus_with_and_without_fp16(cpu, kernel, tmp_path):
    """The runner takes the program that the CPU can run; Python says which that is, and why."""
    graph = classifier()
    feeds = image(graph)
    model = optimize(graph, targets=["arm"], precision="fp16")
    path = model.save(tmp_path / "m.lite")
    np.save(tmp_path / "x.npy", feeds["x"])
    profile = tmp_path / "profile.json"
    run_file(
        path, tmp_path, "", cpu, ["--input", f"x={tmp_path / 'x.npy'}", "--profile", str(profile)]
    )
    convs = [s for s in json.loads(profile.read_text())["steps"] if "conv2d" in s["variant"]]
    assert convs and all(s["variant"].startswith(kernel) for s in convs)
    predictor = Predictor(path, "arm", device=EmulatedDevice(cpu))
    ((name, got),) = predictor.run(feeds).items()
    assert np.array_equal(got, np.load(tmp_path / f"{name}.npy"))
    assert predictor.precision == ("fp32" if kernel == "f32_" else "fp16")
    said = "fp16 needs a CPU with neonfp16, so fp32 is used" in predictor.explain()
    assert said == (kernel == "f32_")
    alone = Predictor(
        optimize(graph, targets=["arm"]),
        "arm",
        device=EmulatedDevice(cpu),
        overrides={"wide": "fp16"},
    )
    (step,) = [s for s in alone.plan().steps if s.name == "wide"]
    assert step.kernel.startswith(kernel)
    alone.run(feeds)
