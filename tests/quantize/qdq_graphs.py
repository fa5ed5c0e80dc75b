"""Small graphs with QuantizeLinear and DequantizeLinear, and their integer forms."""

from __future__ import annotations

import numpy as np
from lite_engine.ir import Graph, Journal, from_text, verify
from lite_engine.ops import infer_types
from lite_engine.passes.quantize_fuse_qdq import quantize_fuse_qdq
from lite_engine.passes.quantize_merge_lookup_tables import quantize_merge_lookup_tables
from lite_engine.passes.quantize_move_views import quantize_move_views
from lite_engine.quantize import reference_run

RNG = np.random.default_rng(5)


def qdq(text: str, arrays: list[np.ndarray] | None = None) -> Graph:
    graph = from_text('graph "g" {\n' + text + "\n}", arrays or [])
    infer_types(graph)
    return graph


IN = """
  input x: f32[1,4,6,6]
  const s: f32[] = [0.05]
  const z: u8[] = [120]
  const s2: f32[] = [0.08]
  const z2: u8[] = [10]
  "q": xq = QuantizeLinear(x, s, z)
  "dq": xd = DequantizeLinear(xq, s, z)
"""
OUT = '\n  "q2": yq = QuantizeLinear(y, s2, z2)\n'
OUT += '  "dq2": out = DequantizeLinear(yq, s2, z2)\n  output out'
SAME = OUT.replace("s2, z2", "s, z")


def fuse(graph: Graph) -> tuple[Graph, Journal]:
    out, journal = graph.copy(), Journal()
    for one in (quantize_move_views, quantize_fuse_qdq, quantize_merge_lookup_tables):
        one(out, journal)
    out.remove_unread()
    infer_types(out)
    verify(out)
    feeds = {"x": (3 * RNG.standard_normal((1, 4, 6, 6))).astype(np.float32)}
    for name, array in reference_run(graph, feeds).items():
        step = 0.08 if "yq" in {v.name for v in graph.values()} else 0.05
        np.testing.assert_allclose(reference_run(out, feeds)[name], array, atol=1.01 * step)
    return out, journal


def ops(graph: Graph) -> list[str]:
    """Operators between the first Q and the last DQ."""
    return [n.op for n in graph.nodes][1:-1]


CONV = """
  const w: i8[3,4,3,3] = @0
  const ws: f32[3] = [0.01, 0.02, 0.03]
  const wz: i8[3] = [0, 0, 0]
  "dw": wd = DequantizeLinear(w, ws, wz) {axis=0}
  const b: i32[3] = [100, -200, 300]
  const bs: f32[3] = [0.0005, 0.001, 0.0015]
  const bz: i32[3] = [0, 0, 0]
  "db": bd = DequantizeLinear(b, bs, bz) {axis=0}
"""


def weights() -> list[np.ndarray]:
    return [RNG.integers(-127, 128, (3, 4, 3, 3)).astype(np.int8)]
