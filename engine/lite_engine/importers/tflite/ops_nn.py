"""Convolutions, pooling, dense layers, resizing and activations of TFLite."""

from __future__ import annotations

from collections.abc import Sequence

from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import DType, Value
from .. import _nhwc, _tf_ops
from .._suppression import padded_suppression
from . import _dynamic
from ._call import Call, Result, builtin


@builtin("CONV_2D")
def conv_2d(c: Call) -> Value:
    """x (N,H,W,C), w (O,kh,kw,C/g)."""
    channels, per_group = _channels(c)
    if channels is None or per_group < 1 or channels % per_group:
        raise ModelFormatError(
            tr(
                "tflite: {source}: {channels} channels do not fit a weight for groups "
                "of {per_group}",
                source=c.emit.source,
                channels=channels,
                per_group=per_group,
            )
        )
    return _convolve(c, (0, 3, 1, 2), channels // per_group)


@builtin("DEPTHWISE_CONV_2D")
def depthwise_conv_2d(c: Call) -> Value:
    """x (N,H,W,C), w (1,kh,kw,C·multiplier)."""
    channels, of_weight = _channels(c)
    if channels is None or channels < 1 or of_weight % channels:
        raise ModelFormatError(
            tr(
                "tflite: {source}: {channels} channels do not fit a weight of shape {shape}",
                source=c.emit.source,
                channels=channels,
                shape=list(c.tensor(1).shape),
            )
        )
    return _convolve(c, (3, 0, 1, 2), channels)


def _channels(c: Call) -> tuple[int | None, int]:
    """The last sizes of an image (N,H,W,C) and of its weight. Raises ModelFormatError for other
    ranks."""
    image, weight = c.emit.dims(c.raw(0)), c.tensor(1).shape
    if len(image) != 4 or len(weight) != 4:
        raise ModelFormatError(
            tr(
                "tflite: {source}: expected an image and a weight of 4 axes, found {image} and "
                "{weight}",
                source=c.emit.source,
                image=image,
                weight=list(weight),
            )
        )
    return image[-1], weight[-1]


def _convolve(c: Call, perm: Sequence[int], group: int) -> Value:
    """The convolution that the options describe, w (O,C/g,kh,kw) with its axes permuted."""
    strides = c.opt("stride_h"), c.opt("stride_w")
    dilations = c.opt("dilation_h"), c.opt("dilation_w")
    w = c.weight(1, perm)
    if _dynamic.takes(c):
        y = _dynamic.convolution(c, perm, group, strides, dilations)
    else:
        y = _nhwc.conv(c.emit, c.x(0), w, c.bias(2), strides, c.padding, dilations, group)
    return _nhwc.to_last(c.emit, c.activation(y))


@builtin("CONV_3D")
def conv_3d(c: Call) -> Value:
    """x (N,D,H,W,C), w (kd,kh,kw,C,O)."""
    y = _nhwc.conv(
        c.emit,
        c.x(0),
        c.weight(1, (4, 3, 0, 1, 2)),
        c.bias(2),
        tuple(c.opt(f"stride_{a}") for a in "dhw"),
        c.padding,
        tuple(c.opt(f"dilation_{a}") for a in "dhw"),
    )
    return _nhwc.to_last(c.emit, c.activation(y))


@builtin("TRANSPOSE_CONV")
def transpose_conv(c: Call) -> Value:
    """Inputs: output shape, w (O,kh,kw,C), x (N,H,W,C), bias."""
    shape = c.raw(0).const
    size = [None, None] if shape is None else [int(d) for d in shape.ravel()[1:3]]
    strides = c.opt("stride_h"), c.opt("stride_w")
    y = _dynamic.transposed(c, strides, size) if _dynamic.takes(c, 2) else None
    if y is None:
        w = c.weight(1, (3, 0, 1, 2))
        y = _nhwc.conv_transpose(c.emit, c.x(2), w, c.bias(3, 2, 1), strides, c.padding, size)
    return _nhwc.to_last(c.emit, c.activation(y))


@builtin("AVERAGE_POOL_2D", "MAX_POOL_2D", "L2_POOL_2D")
def pool_2d(c: Call) -> Value:
    op = {"A": "AveragePool", "M": "MaxPool", "L": "L2Pool"}[c.op.code[0]]
    y = _nhwc.pool(
        c.emit,
        op,
        c.x(),
        (c.opt("filter_h"), c.opt("filter_w")),
        (c.opt("stride_h"), c.opt("stride_w")),
        c.padding,
    )
    return _nhwc.to_last(c.emit, c.activation(y))


@builtin("FULLY_CONNECTED")
def fully_connected(c: Call) -> Value:
    """x (…,I), w (O,I): rows of x unless the dimensions are kept."""
    if c.opt("weights_format"):
        raise ModelFormatError(
            tr("tflite: {source}: shuffled weights are not supported", source=c.emit.source)
        )
    units = c.tensor(1).shape
    if len(units) != 2:
        raise ModelFormatError(
            tr(
                "tflite: {source}: weight {units} is not a matrix",
                source=c.emit.source,
                units=list(units),
            )
        )
    if _dynamic.takes(c):
        return _dynamic_dense(c, units[1])
    bias, x = c.bias(2), c.raw(0)
    leading = c.emit.dims(x)[:-1] if _keeps_axes(c, x) else None
    known = leading is not None and [isinstance(d, int) for d in leading].count(False) <= 1
    if leading and (bias is None or not known):
        y = c.emit("MatMul", c.x(), c.weight(1, (1, 0)))
        return c.activation(y if bias is None else c.emit("Add", y, bias))
    rows = x
    if c.emit.rank(x) != 2 or x.shape is None or x.shape[1] != units[1]:
        rows = c.emit.reshape(x, [-1, units[1]])
    if rows is x:
        rows = c.x()
    elif c.tensors.is_quantised(c.index(0)):
        rows.quant = c.tensors.params(c.index(0))
        rows = c.tensors.dequantise(rows, rows.quant)
    y = c.activation(c.emit("Gemm", rows, c.weight(1, (0, 1)), bias, transB=1))
    if leading is None:
        return y
    return c.emit.reshape(y, [*(d if isinstance(d, int) else -1 for d in leading), units[0]])


def _keeps_axes(c: Call, x: Value) -> bool:
    """The answer is more, or less, than rows."""
    return bool(c.opt("keep_num_dims")) and c.emit.rank(x) not in (0, 2)


def _dynamic_dense(c: Call, depth: int) -> Value:
    x = c.x(0)
    if not _keeps_axes(c, x) and (c.emit.rank(x) != 2 or c.emit.dims(x)[1] != depth):
        x = c.emit.reshape(x, [-1, depth])
    return c.activation(_dynamic.dense(c, x))


@builtin("SOFTMAX")
def softmax(c: Call) -> Value:
    x, beta = c.x(), c.opt("beta")
    if beta not in (0.0, 1.0):
        x = c.emit("Mul", x, _tf_ops.scalar(c.emit, x, beta))
    return c.emit("Softmax", x, axis=-1)


@builtin("LOG_SOFTMAX")
def log_softmax(c: Call) -> Value:
    return c.emit("LogSoftmax", c.x(), axis=-1)


@builtin("RELU6")
def relu6(c: Call) -> Value:
    return _tf_ops.clip(c.emit, c.x(), 0, 6)


@builtin("RELU_N1_TO_1")
def relu_n1_to_1(c: Call) -> Value:
    return _tf_ops.clip(c.emit, c.x(), -1, 1)


@builtin("RELU_0_TO_1")
def relu_0_to_1(c: Call) -> Value:
    return _tf_ops.clip(c.emit, c.x(), 0, 1)


@builtin("LEAKY_RELU")
def leaky_relu(c: Call) -> Value:
    return c.emit("LeakyRelu", c.x(), alpha=c.opt("alpha"))


@builtin("PRELU")
def prelu(c: Call) -> Value:
    return c.emit("PRelu", c.x(0), c.x(1))


@builtin("GELU")
def gelu(c: Call) -> Value:
    return c.emit("Gelu", c.x(), approximate="tanh" if c.opt("approximate") else "none")


@builtin("L2_NORMALIZATION")
def l2_normalization(c: Call) -> Value:
    return c.activation(_tf_ops.l2_normalise(c.emit, c.x(), -1, 1e-6))


@builtin("LOCAL_RESPONSE_NORMALIZATION")
def local_response_normalization(c: Call) -> Value:
    return _nhwc.local_response(
        c.emit, c.x(), c.opt("radius"), c.opt("bias"), c.opt("alpha"), c.opt("beta")
    )


@builtin("RESIZE_BILINEAR")
def resize_bilinear(c: Call) -> Value:
    return _nhwc.resize(
        c.emit, c.x(), c.raw(1), "linear", c.opt("align_corners"), c.opt("half_pixel")
    )


@builtin("RESIZE_NEAREST_NEIGHBOR", moves=True)
def resize_nearest(c: Call) -> Value:
    x = c.x()
    # Kernels take bytes and floats; a float holds 16 bits.
    wide = c.emit.cast(x, DType.F32) if x.dtype is DType.I16 else x
    y = _nhwc.resize(c.emit, wide, c.raw(1), "nearest", c.opt("align_corners"), c.opt("half_pixel"))
    return c.emit.cast(y, DType.I16) if wide is not x else y


@builtin("SPACE_TO_DEPTH", moves=True)
def space_to_depth(c: Call) -> Value:
    return _nhwc.space_to_depth(c.emit, c.x(), c.opt("block"))


@builtin("DEPTH_TO_SPACE", moves=True)
def depth_to_space(c: Call) -> Value:
    return _nhwc.depth_to_space(c.emit, c.x(), c.opt("block"))


@builtin("BATCH_MATMUL")
def batch_matmul(c: Call) -> Value:
    return _tf_ops.batch_matmul(c.emit, c.x(0), c.x(1), c.opt("adj_x"), c.opt("adj_y"))


@builtin("EMBEDDING_LOOKUP")
def embedding_lookup(c: Call) -> Value:
    return c.emit("Gather", c.x(1), c.emit.cast(c.raw(0), DType.I64), axis=0)


@builtin("NON_MAX_SUPPRESSION_V4", "NON_MAX_SUPPRESSION_V5")
def non_max_suppression(c: Call) -> Result:
    """boxes, scores, limit, overlap, least score (and the width of soft suppression)."""
    soft = c.op.code.endswith("V5")
    sigma = c.raw(5).const if soft else None
    if soft and (sigma is None or sigma.any()):
        raise UnsupportedOperatorError(
            tr("soft non-maximum suppression is not supported"),
            (c.emit.source,),
            where=c.emit.source,
            fix=tr("use hard non-maximum suppression"),
        )
    kept, best, count = padded_suppression(c.emit, c.x(0), c.x(1), c.raw(2), c.x(3), c.x(4))
    return [kept, best, count] if soft else [kept, count]
