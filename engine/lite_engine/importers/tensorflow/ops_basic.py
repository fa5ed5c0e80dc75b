"""Constants, arithmetic, reductions, shapes and moving elements of TensorFlow."""

from __future__ import annotations

from lite_messages import tr

from ...errors import LiteError, ModelFormatError
from ...ir import DType, Value
from .. import _tf_ops as tf
from .. import _tf_pieces as pieces
from .. import _tf_tables as tables
from ._translate import Call, Result, op


@op("Const", "HostConst")
def const(c: Call) -> Value:
    return c.constant()


@op(
    "Identity", "StopGradient", "PreventGradient", "CheckNumerics", "Snapshot", "EnsureShape",
    "PlaceholderWithDefault", "ReadVariableOp",
)  # fmt: skip
def identity(c: Call) -> Value:
    """A placeholder with a default takes it: such inputs switch training on and off."""
    return c.x()


@op("IdentityN")
def identity_n(c: Call) -> Result:
    return c.xs()


@op("VarHandleOp", "VariableV2", "Variable")
def variable(c: Call) -> Value:
    if c.name not in c.nodes.variables:
        raise ModelFormatError(
            tr("tensorflow: variable {c} has no value", c=c.name),
            fix=tr("freeze the graph, or give the SavedModel folder with its variables"),
        )
    found = c.nodes.variables[c.name]
    if isinstance(found, LiteError):
        raise ModelFormatError(
            tr("tensorflow: variable {c} cannot be read: {found}", c=c.name, found=found)
        )
    array, dtype = found
    return c.emit.const(array, c.name, dtype)


@op(*tf.SAME)
def same(c: Call) -> Value:
    return c.emit(tf.SAME[c.node.op], *c.xs())


@op(*tables.COMPUTED, *tables.MOVED)
def computed(c: Call) -> Result:
    return tables.compute(c.emit, c.node.op, c.xs())


@op("Div")
def div(c: Call) -> Value:
    return c.emit("Div", c.x(0), c.x(1))


@op("Mod", "TruncateMod")
def truncate_mod(c: Call) -> Value:
    return c.emit("Mod", c.x(0), c.x(1), fmod=1)


@op("Erfc")
def erfc(c: Call) -> Value:
    x = c.x()
    return c.emit("Sub", tf.scalar(c.emit, x, 1), c.emit("Erf", x))


@op(*tf.REDUCE)
def reduce(c: Call) -> Value:
    keep = c.attrs.flag("keep_dims", c.attrs.flag("keepdims"))
    return tf.reduce(c.emit, tf.REDUCE[c.node.op], c.x(0), c.x(1), keep)


@op("All", "Any")
def reduce_bool(c: Call) -> Value:
    return tf.reduce_bool(c.emit, c.x(0), c.x(1), c.attrs.flag("keep_dims"), c.node.op == "All")


@op("ArgMax", "ArgMin")
def arg_extreme(c: Call) -> Value:
    return tf.arg_extreme(
        c.emit, c.node.op, c.x(0), c.x(1), c.attrs.dtype("output_type", DType.I64)
    )


@op("Cumsum")
def cumsum(c: Call) -> Value:
    flags = c.attrs.flag("exclusive"), c.attrs.flag("reverse")
    return tf.cumsum(c.emit, c.x(0), c.x(1), *flags)


@op("Cast")
def cast(c: Call) -> Value:
    """Floats to integers cut off, which ONNX's Cast does too."""
    return c.emit.cast(c.x(), c.attrs.dtype("DstT", DType.F32))


# ---- shapes


@op("Reshape")
def reshape(c: Call) -> Value:
    return tf.reshape(c.emit, c.x(0), c.x(1))


@op("Squeeze")
def squeeze(c: Call) -> Value:
    return tf.squeeze(c.emit, c.x(), c.attrs.ints("squeeze_dims") or c.attrs.ints("axis"))


@op("Transpose")
def transpose(c: Call) -> Value:
    return c.emit.transpose(c.x(0), c.ints(1, tr("the order of axes")))


@op("Shape")
def shape(c: Call) -> Value:
    return tf.shape_of(c.emit, c.x(), c.attrs.dtype("out_type", DType.I32))


@op("Size")
def size(c: Call) -> Value:
    return c.emit.cast(c.emit("Size", c.x()), c.attrs.dtype("out_type", DType.I32))


# ---- moving elements


@op("ConcatV2")
def concat(c: Call) -> Value:
    axis = c.integer(-1, tr("the axis"))
    parts = c.xs()[:-1]
    return parts[0] if len(parts) == 1 else c.emit("Concat", *parts, axis=axis)


@op("Concat")
def concat_v1(c: Call) -> Value:
    axis = c.integer(0, tr("the axis"))
    parts = c.xs()[1:]
    return parts[0] if len(parts) == 1 else c.emit("Concat", *parts, axis=axis)


@op("Pack")
def pack(c: Call) -> Value:
    return pieces.pack(c.emit, c.xs(), c.attrs.number("axis"))


@op("Unpack")
def unpack(c: Call) -> Result:
    return pieces.unpack(c.emit, c.x(), c.attrs.number("num"), c.attrs.number("axis"))


@op("Split")
def split(c: Call) -> Result:
    return pieces.split(c.emit, c.x(1), c.x(0), c.attrs.number("num_split", 1))


@op("SplitV")
def split_v(c: Call) -> Result:
    count = c.attrs.number("num_split", 1)
    return pieces.split_sizes(c.emit, c.x(0), c.x(1), c.x(2), count)


_MASKS = ("begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask")


@op("StridedSlice")
def strided_slice(c: Call) -> Value:
    masks = {m: c.attrs.number(m) for m in _MASKS}
    return pieces.strided_slice(c.emit, c.x(0), c.x(1), c.x(2), c.x(3), **masks)


@op("Pad", "PadV2")
def pad(c: Call) -> Value:
    return pieces.pad(c.emit, c.x(0), c.x(1), c.x(2) if c.node.op == "PadV2" else None)


@op("MirrorPad")
def mirror_pad(c: Call) -> Value:
    return pieces.mirror_pad(c.emit, c.x(0), c.x(1), c.attrs.text("mode") == "SYMMETRIC")


@op("Gather", "GatherV2", "ResourceGather")
def gather(c: Call) -> Value:
    axis = c.integer(2, tr("the axis")) if len(c.refs) > 2 else 0
    return pieces.gather(c.emit, c.x(0), c.x(1), axis, c.attrs.number("batch_dims"))


@op("TensorScatterUpdate")
def tensor_scatter_update(c: Call) -> Value:
    return c.emit("ScatterND", c.x(0), c.emit.cast(c.x(1), DType.I64), c.x(2))


@op("ReverseSequence")
def reverse_sequence(c: Call) -> Value:
    axes = c.attrs.number("batch_dim"), c.attrs.number("seq_dim")
    return pieces.reverse_sequence(c.emit, c.x(0), c.x(1), *axes)


@op("OneHot")
def one_hot(c: Call) -> Value:
    return tf.one_hot(c.emit, c.x(0), c.x(1), c.x(2), c.x(3), c.attrs.number("axis", -1))


@op("Where")
def where(c: Call) -> Value:
    return tf.where_indices(c.emit, c.x())
