"""A small builder of ONNX networks with seeded weights, written as exporters write them.

Every tensor carries an estimate of its second moment E[x²]. Weights are drawn so that each
convolution's output has unit variance, and filters have zero mean so that the common offset behind
a ReLU does not grow from layer to layer: activations neither vanish nor explode, and the output
still depends on the input.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 17
#: E[f(x)²] of x ~ N(0, 1)
_MOMENT = {"relu": 0.5, "relu6": 0.5, "leaky": 0.505, "hswish": 0.36, "silu": 0.36, "gelu": 0.43}


@dataclass(frozen=True)
class Tensor:
    """A named tensor of known shape; `moment` is the estimate of E[x²]."""

    name: str
    shape: tuple[int, ...]
    moment: float = 1.0

    @property
    def channels(self) -> int:
        return self.shape[1]


class Net:
    """Collects nodes and initialisers; `macs` counts multiply-accumulates on the way."""

    def __init__(self, name: str, seed: int = 0) -> None:
        self.name = name
        self.rng = np.random.default_rng([seed, *name.encode()])
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []
        self.macs = 0
        self._count: dict[str, int] = {}

    # ---- primitives
    def input(self, name: str, shape: Sequence[int], kind: int = TensorProto.FLOAT) -> Tensor:
        self.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        return Tensor(name, tuple(shape))

    def output(self, x: Tensor, name: str) -> None:
        """Declares `x` an output under `name` (the producing node is renamed)."""
        for node in self.nodes:
            for names in (node.input, node.output):
                for i, n in enumerate(names):
                    if n == x.name:
                        names[i] = name
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, list(x.shape)))

    def fresh(self, stem: str) -> str:
        self._count[stem] = self._count.get(stem, -1) + 1
        return f"/{self.name}/{stem}_{self._count[stem]}"

    def const(self, array: np.ndarray, stem: str = "const") -> str:
        name = self.fresh(stem)
        self.weights.append(numpy_helper.from_array(np.asarray(array, order="C"), name))
        return name

    def ints(self, *values: int) -> str:
        return self.const(np.array(values, np.int64), "shape")

    def scalar(self, value: float) -> str:
        return self.const(np.array(value, np.float32), "scalar")

    def op(self, op: str, *inputs: Tensor | str, outputs: int = 1, **attrs: object) -> list[str]:
        """One node; returns its output names."""
        name = self.fresh(op)
        outs = [f"{name}_output_{i}" for i in range(outputs)]
        names = [i.name if isinstance(i, Tensor) else i for i in inputs]
        self.nodes.append(helper.make_node(op, names, outs, name=name, **attrs))
        return outs

    def unary(self, op: str, x: Tensor, moment: float | None = None, **attrs: object) -> Tensor:
        return replace(x, name=self.op(op, x, **attrs)[0], moment=moment or x.moment)

    # ---- layers
    def conv(
        self,
        x: Tensor,
        out: int,
        k: int | tuple[int, int],
        s: int | tuple[int, int] = 1,
        p: int | tuple[int, int] | None = None,
        *,
        g: int = 1,
        d: int = 1,
        bias: bool = False,
    ) -> Tensor:
        """2-D convolution; `p` defaults to "same" at stride 1."""
        kh, kw = (k, k) if isinstance(k, int) else k
        sh, sw = (s, s) if isinstance(s, int) else s
        p = (d * (kh // 2), d * (kw // 2)) if p is None else p
        ph, pw = (p, p) if isinstance(p, int) else p
        fan_in = x.channels // g * kh * kw
        w = self.rng.standard_normal((out, x.channels // g, kh, kw))
        if fan_in > 32:
            w -= w.mean(axis=(1, 2, 3), keepdims=True)
        w /= math.sqrt(fan_in * x.moment)
        names = [x.name, self.const(w.astype(np.float32), "weight")]
        if bias:
            names.append(self.const(self._around(0, 0.05, out), "bias"))
        y = self.op(
            "Conv", *names, kernel_shape=[kh, kw], strides=[sh, sw], pads=[ph, pw, ph, pw],
            dilations=[d, d], group=g,
        )[0]  # fmt: skip
        height = (x.shape[2] + 2 * ph - d * (kh - 1) - 1) // sh + 1
        width = (x.shape[3] + 2 * pw - d * (kw - 1) - 1) // sw + 1
        self.macs += x.shape[0] * out * height * width * fan_in
        return Tensor(y, (x.shape[0], out, height, width), 1.0)

    def conv_transpose(self, x: Tensor, out: int, k: int = 2, s: int = 2) -> Tensor:
        w = self.rng.standard_normal((x.channels, out, k, k)) / math.sqrt(x.channels * x.moment)
        w -= w.mean(axis=0, keepdims=True)
        b = self._around(0, 0.05, out)
        y = self.op(
            "ConvTranspose", x, self.const(w.astype(np.float32), "weight"), self.const(b, "bias"),
            kernel_shape=[k, k], strides=[s, s],
        )[0]  # fmt: skip
        self.macs += x.channels * out * k * k * x.shape[2] * x.shape[3]
        return Tensor(y, (x.shape[0], out, x.shape[2] * s, x.shape[3] * s), 1.0)

    def batch_norm(self, x: Tensor, gain: float = 1.0) -> Tensor:
        c = x.channels
        params = (
            gain * self._around(1, 0.1, c), self._around(0, 0.1, c), self._around(0, 0.1, c),
            x.moment * np.abs(self._around(1, 0.1, c)),
        )  # fmt: skip
        names = [self.const(p.astype(np.float32), "bn") for p in params]
        y = self.op("BatchNormalization", x, *names, epsilon=1e-5)[0]
        return replace(x, name=y, moment=gain * gain)

    def _around(self, mean: float, spread: float, count: int) -> np.ndarray:
        return (mean + spread * self.rng.standard_normal(count)).astype(np.float32)

    def act(self, x: Tensor, kind: str) -> Tensor:
        """An activation in an exporter's spelling."""
        moment = _MOMENT.get(kind, 1.0) * x.moment
        if kind == "":
            return x
        if kind == "relu":
            return self.unary("Relu", x, moment)
        if kind == "leaky":
            return self.unary("LeakyRelu", x, moment, alpha=0.1)
        if kind == "relu6":
            y = self.op("Clip", x, self.scalar(0.0), self.scalar(6.0))[0]
        elif kind == "hswish":  # x · clip(x + 3, 0, 6) / 6, as torch exported it before opset 14
            gate = self.op("Add", x, self.scalar(3.0))[0]
            gate = self.op("Clip", gate, self.scalar(0.0), self.scalar(6.0))[0]
            y = self.op("Div", self.op("Mul", x, gate)[0], self.scalar(6.0))[0]
        elif kind == "hswish_hs":  # x · HardSigmoid(x), as Paddle's and newer exporters
            y = self.op("Mul", x, self.op("HardSigmoid", x, alpha=1 / 6, beta=0.5)[0])[0]
            moment = _MOMENT["hswish"] * x.moment
        elif kind == "silu":
            y = self.op("Mul", x, self.op("Sigmoid", x)[0])[0]
        elif kind == "gelu":  # 0.5 · x · (1 + erf(x / √2))
            erf = self.op("Erf", self.op("Div", x, self.scalar(math.sqrt(2)))[0])[0]
            y = self.op("Mul", x, self.op("Add", erf, self.scalar(1.0))[0])[0]
            y = self.op("Mul", y, self.scalar(0.5))[0]
        elif kind == "hsigmoid":
            return self.unary("HardSigmoid", x, 0.3, alpha=0.2, beta=0.5)
        elif kind == "sigmoid":
            return self.unary("Sigmoid", x, 0.3)
        else:
            raise ValueError(kind)
        return replace(x, name=y, moment=moment)

    def cbr(self, x: Tensor, out: int, k: int | tuple[int, int], s: int | tuple[int, int] = 1,
            act: str = "relu", *, g: int = 1, d: int = 1, gain: float = 1.0) -> Tensor:  # fmt: skip
        """Conv + batch-norm + activation, unfused."""
        return self.act(self.batch_norm(self.conv(x, out, k, s, g=g, d=d), gain), act)

    def depthwise(self, x: Tensor, k: int, s: int | tuple[int, int] = 1, act: str = "relu",
                  d: int = 1) -> Tensor:  # fmt: skip
        return self.cbr(x, x.channels, k, s, act, g=x.channels, d=d)

    def add(self, a: Tensor, b: Tensor) -> Tensor:
        return replace(a, name=self.op("Add", a, b)[0], moment=a.moment + b.moment)

    def concat(self, *xs: Tensor) -> Tensor:
        c = sum(x.channels for x in xs)
        moment = sum(x.moment * x.channels for x in xs) / c
        y = self.op("Concat", *xs, axis=1)[0]
        return Tensor(y, (xs[0].shape[0], c, *xs[0].shape[2:]), moment)

    def squeeze_excite(self, x: Tensor, mid: int, gate: str = "hsigmoid",
                       act: str = "relu") -> Tensor:  # fmt: skip
        y = self.global_pool(x)
        y = self.act(self.conv(y, mid, 1, bias=True), act)
        y = self.act(self.conv(y, x.channels, 1, bias=True), gate)
        return replace(x, name=self.op("Mul", x, y)[0], moment=0.3 * x.moment)

    def max_pool(self, x: Tensor, k: int, s: int, p: int = 0, *, ceil: bool = False,
                 pads: Sequence[int] | None = None) -> Tensor:  # fmt: skip
        pads = list(pads or [p, p, p, p])
        y = self.op("MaxPool", x, kernel_shape=[k, k], strides=[s, s], pads=pads,
                    ceil_mode=int(ceil))[0]  # fmt: skip
        sizes = [x.shape[2 + i] + pads[i] + pads[2 + i] - k for i in range(2)]
        out = [(-(-n // s) if ceil else n // s) + 1 for n in sizes]
        return Tensor(y, (x.shape[0], x.channels, *out), max(1.0, 1.5 * x.moment))

    def global_pool(self, x: Tensor) -> Tensor:
        y = self.op("GlobalAveragePool", x)[0]
        return Tensor(y, (x.shape[0], x.channels, 1, 1), max(0.05, 0.4 * x.moment))

    def resize(self, x: Tensor, factor: int, mode: str = "nearest") -> Tensor:
        extra = (
            {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
            if mode == "nearest"
            else {"coordinate_transformation_mode": "half_pixel"}
        )
        scales = self.const(np.array([1, 1, factor, factor], np.float32), "scales")
        y = self.op("Resize", x, "", scales, mode=mode, **extra)[0]
        return Tensor(y, (*x.shape[:2], x.shape[2] * factor, x.shape[3] * factor), x.moment)

    def reshape(self, x: Tensor, *shape: int) -> Tensor:
        return Tensor(self.op("Reshape", x, self.ints(*shape))[0], tuple(shape), x.moment)

    def transpose(self, x: Tensor, *perm: int) -> Tensor:
        y = self.op("Transpose", x, perm=list(perm))[0]
        return Tensor(y, tuple(x.shape[p] for p in perm), x.moment)

    def matmul(self, x: Tensor, out: int, *, bias: bool = True) -> Tensor:
        """MatMul + Add over the last axis."""
        fan_in = x.shape[-1]
        w = self.rng.standard_normal((fan_in, out)) / math.sqrt(fan_in * x.moment)
        y = self.op("MatMul", x, self.const(w.astype(np.float32), "weight"))[0]
        if bias:
            y = self.op("Add", self.const(self._around(0, 0.05, out), "bias"), y)[0]
        self.macs += math.prod(x.shape[:-1]) * fan_in * out
        return Tensor(y, (*x.shape[:-1], out), 1.0)

    def gemm(self, x: Tensor, out: int) -> Tensor:
        """Gemm with transB, as torch's Linear exports."""
        fan_in = x.shape[-1]
        w = self.rng.standard_normal((out, fan_in)) / math.sqrt(fan_in * x.moment)
        bias = self.const(self._around(0, 0.05, out), "bias")
        w = self.const(w.astype(np.float32), "weight")
        y = self.op("Gemm", x, w, bias, alpha=1.0, beta=1.0, transB=1)[0]
        self.macs += x.shape[0] * fan_in * out
        return Tensor(y, (x.shape[0], out), 1.0)

    def classifier(self, x: Tensor, classes: int = 1000, *, softmax: bool = False) -> None:
        """Global pool, flatten, fully connected; declares the output."""
        x = self.global_pool(x)
        y = self.unary("Flatten", x, axis=1)
        y = self.gemm(replace(y, shape=(x.shape[0], x.channels)), classes)
        if softmax:
            y = self.unary("Softmax", y, axis=1)
        self.output(y, "output")

    def build(self) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.weights)
        model = helper.make_model(
            graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8,
            producer_name="lite-workbench zoo",
        )  # fmt: skip
        helper.set_model_props(model, {"macs": str(self.macs)})
        onnx.checker.check_model(model)
        return model
