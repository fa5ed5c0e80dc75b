"""DequantizeLinear → operator → QuantizeLinear becomes an integer operator.

    DQ(x), DQ(W), DQ(b), DQ(r) → Conv → Q QLinearConv
    DQ(x), DQ(W), DQ(b) → ConvTranspose → Q  QLinearConvTranspose
    DQ(a), DQ(B) → Gemm / MatMul → Q      QGemm / QLinearMatMul
    DQ(a), DQ(b) → Add / Sub / Mul → Q    QLinearAdd / QLinearSub / QLinearMul
    DQ(x) → pooling, Softmax, Concat → Q  QLinear…
    DQ(q), DQ(k), DQ(v) → Attention → Q   QLinearAttention
    DQ(x) → any unary function → Q        QLookup: 256 answers
    DQ(x), a number → Add, Sub, Mul, Div → Q  QLookup as well
    DQ(x) → several of these → Q          one QLookup
    DQ(x) → what LiteRT computes in fixed point → Q  QLinearResize, QLinearPRelu, …
    DQ(x) → view or MaxPool → Q           the same operator on integers

A fused Relu or Clip is free when the output's integers end where it clamps, else a table follows.
What Q says of rounding the integer operator takes over, where it knows other ways.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from lite_messages import tr

from ..ir import DType, Graph, Journal, Node, Value
from ..ops import all_ops, op_names
from ..ops.litert import has_ratios
from ._attention_form import attention_form
from ._byte_tables import formula, lookup_attrs, rescale, rescaled, unary, with_numbers
from ._core import graph_pass, infer_new
from ._int16_forms import clamped16, int16_form, rescale16
from ._litert_forms import litert_form
from ._quantised import (
    EIGHT_BITS,
    Quantized,
    alike,
    dequantised,
    has_integers,
    is_bytes,
    rounding,
    written,
)

NAME = "quantize-fuse-qdq"
VIEWS = op_names(lambda op: op.integer_form == "view")
KEEPING = (*VIEWS, *op_names(lambda op: op.integer_form == "keep"))
CLAMPS = op_names(lambda op: op.clamps)
ARITHMETIC = ("Add", "Sub", "Mul", "Div")


@graph_pass(NAME)
def quantize_fuse_qdq(graph: Graph, journal: Journal) -> int:
    count = 0
    for node in list(graph.nodes):
        if node.op == "Split" and _fuse_split(graph, node):
            journal.rewrote(NAME, (node.name,), (node.name,))
            count += 1
    for q in [n for n in graph.nodes if n.op == "QuantizeLinear"]:
        source = q.inputs[0].producer if q.inputs[0] is not None else None
        if source is None or source.op == "Split":
            continue
        before = (source.name, q.name)
        made = _fuse(graph, source, q)
        if isinstance(made, str):
            if made:
                journal.refused(NAME, before, made)
            continue
        infer_new(made)
        journal.rewrote(NAME, before, tuple(n.name for n in made))
        count += 1
    return count


def _fuse(graph: Graph, node: Node, q: Node) -> list[Node] | str:
    """The integer nodes in place of node → Q, or why there are none; "" for no such place."""
    if node.op == "DequantizeLinear":
        return rescale16(graph, node, q) or rescale(graph, node, q)
    inputs = [dequantised(graph, v) for v in node.inputs]
    if not any(inputs):
        return _formula(graph, node, q) or ""
    if graph.sole_reader(node.output) is not q or len(node.outputs) != 1:
        return tr("{node} output has another reader", node=node.op)
    y = written(graph, q)
    if not has_integers(y, q):
        return tr("the output is not quantized to 8 bits per tensor")
    if y.value.dtype is DType.I16 and (made16 := int16_form(graph, node, q, inputs, y)):
        return made16
    if node.op in ARITHMETIC and not (rounding(q) and node.op in INTEGER_FORMS):
        made = with_numbers(graph, node, q, inputs, y)
        if made is not None:
            return [made]
    if rounding(q) and (nodes := litert_form(graph, node, q, inputs, y)):
        return nodes
    handler = INTEGER_FORMS.get(node.op)
    made_or_why: list[Node] | str = tr("{node} has no integer form", node=node.op)
    if handler is not None:
        made_or_why = handler(graph, node, q, inputs, y)
    if isinstance(made_or_why, str):
        return _formula(graph, node, q) or made_or_why
    return made_or_why


def _formula(graph: Graph, node: Node, q: Node) -> list[Node] | None:
    """A table of several nodes, as exporters spell a Gelu."""
    y = written(graph, q)
    if y is None or y.value.dtype not in EIGHT_BITS or rounding(q):
        return None
    if graph.sole_reader(node.output) is not q:
        return None
    made = formula(graph, node, q, y)
    return None if made is None else [made]


# ---------------------------------------------------------------- heavy operators


def _conv(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node] | str:
    operands = _conv_operands(graph, node, inputs, y, 0)
    if isinstance(operands, str):
        return operands
    if node.input(3) is not None:
        r = inputs[3]
        if not is_bytes(r):
            return tr("the residual is not quantized to 8 bits")
        operands += [r.value, r.scale, r.zero]
    return _with_clamp(graph, node, q, "QLinearConv", operands, y)


def _conv_transpose(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node] | str:
    operands = _conv_operands(graph, node, inputs, y, 1)
    if isinstance(operands, str):
        return operands
    return _with_clamp(graph, node, q, "QLinearConvTranspose", operands, y)


def _conv_operands(
    graph: Graph, node: Node, inputs: list[Quantized | None], y: Quantized, axis: int
) -> list[Value | None] | str:
    """x, weight, y's parameters and bias; output channels lie along that axis of the weight."""
    x, w = inputs[0], inputs[1]
    if not alike(x, y) or w is None or w.value.dtype not in EIGHT_BITS:
        return tr("input or weight is not quantized to 8 bits")
    if not w.per_tensor and w.axis != axis:
        return tr("the weight has a scale per axis {axis}, not per output channel", axis=w.axis)
    if not w.per_tensor and axis == 1:
        w = _for_each_group(graph, w, node.attrs.get("group", 1))
    bias = _bias(graph, node, x, w)
    if isinstance(bias, str):
        return bias
    return [x.value, x.scale, x.zero, w.value, w.scale, w.zero, y.scale, y.zero, bias]


def _for_each_group(graph: Graph, w: Quantized, groups: int) -> Quantized:
    """Axis 1 of a weight (C, O/g, …) has the output channels of one group: the others' alike."""
    if groups == 1:
        return w

    def repeated(v: Value) -> Value:
        assert v.const is not None
        return graph.constant(np.tile(v.const.ravel(), groups), graph.unique(f"{v.name}.groups"))

    return Quantized(w.value, repeated(w.scale), repeated(w.zero), w.axis)


def _gemm(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node] | str:
    a, b = inputs[0], inputs[1]
    if not alike(a, y) or b is None or b.value.dtype not in EIGHT_BITS:
        return tr("input or weight is not quantized to 8 bits")
    if node.attrs.get("beta", 1.0) != 1 and node.input(2) is not None:
        return tr("beta is not 1")
    columns = 0 if node.attrs.get("transB", 0) else 1
    if not b.per_tensor and b.axis != columns:
        return tr("the weight has a scale per axis {axis}, not per column", axis=b.axis)
    bias = _bias(graph, node, a, b)
    if isinstance(bias, str):
        return bias
    operands = [a.value, a.scale, a.zero, b.value, b.scale, b.zero, bias, y.scale, y.zero]
    return _with_clamp(graph, node, q, "QGemm", operands, y)


def _matmul(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node] | str:
    a, b = inputs[0], inputs[1]
    if not alike(a, y) or b is None or b.value.dtype not in EIGHT_BITS:
        return tr("an operand is not quantized to 8 bits")
    if not b.per_tensor and b.axis != len(b.value.shape or ()) - 1:
        return tr("the weight has a scale per axis {axis}, not per column", axis=b.axis)
    if b.value.const is None and min(len(v.value.shape or ()) for v in (a, b)) < 2:
        return tr("an operand is a vector, or its rank is not known")
    if b.value.const is not None and b.value.const.ndim != 2:
        return tr("b is constant, but not one matrix")
    operands: list[Value | None] = [a.value, a.scale, a.zero, b.value, b.scale, b.zero]
    operands += [y.scale, y.zero]
    return _with_clamp(graph, node, q, "QLinearMatMul", operands, y)


def _bias(graph: Graph, node: Node, x: Quantized, w: Quantized) -> Value | str | None:
    """The bias as int32 of scale α·x_scale·w_scale; a text when it is not constant."""
    value = node.input(2)
    if value is None:
        return None
    found = dequantised(graph, value)
    assert w.scale.const is not None
    scale = np.float32(x.scalar[0] * node.attrs.get("alpha", 1.0)) * w.scale.const.ravel()
    if found is not None and found.value.const is not None:
        assert found.scale.const is not None and found.zero.const is not None
        integers, own = found.value.const, found.scale.const.ravel()
        plain = integers.dtype == np.int32 and not found.zero.const.any()
        if plain and np.allclose(own, scale, rtol=1e-5, atol=0):
            return found.value
        real = (integers - found.zero.const.astype(np.int64)) * own.astype(np.float64)
    elif value.const is not None:
        real = value.const.astype(np.float64)
    else:
        return tr("the bias is not constant")
    limits = np.iinfo(np.int32)
    array = np.clip(np.rint(real.ravel() / scale), limits.min, limits.max).astype(np.int32)
    return graph.constant(array, graph.unique(f"{node.name}.bias"))


# ---------------------------------------------------------------- clamps


def _with_clamp(
    graph: Graph, node: Node, q: Node, op: str, operands: list[Value | None], y: Quantized,
    rounds: str = "",
) -> list[Node] | str:  # fmt: skip
    """The integer operator; behind it a table where a fused clamp is not the integers' own end."""
    act, params = node.attrs.get("activation", ""), node.attrs.get("activation_params", [])
    if act not in ("", *CLAMPS):
        return tr("the fused {act} needs a range of its own input", act=act)
    attrs = {
        k: v for k, v in node.attrs.items() if not k.startswith("activation") and k not in ("beta",)
    }
    if rounds:
        attrs["rounding"] = rounds
    while operands and operands[-1] is None:
        operands.pop()
    low, high = (0.0, np.inf) if act == "Relu" else params if act else (-np.inf, np.inf)
    dtype = y.value.dtype
    assert dtype is not None
    info, (scale, zero) = np.iinfo(dtype.np), y.scalar
    bounds = [int(np.clip(np.rint(b / scale) + zero, info.min, info.max)) for b in (low, high)]
    if bounds == [info.min, info.max]:
        return [graph.replace([node, q], op, operands, attrs, name=node.name)]
    if dtype is DType.I16:
        return clamped16(graph, node, q, op, operands, attrs, y)
    table = np.clip(np.arange(info.min, info.max + 1), bounds[0], bounds[1])
    inner = graph.add(
        op, operands, attrs, name=graph.unique(node.name), sources=node.sources, before=q
    )
    inner.output.dtype, inner.output.shape = dtype, node.output.shape
    attrs = {"table": [int(t) for t in table], "output_dtype": str(dtype)}
    return [inner, graph.replace([node, q], "QLookup", [inner.output], attrs, name=node.name)]


# ---------------------------------------------------------------- element-wise, pooling, joining


def _binary(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node] | str:
    a, b = inputs
    if not alike(a, y) or not alike(b, y):
        return tr("an operand is not quantized to 8 bits")
    if not a.value.dtype is b.value.dtype is y.value.dtype:
        return tr("the operands differ in type")
    operands: list[Value | None] = [a.value, a.scale, a.zero, b.value, b.scale, b.zero]
    operands += [y.scale, y.zero]
    rounds = rounding(q)
    if y.value.dtype is DType.I16:
        pass
    elif node.op != "Mul" and not has_ratios(*(t.scalar[0] for t in (a, b, y))):
        rounds = ""  # LiteRT has no fixed-point kernel for scales so far apart
    return _with_clamp(graph, node, q, f"QLinear{node.op}", operands, y, rounds)


def _simple(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node] | str:
    """Pooling and Softmax: one input, one output, attributes as they are."""
    x = inputs[0]
    if not alike(x, y) or x.value.dtype is not y.value.dtype:
        return tr("input and output are not quantized to 8 bits with the same scale and zero point")
    operands = [x.value, x.scale, x.zero, y.scale, y.zero]
    attrs = dict(node.attrs)
    whole = node.op == "GlobalAveragePool"
    if rounding(q) and (whole or (node.op == "AveragePool" and x.same_as(y))):
        attrs["rounding"] = rounding(q)
    return [graph.replace([node, q], f"QLinear{node.op}", operands, attrs, name=node.name)]


def _concat(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node] | str:
    parts = [i for i in inputs if is_bytes(i)]
    if len(parts) != len(inputs):
        return tr("an input is not quantized to 8 bits")
    values = [p.value if p.same_as(y) else rescaled(graph, p, y, q) for p in parts]
    return [graph.replace([node, q], "Concat", values, node.attrs, name=node.name)]


def _keeping(
    graph: Graph, node: Node, q: Node, inputs: list[Quantized | None], y: Quantized
) -> list[Node] | str:
    """Operators that choose among numbers work on integers; other parameters take a table."""
    x = inputs[0]
    if not is_bytes(x):
        return tr("its input is not quantized to 8 bits")
    reason = why_not_keeping(node)
    if reason:
        return reason
    rest = list(node.inputs[1:])
    if node.op == "Pad":
        rest = _pad_value(graph, node, x)
    if x.same_as(y):
        return [graph.replace([node, q], node.op, [x.value, *rest], node.attrs, name=node.name)]
    inner = graph.add(
        node.op, [x.value, *rest], node.attrs, name=graph.unique(node.name), sources=node.sources,
        before=q,
    )  # fmt: skip
    inner.output.dtype, inner.output.shape = x.value.dtype, node.output.shape
    attrs = lookup_attrs(x, y, None)
    return [inner, graph.replace([node, q], "QLookup", [inner.output], attrs, name=node.name)]


def why_not_keeping(node: Node) -> str:
    """Why an operator that looks like a choice computes new numbers, "" when it does not."""
    if node.op == "Resize" and node.attrs.get("mode", "nearest") != "nearest":
        return tr("interpolation creates new values")
    if node.op == "Pad" and node.attrs.get("mode", "constant") == "constant":
        value = node.input(2)
        if value is not None and value.const is None:
            return tr("the padding value is not constant")
    return ""


def _pad_value(graph: Graph, node: Node, x: Quantized) -> list[Value | None]:
    """Pad's other inputs with its value in integers; an absent one is the zero point."""
    pads, value, axes = node.inputs[1], node.input(2), node.input(3)
    scale, zero = x.scalar
    real = 0.0 if value is None or value.const is None else float(value.const.ravel()[0])
    assert x.value.dtype is not None
    info = np.iinfo(x.value.dtype.np)
    number = np.clip(np.rint(real / scale) + zero, info.min, info.max)
    const = graph.constant(number.astype(x.value.dtype.np), graph.unique(f"{node.name}.value"))
    return [pads, const, *([axes] if axes is not None else [])]


def _fuse_split(graph: Graph, node: Node) -> bool:
    """DQ → Split → Q on every output: the Split works on integers."""
    x = dequantised(graph, node.inputs[0])
    if not is_bytes(x):
        return False
    readers = [graph.sole_reader(v) for v in node.outputs]
    qs = [r for r in readers if r is not None and r.op == "QuantizeLinear"]
    if len(qs) != len(node.outputs):
        return False
    if not all((y := written(graph, q)) is not None and x.same_as(y) for q in qs):
        return False
    outputs = [q.output for q in qs]
    for q in qs:
        graph.detach(q)
    node.set_input(0, x.value)
    node.outputs = outputs
    for value in outputs:
        value.producer = node
    node.sources = tuple(dict.fromkeys((*node.sources, *(s for q in qs for s in q.sources))))
    return True


Handler = Callable[[Graph, Node, Node, "list[Quantized | None]", Quantized], "list[Node] | str"]
#: The function of each `integer_form`.
_FORMS: dict[str, Handler] = {
    "view": _keeping,
    "keep": _keeping,
    "table": unary,
    "binary": _binary,
    "simple": _simple,
    "concat": _concat,
    "conv": _conv,
    "conv_transpose": _conv_transpose,
    "gemm": _gemm,
    "matmul": _matmul,
    "attention": attention_form,
}
INTEGER_FORMS = {op.name: _FORMS[op.integer_form] for op in all_ops() if op.integer_form}
