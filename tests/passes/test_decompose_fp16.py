"""A graph in half precision computes in float32 between Casts."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.ir import DType, Journal
from lite_engine.passes.decompose_fp16 import decompose_fp16
from lite_engine.runtime import host_target

HALF = """
input x: f16[1,2,5,5]
const w: f16[3,2,3,3] = rand
"c": c = Conv(x, w) {pads=[1, 1, 1, 1]}
"r": r = Relu(c)
"y": y = Sigmoid(r)
output r
output y
"""
WIDE = """
input x: f16[1,2,5,5]
const w: f32[3,2,3,3] = rand
"in": x32 = Cast(x) {to={"dtype": "f32"}}
"c": c = Conv(x32, w) {pads=[1, 1, 1, 1]}
"r": r32 = Relu(c)
"y": y32 = Sigmoid(r32)
"out": r = Cast(r32) {to={"dtype": "f16"}}
"out2": y = Cast(y32) {to={"dtype": "f16"}}
output r
output y
"""


def test_only_the_ends_stay_halves(bench):
    new = bench.rewrites(decompose_fp16, HALF, WIDE, rtol=2e-3)  # f16 rounds after every node
    assert [v.dtype for v in new.outputs] == [DType.F16, DType.F16]
    assert decompose_fp16(new, Journal()) == 0, "once is enough"


def test_attributes_name_the_wide_type(bench):
    _, new, _, _ = bench.apply(
        decompose_fp16,
        """
        input x: f32[2,3]
        const k: f16[3] = [1, 2, 3]
        "h": h = Cast(x) {to={"dtype": "f16"}}
        "e": e = EyeLike(h) {dtype={"dtype": "f16"}}
        "s": s = Add(h, k)
        "m": m = Mul(s, e)
        "y": y = Cast(m) {to={"dtype": "f32"}}
        output y
        """,
    )
    assert {v.dtype for v in new.values()} == {DType.F32}


def test_what_has_nothing_to_widen_or_branches_is_left(bench):
    bench.ignores(
        decompose_fp16,
        """
        input x: f32[2,3]
        const w: f16[3] = [1, 2, 3]
        "w32": v = Cast(w) {to={"dtype": "f32"}}
        "y": y = Mul(x, v)
        output y
        """,
    )


@pytest.mark.cpu
def test_a_file_in_halves_runs_on_native_kernels(bench):
    graph = bench.graph(HALF)
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 5)).astype(np.float16)
    predictor = Predictor(optimize(graph, targets=[host_target()]))
    made = predictor.run({"x": x})
    for name, exact in Predictor(graph, "reference").run({"x": x}).items():
        assert made[name].dtype == np.float16
        np.testing.assert_allclose(made[name], exact, rtol=4e-3, atol=2e-3)
    plan = predictor.execution({"x": x.shape}).plan
    assert not [step.kernel for step in plan.steps if step.kernel.startswith("numpy_")]
