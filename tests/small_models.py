"""Small graphs that touch layouts, fusions, views and fallbacks; weights are seeded."""

from __future__ import annotations

import numpy as np
from lite_engine.ir import DType, Graph, Value, from_text
from lite_engine.ops import infer_types


class Builder:
    """Adds layers with seeded weights to a graph."""

    def __init__(self, shape: tuple[int, ...], name: str = "small") -> None:
        self.rng = np.random.default_rng(7)
        self.graph = Graph(name)
        self.x = Value("x", DType.F32, shape)
        self.graph.inputs = [self.x]

    def add(self, op: str, *inputs, name: str = "", **attrs):
        return self.graph.add(op, list(inputs), attrs, name=name or self.graph.unique(op)).output

    def weights(self, *shape: int):
        scale = np.prod(shape[1:]) ** -0.5 if len(shape) > 1 else 0.1
        return self.graph.constant((self.rng.standard_normal(shape) * scale).astype(np.float32))

    def ints(self, *values: int):
        return self.graph.constant(np.array(values, np.int64))

    def scalar_int(self, value: int):
        return self.graph.constant(np.array(value, np.int64))

    def scalar(self, value: float):
        return self.graph.constant(np.array(value, np.float32))

    def conv(self, x, cin: int, cout: int, k: int, *, group: int = 1, name: str = "", **attrs):
        pads = [k // 2] * 4
        return self.add(
            "Conv",
            x,
            self.weights(cout, cin // group, k, k),
            self.weights(cout),
            name=name,
            group=group,
            pads=pads,
            **attrs,
        )

    def done(self, *outputs) -> Graph:
        self.graph.outputs = list(outputs)
        return self.graph


def classifier(batch: int | str = 1) -> Graph:
    """Conv, depthwise, residual, pooling, reshape, Gemm, Softmax: 10 classes of a 3x20x20 image."""
    b = Builder((batch, 3, 20, 20), "classifier")
    y = b.conv(b.x, 3, 16, 3, name="stem", strides=[2, 2], activation="Relu")
    z = b.conv(y, 16, 16, 3, name="dw", group=16)
    z = b.add("HardSwish", z, name="swish")
    z = b.conv(z, 16, 16, 1, name="pw")
    z = b.add("Add", z, y, name="skip")
    z = b.conv(z, 16, 32, 3, name="wide", activation="Relu")
    z = b.add("GlobalAveragePool", z, name="pool")
    z = b.add("Flatten", z, name="flat")
    z = b.add("Gemm", z, b.weights(10, 32), b.weights(10), name="fc", transB=1)
    return b.done(b.add("Softmax", z, name="prob", axis=-1))


def attention() -> Graph:
    """Transposes and reshapes around matrix products, as a transformer block writes them."""
    b = Builder((1, 12, 32), "attention")
    parts = []
    for part in "qkv":
        y = b.add("MatMul", b.x, b.weights(32, 32), name=part)
        y = b.add("Reshape", y, b.ints(1, 12, 4, 8))
        parts.append(b.add("Transpose", y, perm=[0, 2, 1, 3]))
    scores = b.add(
        "MatMul", parts[0], b.add("Transpose", parts[1], perm=[0, 1, 3, 2]), name="scores"
    )
    y = b.add("MatMul", b.add("Softmax", scores, axis=-1, name="soft"), parts[2], name="mix")
    y = b.add("Reshape", b.add("Transpose", y, perm=[0, 2, 1, 3]), b.ints(1, 12, 32))
    return b.done(b.add("Add", y, b.x, name="out"))


def image(graph: Graph, batch: int = 1) -> dict[str, np.ndarray]:
    """Seeded input of a graph of this module."""
    shape = [batch if isinstance(d, str) else d for d in graph.inputs[0].shape]
    return {"x": np.random.default_rng(3).standard_normal(shape).astype(np.float32)}


def class_token() -> Graph:
    """PyTorch's vision transformer in small: Expand and Reshape read shapes that are computed from
    an open batch."""
    b = Builder(("N", 6, 4), "class_token")
    batch = b.add("Gather", b.add("Shape", b.x), b.ints(0), axis=0, name="batch")
    shape = b.add("Concat", batch, b.ints(1, 4), axis=0, name="shape")
    token = b.add("Expand", b.weights(1, 1, 4), shape, name="token")
    y = b.add("Concat", token, b.x, axis=1, name="with_token")
    y = b.add("MatMul", y, b.weights(4, 5), name="mix")
    rows = b.add("Concat", batch, b.ints(35), axis=0, name="rows")
    return b.done(b.add("Reshape", y, rows, name="flat"))


def pointwise(w: np.ndarray, size: int | str = 9, attrs: str = "") -> Graph:
    """A 1x1 convolution of weights (O,C,1,1) over size x size pixels."""
    o, c = w.shape[:2]
    graph = from_text(
        f'graph "g" {{\n  input x: f32[1,{c},{size},{size}]\n  const w: f32[{o},{c},1,1] = @0\n'
        f'  "c": y = Conv(x, w) {{{attrs}}}\n  output y\n}}',
        [w],
    )
    infer_types(graph)
    return graph
