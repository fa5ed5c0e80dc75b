"""Convolutions, pooling, normalisation, resizing, activations and detection of TensorFlow."""

from __future__ import annotations

from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...ir import DType, Value
from .. import _nhwc
from .. import _tf_ops as tf
from .. import _tf_pieces as pieces
from .._suppression import non_max_suppression as suppress
from ._translate import Call, Result, op


@op("Conv2D")
def conv_2d(c: Call) -> Value:
    """w (kh,kw,C/g,O)."""
    x, w = c.spatial(), c.emit.transpose(c.x(1), (3, 2, 0, 1))
    channels, per_group = c.emit.axes(x, 4)[-1], c.emit.axes(w, 4)[1]
    group = channels // per_group if channels and per_group else 1
    y = _nhwc.conv(c.emit, x, w, None, c.window("strides"), c.padding, c.window("dilations"),
                   group, c.explicit_pads)  # fmt: skip
    return c.from_first(y)


@op("DepthwiseConv2dNative")
def depthwise_conv_2d(c: Call) -> Value:
    """w (kh,kw,C,M): output channel c·M + m."""
    x = c.spatial()
    kh, kw, channels, times = (d or 0 for d in c.emit.axes(c.x(1), 4))
    w = c.emit.reshape_weight(c.x(1), (kh, kw, 1, channels * times))
    y = _nhwc.conv(
        c.emit,
        x,
        c.emit.transpose(w, (3, 2, 0, 1)),
        None,
        c.window("strides"),
        c.padding,
        c.window("dilations"),
        channels,
        c.explicit_pads,
    )
    return c.from_first(y)


@op("Conv3D")
def conv_3d(c: Call) -> Value:
    w = c.emit.transpose(c.x(1), (4, 3, 0, 1, 2))
    y = _nhwc.conv(c.emit, c.spatial(), w, None, c.window("strides"), c.padding,
                   c.window("dilations"))  # fmt: skip
    return c.from_first(y)


@op("Conv2DBackpropInput", "Conv3DBackpropInputV2")
def conv_transpose(c: Call) -> Value:
    """Inputs: output shape, w (*K,O,C), x; the transposed convolution of decoders."""
    x = c.spatial(2)
    n = c.emit.rank(x) - 2
    w = c.emit.transpose(c.x(1), (n + 1, n, *range(n)))
    shape = c.x(0).const
    size: list[int | None] = [None] * n
    if shape is not None:
        flat = [int(d) for d in shape.ravel()]
        size = list(flat[1 : n + 1] if c.is_channels_last else flat[2:])
        if len(flat) == n:
            size = list(flat)
    y = _nhwc.conv_transpose(c.emit, x, w, None, c.window("strides"), c.padding, size)
    return c.from_first(y)


@op("BiasAdd", "BiasAddV1")
def bias_add(c: Call) -> Value:
    x, b = c.x(0), c.x(1)
    if not c.is_channels_last:
        b = c.emit.reshape(b, [-1, *[1] * (c.emit.rank(x) - 2)])
    return c.emit("Add", x, b)


@op("MaxPool", "AvgPool", "MaxPool3D", "AvgPool3D", "MaxPoolV2")
def pool(c: Call) -> Value:
    kind = "MaxPool" if c.node.op.startswith("Max") else "AveragePool"
    if c.node.op == "MaxPoolV2":
        kernel, strides = c.ints(1, "ksize")[1:3], c.ints(2, "strides")[1:3]
    else:
        kernel, strides = c.window("ksize"), c.window("strides")
    y = _nhwc.pool(c.emit, kind, c.spatial(), kernel, strides, c.padding, c.explicit_pads)
    return c.from_first(y)


@op("FusedBatchNorm", "FusedBatchNormV2", "FusedBatchNormV3")
def batch_norm(c: Call) -> Value:
    """Inputs: x, scale, offset, mean, variance."""
    if c.attrs.flag("is_training", True) or c.emit.dims(c.x(3)) == [0]:
        raise UnsupportedOperatorError(
            tr("batch normalization in training mode"),
            (c.name,),
            where=c.name,
            fix=tr("this is a training graph, export it for inference (is_training=False)"),
        )
    y = c.emit(
        "BatchNormalization",
        _nhwc.to_first(c.emit, c.spatial()),
        c.x(1),
        c.x(2),
        c.x(3),
        c.x(4),
        epsilon=c.attrs.float("epsilon", 1e-4),
    )
    return c.from_first(y)


@op("LRN")
def lrn(c: Call) -> Value:
    return _nhwc.local_response(
        c.emit,
        c.x(),
        c.attrs.number("depth_radius", 5),
        c.attrs.float("bias", 1.0),
        c.attrs.float("alpha", 1.0),
        c.attrs.float("beta", 0.5),
    )


@op("Relu6")
def relu6(c: Call) -> Value:
    return tf.clip(c.emit, c.x(), 0, 6)


@op("LeakyRelu")
def leaky_relu(c: Call) -> Value:
    return c.emit("LeakyRelu", c.x(), alpha=c.attrs.float("alpha", 0.2))


@op("Selu")
def selu(c: Call) -> Value:
    return c.emit("Selu", c.x())


@op("ClipByValue")
def clip_by_value(c: Call) -> Value:
    return c.emit("Clip", c.x(0), c.x(1), c.x(2))


@op("Softmax")
def softmax(c: Call) -> Value:
    return c.emit("Softmax", c.x(), axis=-1)


@op("LogSoftmax")
def log_softmax(c: Call) -> Value:
    return c.emit("LogSoftmax", c.x(), axis=-1)


@op("ResizeBilinear", "ResizeNearestNeighbor", "ResizeBicubic")
def resize(c: Call) -> Value:
    mode = {"ResizeBilinear": "linear", "ResizeNearestNeighbor": "nearest"}.get(c.node.op, "cubic")
    x = c.x()
    if mode != "nearest":
        x = c.emit.cast(x, DType.F32)
    return _nhwc.resize(
        c.emit, x, c.x(1), mode, c.attrs.flag("align_corners"), c.attrs.flag("half_pixel_centers")
    )


@op("DepthToSpace")
def depth_to_space(c: Call) -> Value:
    y = _nhwc.depth_to_space(c.emit, c.spatial(), c.attrs.number("block_size", 1))
    return y if c.is_channels_last else _nhwc.to_first(c.emit, y)


@op("SpaceToDepth")
def space_to_depth(c: Call) -> Value:
    y = _nhwc.space_to_depth(c.emit, c.spatial(), c.attrs.number("block_size", 1))
    return y if c.is_channels_last else _nhwc.to_first(c.emit, y)


@op("SpaceToBatchND")
def space_to_batch(c: Call) -> Value:
    return pieces.space_to_batch(c.emit, c.x(), c.ints(1, tr("the block")), c.x(2))


@op("BatchToSpaceND")
def batch_to_space(c: Call) -> Value:
    return pieces.batch_to_space(c.emit, c.x(), c.ints(1, tr("the block")), c.x(2))


@op("MatMul")
def matmul(c: Call) -> Value:
    return tf.batch_matmul(
        c.emit, c.x(0), c.x(1), c.attrs.flag("transpose_a"), c.attrs.flag("transpose_b")
    )


@op("BatchMatMul", "BatchMatMulV2", "BatchMatMulV3")
def batch_matmul(c: Call) -> Value:
    return tf.batch_matmul(c.emit, c.x(0), c.x(1), c.attrs.flag("adj_x"), c.attrs.flag("adj_y"))


@op("Einsum")
def einsum(c: Call) -> Value:
    return c.emit("Einsum", *c.xs(), equation=c.attrs.text("equation"))


# ---- detection


@op("NonMaxSuppressionV3", "NonMaxSuppressionV2", "NonMaxSuppression")
def non_max_suppression(c: Call) -> Value:
    """boxes (P,4), scores (P,) → positions of what is kept."""
    return suppress(c.emit, *_nms_inputs(c))


@op("NonMaxSuppressionV4")
def non_max_suppression_count(c: Call) -> Result:
    """The same with the number of positions."""
    if c.attrs.flag("pad_to_max_output_size"):
        raise UnsupportedOperatorError(
            tr("padded non-maximum suppression is not supported"),
            (c.name,),
            where=c.name,
            fix=tr("export without padding"),
        )
    kept = suppress(c.emit, *_nms_inputs(c))
    count = c.emit.cast(c.emit("Size", kept), DType.I32)
    return [kept, count]


def _nms_inputs(c: Call) -> tuple[Value, Value, Value, Value | float, Value | float]:
    if c.node.op == "NonMaxSuppression":
        return c.x(0), c.x(1), c.x(2), c.attrs.float("iou_threshold", 0.5), -3e38
    low = c.x(4) if len(c.refs) > 4 else -3e38
    return c.x(0), c.x(1), c.x(2), c.x(3), low


@op("CropAndResize")
def crop_and_resize(c: Call) -> Value:
    """image (N,H,W,C), boxes (B,4) as y0,x0,y1,x1, box index (B,), crop size (2,)."""
    return c.emit(
        "CropAndResize",
        c.x(0),
        c.x(1),
        c.x(2),
        c.x(3),
        method=c.attrs.text("method", "bilinear"),
        extrapolation_value=c.attrs.float("extrapolation_value"),
    )


# ---- audio


@op("DecodeWav")
def decode_wav(c: Call) -> Result:
    return c.emit.outputs(
        "DecodeWav",
        [c.x()],
        2,
        desired_channels=c.attrs.number("desired_channels", -1),
        desired_samples=c.attrs.number("desired_samples", -1),
    )


@op("AudioSpectrogram")
def audio_spectrogram(c: Call) -> Value:
    return c.emit(
        "AudioSpectrogram",
        c.x(),
        window_size=c.attrs.number("window_size"),
        stride=c.attrs.number("stride"),
        magnitude_squared=c.attrs.flag("magnitude_squared"),
    )


@op("Mfcc")
def mfcc(c: Call) -> Value:
    return c.emit(
        "Mfcc",
        c.x(0),
        c.x(1),
        upper_frequency_limit=c.attrs.float("upper_frequency_limit", 4000.0),
        lower_frequency_limit=c.attrs.float("lower_frequency_limit", 20.0),
        filterbank_channel_count=c.attrs.number("filterbank_channel_count", 40),
        dct_coefficient_count=c.attrs.number("dct_coefficient_count", 13),
    )
