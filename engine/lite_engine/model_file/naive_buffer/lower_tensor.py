"""Lowerings of arithmetic, functions of one input, and operators that move elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ...importers.paddle.program import DTYPE_NUMBERS
from ...ir import DType, Node, Value
from ...ops.activation import unary_params
from .container import Long
from .lower import Writer, lowers
from .lower_activation import activation_op, finish_activation, with_activation

_BINARY = {
    "Add": "elementwise_add", "Sub": "elementwise_sub", "Mul": "elementwise_mul",
    "Div": "elementwise_div", "Max": "elementwise_max", "Min": "elementwise_min",
    "Pow": "elementwise_pow", "Equal": "equal", "Less": "less_than",
    "LessOrEqual": "less_equal", "Greater": "greater_than", "GreaterOrEqual": "greater_equal",
    "And": "logical_and", "Or": "logical_or", "Xor": "logical_xor",
}  # fmt: skip
_COMPARE = ("Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual")
_ORDERLESS = ("Add", "Mul", "Max", "Min", "Equal", "And", "Or", "Xor")


@lowers(*_BINARY)
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    if len(node.inputs) != 2:
        raise w.refuse(tr("only the form with two inputs can be written"))
    x, y = node.inputs
    assert x is not None and y is not None
    if node.op in _ORDERLESS and (x.is_const or w.rank(x) < w.rank(y)):
        x, y = y, x
    out = with_activation(w, node, attrs)
    if not _as_scale(w, node.op, x, y, out):
        host = {"force_cpu": False} if node.op in _COMPARE else {}
        w.add(_BINARY[node.op], {"X": x, "Y": y}, {"Out": out}, axis=-1, **host)
    finish_activation(w, node, attrs, out)


def _as_scale(w: Writer, op: str, x: Value, y: Value, out: Value | str) -> bool:
    """x·k + b with a single number is Paddle's scale."""
    if y.const is None or y.const.size != 1 or x.dtype is not DType.F32 or x.is_const:
        return False
    if len(y.const.shape) > w.rank(x):
        return False
    number = float(y.const.reshape(()))
    factors = {"Add": (1.0, number), "Sub": (1.0, -number), "Mul": (number, 0.0),
               "Div": (1.0 / number if number else 0.0, 0.0)}  # fmt: skip
    if op not in factors or (op == "Div" and not number):
        return False
    scale, bias = factors[op]
    w.add("scale", {"X": x}, {"Out": out}, scale=scale, bias=bias, bias_after_scale=True)
    return True


@lowers("Sum")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    parts = [v for v in node.inputs if v is not None]
    last: Value | str = parts[0]
    for i, part in enumerate(parts[1:], 2):
        out = node.output if i == len(parts) else w.like(node.output, f"sum{i}")
        w.add("elementwise_add", {"X": last, "Y": part}, {"Out": out}, axis=-1)
        last = out
    if len(parts) == 1:
        _identity(w, node, attrs)


_UNARY = {
    "Exp": "exp", "Log": "log", "Sqrt": "sqrt", "Abs": "abs", "Floor": "floor",
    "Erf": "erf", "Sin": "sin", "Cos": "cos", "Reciprocal": "reciprocal", "Not": "logical_not",
    "Softsign": "softsign", "Sign": "sign", "Round": "round",
}  # fmt: skip


@lowers(*_UNARY)
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    w.add(_UNARY[node.op], {"X": node.inputs[0]}, {"Out": node.output})


@lowers("Neg")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    w.add("scale", {"X": node.inputs[0]}, {"Out": node.output}, scale=-1.0, bias=0.0,
          bias_after_scale=True)  # fmt: skip


@lowers("Relu", "LeakyRelu", "Sigmoid", "Tanh", "HardSigmoid", "HardSwish", "Silu", "Swish",
        "Elu", "Softplus", "Mish", "Gelu")  # fmt: skip
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x = node.inputs[0]
    assert x is not None
    activation_op(w, w.name(x), node.output, node.op, unary_params(node.op, attrs))


@lowers("Clip")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    big = float(np.finfo(np.float32).max)
    bounds = [node.input(1), node.input(2)]
    low, high = (
        default if v is None else float(w.array(v, "bound").reshape(()))
        for v, default in zip(bounds, (-big, big))
    )
    x = node.inputs[0]
    assert x is not None
    activation_op(w, w.name(x), node.output, "Clip", [max(low, -big), min(high, big)])


@lowers("PRelu")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    slope = w.array(node.inputs[1], "slope")
    x = node.inputs[0]
    wide = slope.shape[-w.rank(x) + 1] if slope.ndim == w.rank(x) - 1 else slope.size
    if slope.size not in (1, wide):
        raise w.refuse(tr("only one slope, or one per channel, can be written"))
    mode = "all" if slope.size == 1 else "channel"
    stem = node.inputs[1].name if node.inputs[1] is not None else "slope"
    name = w.weight(slope.reshape(-1), stem)
    w.add("prelu", {"X": x, "Alpha": name}, {"Out": node.output}, mode=mode, data_format="NCHW")


@lowers("Softmax", "LogSoftmax")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    kind = "softmax" if node.op == "Softmax" else "log_softmax"
    w.add(kind, {"X": node.inputs[0]}, {"Out": node.output}, axis=int(attrs["axis"]))


@lowers("Identity", "Dropout")
def _identity(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    """A scale by one: `assign` has no kernel on every target."""
    if node.output.dtype is DType.F32:
        w.add("scale", {"X": node.inputs[0]}, {"Out": node.output}, scale=1.0, bias=0.0,
              bias_after_scale=True)  # fmt: skip
    else:
        w.add("assign", {"X": node.inputs[0]}, {"Out": node.output})


@lowers("Cast")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x = node.inputs[0]
    assert x is not None
    types = [DTYPE_NUMBERS[x.dtype or DType.F32], DTYPE_NUMBERS[DType(attrs["to"])]]
    w.add("cast", {"X": x}, {"Out": node.output}, in_dtype=types[0], out_dtype=types[1])


def _reshape(w: Writer, x: Value | str, out: Value, shape: list[int]) -> None:
    w.add("reshape2", {"X": x}, {"Out": out, "XShape": w.like(out, "xshape")}, shape=shape)


@lowers("Reshape", "Flatten")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x = node.inputs[0]
    assert x is not None
    shape: list[int] | None = None
    given = node.input(1)
    if given is not None and given.const is not None and not attrs.get("allowzero"):
        shape = [int(v) for v in given.const]
    elif node.op == "Flatten" and attrs["axis"] == 1:
        shape = [0, -1]
    elif node.output.type.is_static:
        shape = w.dims(node.output)
    if shape is None:
        w.add("reshape2", {"X": x, "Shape": given},
              {"Out": node.output, "XShape": w.like(x, "xshape")}, shape=[])  # fmt: skip
        return
    before, after = list(x.shape or ()), list(node.output.shape or ())
    if shape and -1 not in shape and before[:1] == after[:1] and shape[0] == after[0]:
        shape[0] = 0  # keeps the batch free
    _reshape(w, x, node.output, shape)


@lowers("Squeeze", "Unsqueeze")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x = node.inputs[0]
    assert x is not None
    axes = [] if node.input(1) is None else w.ints(node.input(1), "axes")
    if node.op == "Unsqueeze":
        axes = sorted(a % w.rank(node.output) for a in axes)
    kind = "squeeze2" if node.op == "Squeeze" else "unsqueeze2"
    w.add(kind, {"X": x}, {"Out": node.output, "XShape": w.like(x, "xshape")}, axes=axes)


@lowers("Transpose")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x = node.inputs[0]
    assert x is not None
    axes = list(attrs["perm"] or range(w.rank(x))[::-1])
    out = {"Out": node.output, "XShape": w.like(x, "xshape")}
    w.add("transpose2", {"X": x}, out, axis=axes, data_format="AnyLayout")


@lowers("Concat")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    parts = [v for v in node.inputs if v is not None]
    w.add("concat", {"X": parts}, {"Out": node.output}, axis=attrs["axis"] % w.rank(parts[0]))


@lowers("Split")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    axis = attrs["axis"] % w.rank(node.inputs[0])
    sections = [w.dims(v)[axis] for v in node.outputs]
    w.add("split", {"X": node.inputs[0]}, {"Out": list(node.outputs)}, axis=axis, num=0,
          sections=sections)  # fmt: skip


@lowers("Slice")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x = node.inputs[0]
    starts, ends = w.ints(node.inputs[1], "start"), w.ints(node.inputs[2], "end")
    axes = list(range(len(starts))) if node.input(3) is None else w.ints(node.input(3), "axes")
    steps = [1] * len(starts) if node.input(4) is None else w.ints(node.input(4), "step")
    axes = [a % w.rank(x) for a in axes]
    big = 2**31 - 1
    starts, ends = ([max(-big, min(v, big)) for v in vs] for vs in (starts, ends))
    if any(s != 1 for s in steps):
        w.add("strided_slice", {"Input": x}, {"Out": node.output}, axes=axes, starts=starts,
              ends=ends, strides=steps, infer_flags=[1] * len(axes), decrease_axis=[])  # fmt: skip
        return
    w.add("slice", {"Input": x}, {"Out": node.output}, axes=axes, starts=starts, ends=ends,
          infer_flags=[1] * len(axes), decrease_axis=[])  # fmt: skip


@lowers("Gather")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x, index = node.inputs[0], node.inputs[1]
    assert x is not None and index is not None
    axis = attrs["axis"] % w.rank(x)
    if index.const is not None and index.const.size == 1:
        at = int(index.const.reshape(()))
        end = at + 1 if at != -1 else 2**31 - 1
        gone = [axis] if index.const.ndim == 0 else []
        w.add("slice", {"Input": x}, {"Out": node.output}, axes=[axis], starts=[at], ends=[end],
              infer_flags=[1], decrease_axis=gone)  # fmt: skip
        return
    if x.const is not None and axis == 0 and x.const.ndim == 2:
        w.add("lookup_table_v2", {"Ids": index, "W": x}, {"Out": node.output}, padding_idx=Long(-1))
        return
    if w.rank(index) != 1:
        raise w.refuse(tr("only a list of indices can be written"))
    w.add("gather", {"X": x, "Index": index}, {"Out": node.output}, axis=axis)


@lowers("DepthToSpace")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    if attrs["mode"] != "CRD":
        raise w.refuse(tr("only the column-row-depth order can be written"))
    w.add("pixel_shuffle", {"X": node.inputs[0]}, {"Out": node.output},
          upscale_factor=int(attrs["blocksize"]))  # fmt: skip


@lowers("Pad")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    pads = w.ints(node.inputs[1], "padding")
    modes = {"constant": "constant", "reflect": "reflect", "edge": "edge"}
    if len(pads) != 8 or any(pads[i] for i in (0, 1, 4, 5)) or attrs["mode"] not in modes:
        raise w.refuse(tr("only constant, reflect and edge padding of images can be written"))
    value = 0.0
    if node.input(2) is not None:
        value = float(w.array(node.input(2), "value").reshape(()))
    w.add("pad2d", {"X": node.inputs[0]}, {"Out": node.output}, mode=modes[attrs["mode"]],
          paddings=[pads[2], pads[6], pads[3], pads[7]], pad_value=value,
          data_format="NCHW")  # fmt: skip


_REDUCE = {"ReduceMean": "reduce_mean", "ReduceSum": "reduce_sum", "ReduceMax": "reduce_max",
           "ReduceMin": "reduce_min", "ReduceProd": "reduce_prod"}  # fmt: skip


@lowers(*_REDUCE)
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    _reduce(w, node, attrs, _REDUCE[node.op], node.inputs[0], node.output)


@lowers("ReduceSumSquare", "ReduceL2")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    x = node.inputs[0]
    assert x is not None
    squares = w.like(x, "squares")
    w.add("elementwise_mul", {"X": x, "Y": x}, {"Out": squares}, axis=-1)
    root = node.op == "ReduceL2"
    total = w.like(node.output, "sum") if root else node.output
    _reduce(w, node, attrs, "reduce_sum", squares, total)
    if root:
        w.add("sqrt", {"X": total}, {"Out": node.output})


def _reduce(
    w: Writer, node: Node, attrs: dict[str, Any], kind: str, x: Value | str | None,
    out: Value | str,
) -> None:  # fmt: skip
    rank = w.rank(node.inputs[0])
    axes = [] if node.input(1) is None else [a % rank for a in w.ints(node.input(1), "axes")]
    w.add(kind, {"X": x}, {"Out": out}, dim=axes or [0], keep_dim=bool(attrs["keepdims"]),
          reduce_all=len(axes) in (0, rank))  # fmt: skip


@lowers("ArgMax")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    w.add("arg_max", {"X": node.inputs[0]}, {"Out": node.output}, axis=Long(attrs["axis"]),
          keepdims=bool(attrs["keepdims"]), dtype=3)  # fmt: skip


@lowers("TopK")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    if not attrs["largest"]:
        raise w.refuse(tr("only the largest elements can be written"))
    values, indices = node.outputs
    w.add("top_k_v2", {"X": node.inputs[0]}, {"Out": values, "Indices": indices},
          k=w.ints(node.inputs[1], "count")[0], axis=int(attrs["axis"]), sorted=True,
          largest=True)  # fmt: skip


@lowers("Where")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    condition, x, y = node.inputs[:3]
    w.add("where", {"Condition": condition, "X": x, "Y": y}, {"Out": node.output})


@lowers("Shape")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    raise w.refuse(tr("shapes computed at run time are not written; give input shapes"))


@lowers("Expand")
def _(w: Writer, node: Node, attrs: dict[str, Any]) -> None:
    w.add("expand_v2", {"X": node.inputs[0]}, {"Out": node.output}, shape=w.dims(node.output))
