"""The quantised ONNX network, layer by layer, against the standard's own arithmetic.

ONNX defines DequantizeLinear → operator → QuantizeLinear on real numbers. Here every such chain of
the file is computed in float64 from the integers that the backend put into it. What the backend
made of them is at most one step off, and that in fewer than one of 10⁵ elements: integer kernels
multiply the exact sum with one float32 scale per channel, so only a result within about 2⁻²³ of its
size from a rounding border can fall on the other side.

Whole runs are another matter (test_goldens_backends.py): one flipped integer travels on.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, load
from lite_engine.ir import Graph, Node
from lite_engine.ops import run_node

from tests.importers.golden_runs import Golden

MODELS = Path(os.environ.get("LITE_TEST_MODELS", ""))
MODEL = "onnx/DERIVED_mobilenet_v1_0.25_224_qdq_int8.onnx"
BACKENDS = ["x86", *(pytest.param(b, marks=getattr(pytest.mark, b)) for b in ("arm", "opencl")),
            "reference"]  # fmt: skip


def _exactly(node: Node, inputs: list[np.ndarray | None]) -> np.ndarray:
    """The node's one output in float64. QuantizeLinear divides in the type of its input, which is
    float32 for the picture (values on rounding borders), and rounds half to even."""
    if node.op not in ("DequantizeLinear", "QuantizeLinear"):
        return run_node(node, inputs)[0]
    x, scale, zero = inputs
    shape = [1] * np.ndim(x)
    if np.ndim(scale):
        shape[node.attrs.get("axis", 1)] = -1
    scale, zero = np.reshape(scale, shape), np.reshape(zero, shape)
    if node.op == "DequantizeLinear":
        return (x.astype(np.float64) - zero) * scale
    scale = scale.astype(x.dtype)
    limits = np.iinfo(zero.dtype)
    return np.clip(np.rint(x / scale) + zero, limits.min, limits.max).astype(zero.dtype)


def _chains(graph: Graph, x: np.ndarray, taps: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Name → steps between the tapped integers and the exact ones made from the integers before."""
    values = {graph.inputs[0].name: x}
    off = {}
    for node in graph.nodes:
        ins = [None if v is None else v.const if v.is_const else values[v.name]
               for v in node.inputs]  # fmt: skip
        name = node.outputs[0].name
        values[name] = _exactly(node, ins)
        if name in taps:
            off[name] = values[name].astype(np.int64) - taps[name]
            values[name] = taps[name]
    return off


@pytest.mark.models
@pytest.mark.cpu
@pytest.mark.parametrize("backend", BACKENDS)
def test_every_chain_is_exact(backend: str) -> None:
    graph = load(MODELS / MODEL)
    predictor = Predictor(graph, backend)
    quantised = {n.outputs[0].name for n in graph.nodes if n.op == "QuantizeLinear"}
    kept = sorted(quantised & {v.name for v in predictor.graph.values()})
    assert len(kept) >= len(quantised) - 1  # the last but one is a view of the last
    flipped = total = 0
    for picture in sorted((MODELS / "goldens").glob(f"{MODEL}__*.npz"))[:1]:
        x = Golden(MODELS, picture).feed()
        outputs = predictor.run({graph.inputs[0].name: x}, taps=kept)
        for name, steps in _chains(graph, x, {n: outputs[n] for n in kept}).items():
            assert np.abs(steps).max() <= 1, name
            flipped += np.count_nonzero(steps)
            total += steps.size
    print(f"{backend}: {flipped} of {total} integers are one step off")
    assert flipped <= 1e-5 * total
