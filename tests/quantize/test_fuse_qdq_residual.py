"""Additions that an integer convolution takes before or after its rounding."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import Graph, Journal
from lite_engine.ops import infer_types
from lite_engine.passes.quantize_fuse_add import quantize_fuse_add
from lite_engine.quantize import reference_run

from tests.quantize.qdq_graphs import CONV, IN, OUT, RNG, fuse, ops, qdq


def with_residual(second: str) -> Graph:
    weight = RNG.integers(-127, 128, (4, 4, 1, 1)).astype(np.int8)
    text = (
        IN
        + f"""
  const w: i8[4,4,1,1] = @0
  const ws: f32[] = [0.004]
  const wz: i8[] = [0]
  "wd": wf = DequantizeLinear(w, ws, wz)
  {second}
  "conv": y = Conv(xd, wf, _, r)"""
    )
    return qdq(text + OUT, [weight])


def test_a_quantised_residual_is_added_before_the_rounding():
    fused, _ = fuse(with_residual('"other": r = DequantizeLinear(xq, s2, z2)'))
    assert ops(fused) == ["QLinearConv"]
    conv = fused.nodes[1]
    assert [v.name for v in conv.inputs[9:]] == ["xq", "s2", "z2"]


def test_a_float_residual_is_refused():
    fused, journal = fuse(with_residual('"other": r = Relu(x)'))
    assert "QLinearConv" not in ops(fused)
    assert any("residual is not quantized" in str(e) for e in journal.entries)


ADDED = CONV.replace("[3,4,3,3]", "[4,4,3,3]").replace("[3]", "[4]").replace(
    "0.03]", "0.03, 0.02]").replace("300]", "300, 0]").replace("0.0015]", "0.0015, 0.001]").replace(
    "[0, 0, 0]", "[0, 0, 0, 0]") + """
  const s3: f32[] = [0.0473]
  const z3: u8[] = [90]
"""  # fmt: skip


def added(body: str) -> Graph:
    weight = RNG.integers(-127, 128, (4, 4, 3, 3)).astype(np.int8)
    return qdq(IN + ADDED.replace("z2", "z") + body + OUT, [weight])


@pytest.mark.parametrize("order", ["c1, xd", "xd, c1"])
def test_an_addition_to_rounded_sums_is_part_of_the_convolution(order):
    """Both roundings stay: the integers of two operators, but for ties, which products break
    otherwise than divisions (none with these scales)."""
    graph = added(f"""
  "c": c = Conv(xd, wd, bd) {{pads=[1, 1, 1, 1]}}
  "q1": cq = QuantizeLinear(c, s3, z3)
  "dq1": c1 = DequantizeLinear(cq, s3, z3)
  "add": y = Add({order})""")
    apart, _ = fuse(graph)
    assert ops(apart) == ["QLinearConv", "QLinearAdd"]
    fused = apart.copy()
    assert quantize_fuse_add(fused, Journal()) == 1
    infer_types(fused)
    assert ops(fused) == ["QLinearConv"]
    conv = fused.nodes[1]
    assert [v.name for v in conv.inputs[6:8] + conv.inputs[9:]] == [
        "s2", "z2", "xq", "s", "z", "s3", "z3"]  # fmt: skip
    feeds = {"x": (3 * RNG.standard_normal((1, 4, 6, 6))).astype(np.float32)}
    a, b = (reference_run(g, feeds, ["yq"])["yq"] for g in (apart, fused))
    assert np.array_equal(a, b) and len(np.unique(a)) > 50


def test_of_two_convolutions_the_last_one_adds():
    """The first one's output is read a second time by no one, yet it is computed before."""
    branch = """
  "c{0}": c{0} = Conv(xd, wd, bd) {{pads=[1, 1, 1, 1]}}
  "q{0}": c{0}q = QuantizeLinear(c{0}, s3, z3)
  "dq{0}": d{0} = DequantizeLinear(c{0}q, s3, z3)"""
    graph, _ = fuse(added(branch.format(1) + branch.format(2) + '\n  "add": y = Add(d1, d2)'))
    journal = Journal()
    assert quantize_fuse_add(graph, journal) == 1
    assert [(n.op, n.name) for n in graph.nodes][1:-1] == [
        ("QLinearConv", "c1"), ("QLinearConv", "c2")]  # fmt: skip
    assert graph.node("c2").inputs[9] is graph.node("c1").output


def test_sums_read_with_another_scale_stay_apart():
    graph, _ = fuse(
        added("""
  "c": c = Conv(xd, wd, bd) {pads=[1, 1, 1, 1]}
  "q1": cq = QuantizeLinear(c, s3, z3)
  "dq1": c1 = DequantizeLinear(cq, s2, z3)
  "add": y = Add(c1, xd)""")
    )
    journal = Journal()
    assert quantize_fuse_add(graph, journal) == 0
    assert "another scale" in str(journal)
