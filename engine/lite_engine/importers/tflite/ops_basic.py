"""Arithmetic, comparisons, reductions and the operators that only move elements."""

from __future__ import annotations

from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import DType, Value
from .. import _tf_ops as tf
from .. import _tf_pieces as pieces
from .. import _tf_tables as tables
from .._fake_quant import fake_quant as fake_quant_range
from .._floor import floor_div
from ._call import Call, Result, builtin

_UNARY = {
    "ABS": "Abs", "CEIL": "Ceil", "COS": "Cos", "ELU": "Elu", "EXP": "Exp", "FLOOR": "Floor",
    "HARD_SWISH": "HardSwish", "LOG": "Log", "LOGICAL_NOT": "Not", "LOGISTIC": "Sigmoid",
    "NEG": "Neg", "RELU": "Relu", "ROUND": "Round", "SIGN": "Sign", "SIN": "Sin", "SQRT": "Sqrt",
    "TANH": "Tanh", "RSQRT": "Rsqrt", "SQUARE": "Square",
}  # fmt: skip
_BINARY = {
    "ADD": "Add", "SUB": "Sub", "MUL": "Mul", "DIV": "Div", "MAXIMUM": "Max", "MINIMUM": "Min",
    "POW": "Pow", "EQUAL": "Equal", "LESS": "Less", "LESS_EQUAL": "LessOrEqual",
    "GREATER": "Greater", "GREATER_EQUAL": "GreaterOrEqual", "LOGICAL_AND": "And",
    "LOGICAL_OR": "Or", "NOT_EQUAL": "NotEqual", "SQUARED_DIFFERENCE": "SquaredDifference",
    "ATAN2": "Atan2",
}  # fmt: skip
_COMPUTED = {
    "ADD_N": "AddN", "FLOOR_MOD": "FloorMod", "RANGE": "Range",
    "RANK": "Rank", "ZEROS_LIKE": "ZerosLike",
}  # fmt: skip
_MOVED = {
    "BROADCAST_ARGS": "BroadcastArgs", "BROADCAST_TO": "BroadcastTo",
    "EXPAND_DIMS": "ExpandDims", "FILL": "Fill",
    "GATHER_ND": "GatherNd", "REVERSE_V2": "ReverseV2", "SCATTER_ND": "ScatterNd",
    "SELECT": "Select", "SELECT_V2": "SelectV2", "SLICE": "Slice", "TILE": "Tile",
    "TOPK_V2": "TopKV2",
}  # fmt: skip
_REDUCE = {
    "MEAN": "ReduceMean", "SUM": "ReduceSum", "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin", "REDUCE_PROD": "ReduceProd",
}  # fmt: skip


@builtin(*_UNARY)
def unary(c: Call) -> Value:
    return c.emit(_UNARY[c.op.code], c.x())


@builtin(*_BINARY)
def binary(c: Call) -> Value:
    return c.activation(c.emit(_BINARY[c.op.code], c.x(0), c.x(1)))


@builtin(*_COMPUTED)
def computed(c: Call) -> Result:
    return tables.compute(c.emit, _COMPUTED[c.op.code], c.xs())


@builtin(*_MOVED, moves=True)
def moved(c: Call) -> Result:
    return tables.compute(c.emit, _MOVED[c.op.code], c.xs())


@builtin("FLOOR_DIV")
def floor_division(c: Call) -> Value:
    """LiteRT divides floats in double precision, TensorFlow in their own."""
    return floor_div(c.emit, c.x(0), c.x(1), wide=True)


@builtin(*_REDUCE)
def reduce(c: Call) -> Value:
    return tf.reduce(c.emit, _REDUCE[c.op.code], c.x(), c.raw(1), c.opt("keep"))


@builtin("REDUCE_ANY", "REDUCE_ALL")
def reduce_bool(c: Call) -> Value:
    every = c.op.code == "REDUCE_ALL"
    return tf.reduce_bool(c.emit, c.x(), c.raw(1), c.opt("keep"), every)


@builtin("ARG_MAX", "ARG_MIN", moves=True)
def arg_extreme(c: Call) -> Value:
    op = "ArgMax" if c.op.code == "ARG_MAX" else "ArgMin"
    return tf.arg_extreme(c.emit, op, c.x(), c.raw(1), c.output_dtype())


@builtin("CUMSUM")
def cumsum(c: Call) -> Value:
    return tf.cumsum(c.emit, c.x(), c.raw(1), c.opt("exclusive"), c.opt("reverse"))


@builtin("CAST")
def cast(c: Call) -> Value:
    return c.emit.cast(c.raw(0), c.output_dtype())


@builtin("DEQUANTIZE")
def dequantize(c: Call) -> Value:
    x = c.x()
    return c.emit.cast(x, DType.F32) if x.dtype is DType.F16 else x


@builtin("QUANTIZE")
def quantize(c: Call) -> Value:
    return c.x()


@builtin("FAKE_QUANT")
def fake_quant(c: Call) -> Value:
    return fake_quant_range(
        c.emit, c.x(), c.opt("min"), c.opt("max"), c.opt("num_bits"), c.opt("narrow_range")
    )


# ---- moving elements


@builtin("RESHAPE", moves=True)
def reshape(c: Call) -> Value:
    if c.has(1):
        return tf.reshape(c.emit, c.x(), c.raw(1))
    return c.emit.reshape(c.x(), c.opt("shape") or c.output().shape)


@builtin("SQUEEZE", moves=True)
def squeeze(c: Call) -> Value:
    return tf.squeeze(c.emit, c.x(), c.opt("axes"))


@builtin("TRANSPOSE", moves=True)
def transpose(c: Call) -> Value:
    return c.emit.transpose(c.x(), c.ints(1, tr("the order of axes")))


@builtin("CONCATENATION", moves=True)
def concatenation(c: Call) -> Value:
    parts = [x for x in c.xs() if 0 not in (x.shape or ())] or c.xs()[:1]
    y = parts[0] if len(parts) == 1 else c.emit("Concat", *parts, axis=c.opt("axis"))
    return c.activation(y)


@builtin("PACK", moves=True)
def pack(c: Call) -> Value:
    return pieces.pack(c.emit, c.xs(), c.opt("axis"))


@builtin("UNPACK", moves=True)
def unpack(c: Call) -> Result:
    return pieces.unpack(c.emit, c.x(), len(c.op.outputs), c.opt("axis"))


@builtin("SPLIT", moves=True)
def split(c: Call) -> Result:
    return pieces.split(c.emit, c.x(1), c.raw(0), len(c.op.outputs))


@builtin("SPLIT_V", moves=True)
def split_v(c: Call) -> Result:
    return pieces.split_sizes(c.emit, c.x(0), c.raw(1), c.raw(2), len(c.op.outputs))


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@builtin("STRIDED_SLICE", moves=True)
def strided_slice(c: Call) -> Value:
    end = c.raw(2)
    if c.opt("offset"):
        end = c.emit("Add", c.raw(1), end)
    masks = {m: c.opt(m) for m in _MASKS}
    return pieces.strided_slice(c.emit, c.x(), c.raw(1), end, c.raw(3), **masks)


@builtin("PAD", "PADV2", moves=True)
def pad(c: Call) -> Value:
    return pieces.pad(c.emit, c.x(0), c.raw(1), c.x(2) if c.op.code == "PADV2" else _zero(c))


def _zero(c: Call) -> Value | None:
    """Padding that means 0.0: the zero point where integers are moved."""
    if c.is_raw and c.tensors.is_quantised(c.index(0)):
        return c.emit.const(c.tensors.params(c.index(0)).zero_point)
    return None


@builtin("MIRROR_PAD", moves=True)
def mirror_pad(c: Call) -> Value:
    return pieces.mirror_pad(c.emit, c.x(), c.raw(1), symmetric=c.opt("mode") == 1)


@builtin("GATHER", moves=True)
def gather(c: Call) -> Value:
    return pieces.gather(c.emit, c.x(0), c.raw(1), c.opt("axis"), c.opt("batch_dims"))


@builtin("SPACE_TO_BATCH_ND", moves=True)
def space_to_batch(c: Call) -> Value:
    return pieces.space_to_batch(c.emit, c.x(), c.ints(1, tr("the block")), c.raw(2), _zero(c))


@builtin("BATCH_TO_SPACE_ND", moves=True)
def batch_to_space(c: Call) -> Value:
    return pieces.batch_to_space(c.emit, c.x(), c.ints(1, tr("the block")), c.raw(2))


@builtin("REVERSE_SEQUENCE", moves=True)
def reverse_sequence(c: Call) -> Value:
    axes = c.opt("batch_dim"), c.opt("seq_dim")
    return pieces.reverse_sequence(c.emit, c.x(), c.raw(1), *axes)


# ---- integers about tensors


@builtin("SHAPE")
def shape(c: Call) -> Value:
    return tf.shape_of(c.emit, c.raw(0), c.output_dtype())


@builtin("ONE_HOT")
def one_hot(c: Call) -> Value:
    return tf.one_hot(c.emit, c.raw(0), c.raw(1), c.x(2), c.x(3), c.opt("axis"))


@builtin("WHERE")
def where(c: Call) -> Value:
    if len(c.op.inputs) != 1:
        raise ModelFormatError(tr("tflite: {source}: WHERE takes one input", source=c.emit.source))
    return tf.where_indices(c.emit, c.raw(0))
