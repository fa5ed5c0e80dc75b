"""Each lowering against onnxruntime: the operator's samples, run by the reference and as ONNX."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pytest
from lite_engine.errors import ShapeError
from lite_engine.exporters.onnx import write_bytes
from lite_engine.exporters.onnx._lower import _LOWERINGS
from lite_engine.ir import DType, Graph
from lite_engine.ops import OpDef, Sample, find_op, infer_types, op_names, run_node, samples
from lite_engine.ops.activation import unary_params

from .exact import exact_session

#: Of each operator so many samples: they differ in their sizes first.
MOST = 6
#: Float results may differ by rounding; integers by one where a sum lies between two.
CLOSE = 2e-5


#: Calls of operators without samples.
NUMBERS = np.linspace(-3, 3, 10, dtype=np.float32)
BYTES = np.arange(-5, 5, dtype=np.int8)
MORE = {
    "BiasGelu": [
        Sample([NUMBERS.reshape(2, 5), NUMBERS[:5]], {"approximate": a}) for a in ("none", "tanh")
    ],
    "Inverse": [Sample([NUMBERS[:4].reshape(2, 2)])],
    "MatMulIntegerToFloat": [
        Sample(
            [
                BYTES.reshape(2, 5),
                BYTES.reshape(5, 2),
                np.float32(0.5),
                np.float32(0.25),
                np.int8(1),
                np.int8(-2),
                NUMBERS[:2],
            ]
        )
    ],
    "DynamicQuantizeMatMul": [
        Sample([NUMBERS.reshape(2, 5), BYTES.reshape(5, 2), np.float32(0.25), np.int8(3)])
    ],
    "Unsqueeze": [Sample([NUMBERS, np.array([0, 2])])],
}
#: Reductions over no axis.
REDUCTIONS = op_names(lambda op: "noop_with_empty_axes" in op.attrs)


def of_no_axis(op: str) -> Iterator[Sample]:
    x = {"ReduceLogSum": np.abs(NUMBERS), "ReduceAll": BYTES > 0, "ReduceAny": BYTES > 0}
    for axes in ([], [np.array([], np.int64)]):
        yield Sample([x.get(op, NUMBERS).reshape(2, 5), *axes], {"noop_with_empty_axes": 1})


def drawn(op: str) -> Iterator[Sample]:
    yield from MORE.get(op, ())
    if op in REDUCTIONS:
        yield from of_no_axis(op)
    types = [DType.F32]
    if op.startswith("Q"):
        types = [DType.I8, DType.U8]
    elif op in ("ReduceAll", "ReduceAny"):
        types = [DType.BOOL]
    for dtype in types:
        for sample in islice(samples(find_op(op), dtype), MOST):
            # onnxruntime's integer form counts cells beyond the padding of its own float form
            if sample.attrs.get("rounding"):
                continue
            if not (sample.attrs.get("ceil_mode") and sample.attrs.get("count_include_pad")):
                yield sample


def calls(op: str) -> Iterator[tuple[Graph, dict[str, np.ndarray], list[np.ndarray]]]:
    """One-node graphs of an operator with inputs and reference results."""
    for sample in drawn(op):
        graph, values = Graph("case"), []
        constant = sample.constant or range(1, len(sample.inputs))
        for i, array in enumerate(sample.inputs):
            value = None if array is None else graph.constant(array, f"x{i}")
            if value is not None and i not in constant:
                value.const = None
                graph.inputs.append(value)
            values.append(value)
        node = graph.add(op, values, dict(sample.attrs), outputs=sample.outputs, name="layer")
        graph.outputs = list(node.outputs)
        try:
            infer_types(graph, strict=True)
            wanted = run_node(node, list(sample.inputs))
        except ShapeError:
            continue
        yield graph, {v.name: sample.inputs[int(v.name[1:])] for v in graph.inputs}, wanted


def check(graph: Graph, feeds, wanted, opset: int | None) -> None:
    made = exact_session(write_bytes(graph, opset=opset)).run(None, feeds)
    for got, y in zip(made, wanted, strict=True):
        assert got.shape == y.shape and got.dtype == y.dtype
        if y.dtype.kind == "f":
            scale = max(float(np.abs(y[np.isfinite(y)]).max(initial=0)), 1.0)
            np.testing.assert_allclose(got, y, rtol=CLOSE, atol=CLOSE * scale)
        else:
            apart = np.abs(got.astype(np.int64) - y.astype(np.int64))
            assert apart.max(initial=0) <= (y.dtype.itemsize == 1 and y.dtype.kind != "b")
            assert (apart > 0).mean() <= 0.25  # averages round otherwise


def of_onnxruntime(op: OpDef) -> bool:
    """Operators of its own domain, which a version of onnxruntime may run without an onnx schema"""
    return op.source.startswith("com.microsoft")


# Scan's lowering only refuses: tests/importers/test_onnx_upgrade.py.
@pytest.mark.parametrize("op", sorted({*_LOWERINGS, *op_names(of_onnxruntime)} - {"*", "Scan"}))
def test_every_lowering(op: str) -> None:
    found = 0
    for graph, feeds, wanted in calls(op):
        for opset in (
            None,
            *sorted({below - 1 for below, _ in _LOWERINGS.get(op, ()) if below < 100}),
        ):
            check(graph, feeds, wanted, opset)
            found += 1
    assert found, "no sample of this operator"


@pytest.mark.parametrize("name", op_names(lambda op: op.fusable))
def test_every_fused_activation(name: str, rng) -> None:
    graph = Graph("fused")
    x, r = graph.constant(rng.standard_normal((1, 3, 6, 5)).astype(np.float32), "x"), None
    w = graph.constant(rng.standard_normal((4, 3, 3, 3)).astype(np.float32), "w")
    r = graph.constant(rng.standard_normal((1, 4, 4, 3)).astype(np.float32), "r")
    arrays = [x.const, w.const, None, r.const]
    x.const = r.const = None
    graph.inputs = [x, r]
    params = [-0.5, 1.5] if name == "Clip" else unary_params(name, {})
    node = graph.add(
        "Conv", [x, w, None, r], {"activation": name, "activation_params": params}, name="conv"
    )
    graph.outputs = [node.output]
    infer_types(graph)
    check(graph, {"x": arrays[0], "r": arrays[3]}, run_node(node, arrays), None)
