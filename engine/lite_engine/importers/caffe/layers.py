"""Caffe's layers as ONNX-semantics nodes. A blob is (N,C,H,W); weights are Caffe's, which are
ONNX's: (O,C/g,kh,kw) for Convolution, (C,O/g,kh,kw) for Deconvolution."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import DType, Value
from ._prototxt import Block
from .call import Call, Result, layer

# ---- windows


def _pair(p: Block, stem: str, default: int) -> list[int]:
    """`kernel_size` (once or per axis), or `kernel_h` and `kernel_w`."""
    short = {"kernel_size": "kernel"}.get(stem, stem)
    if p.has(f"{short}_h") or p.has(f"{short}_w"):
        return [p.int(f"{short}_h", default), p.int(f"{short}_w", default)]
    values = p.ints(stem)
    if not values:
        return [default, default]
    return values if len(values) > 1 else values * 2


def _window(c: Call, p: Block) -> dict[str, list[int]]:
    kernel, strides = _pair(p, "kernel_size", 0), _pair(p, "stride", 1)
    pads, dilations = _pair(p, "pad", 0), _pair(p, "dilation", 1)
    n = len(kernel)
    if min(kernel) < 1 or min(strides) < 1 or min(pads) < 0 or min(dilations) < 1:
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: kernel sizes, strides and dilations must be "
                "at least 1, pads at least 0, found kernel {kernel}, stride {strides}, "
                "pad {pads}",
                layer=c.layer.name,
                kernel=kernel,
                strides=strides,
                pads=pads,
            )
        )
    if not n == len(strides) == len(pads) == len(dilations):
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: strides, pads and dilations must have a value"
                " for each of the {number} kernel sizes, found pads {pads}",
                layer=c.layer.name,
                number=n,
                pads=pads,
            )
        )
    attrs = {"kernel_shape": kernel, "strides": strides, "pads": pads * 2}
    if max(dilations) > 1:
        attrs["dilations"] = dilations
    return attrs


def _check_groups(c: Call, outputs: int, group: int, whole: int, parts: int) -> None:
    """`whole` must split into `parts`."""
    if outputs < 1 or group < 1 or whole % parts:
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: {outputs} outputs in {group} groups do not "
                "fit the weights",
                layer=c.layer.name,
                outputs=outputs,
                group=group,
            )
        )


@layer("Convolution", "ConvolutionDepthwise", "DepthwiseConvolution")
def convolution(c: Call) -> Value:
    p = c.param("convolution_param")
    attrs = _window(c, p)
    outputs = p.int("num_output", 0)
    group = p.int("group", 1) if c.layer.type == "Convolution" else outputs
    _check_groups(c, outputs, group, c.blob(0).size, outputs)
    w = c.weight(0, (outputs, -1, *attrs["kernel_shape"]))
    b = c.weight(1, (outputs,)) if p.flag("bias_term", True) else None
    return c.emit("Conv", c.x, w, b, group=group, **attrs)


@layer("Deconvolution")
def deconvolution(c: Call) -> Value:
    p = c.param("convolution_param")
    attrs = _window(c, p)
    outputs, group = p.int("num_output", 0), p.int("group", 1)
    _check_groups(c, outputs, group, outputs, group)
    w = c.weight(0, (-1, outputs // group, *attrs["kernel_shape"]))
    b = c.weight(1, (outputs,)) if p.flag("bias_term", True) else None
    return c.emit("ConvTranspose", c.x, w, b, group=group, **attrs)


@layer("Pooling")
def pooling(c: Call) -> Result:
    """Sizes round up unless round_mode says FLOOR; the average counts the padding."""
    p = c.param("pooling_param")
    kind = p.text("pool", "MAX")
    op = {"MAX": "MaxPool", "0": "MaxPool", "AVE": "AveragePool", "1": "AveragePool"}.get(kind)
    if op is None:
        raise UnsupportedOperatorError(
            tr("{kind} pooling is only for training", kind=kind.lower()),
            (c.layer.name,),
            where=c.layer.name,
        )
    if p.flag("global_pooling", False):
        return c.emit("GlobalMaxPool" if op == "MaxPool" else "GlobalAveragePool", c.x)
    attrs: dict[str, object] = dict(_window(c, p))
    ceil = p.text("round_mode", "CEIL") in ("CEIL", "0") and p.flag("ceil_mode", True)
    attrs["ceil_mode"] = int(ceil)
    if op == "AveragePool":
        attrs["count_include_pad"] = 1
    return c.emit(op, c.x, **attrs)


# ---- dense, normalisation


@layer("InnerProduct")
def inner_product(c: Call) -> Value:
    """y = x·Wᵀ + b over the axes from `axis` on."""
    p = c.param("inner_product_param")
    outputs, axis = p.int("num_output", 0), c.axis(p.int("axis", 1))
    if outputs < 1 or c.blob(0).size % outputs:
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: num_output is {outputs}, which does not fit the weights",
                layer=c.layer.name,
                outputs=outputs,
            )
        )
    transpose = p.flag("transpose", False)
    w = c.weight(0, (-1, outputs) if transpose else (outputs, -1))
    b = c.weight(1, (outputs,)) if p.flag("bias_term", True) else None
    if axis != 1:
        x = c.emit("Reshape", c.x, [0] * axis + [-1])
        y = c.emit("MatMul", x, c.emit.transpose(w, [0, 1] if transpose else [1, 0]))
        return y if b is None else c.emit("Add", y, b)
    x = c.emit("Flatten", c.x, axis=1) if c.rank() > 2 else c.x
    return c.emit("Gemm", x, w, b, transB=int(not transpose))


@layer("BatchNorm")
def batch_norm(c: Call) -> Value:
    """(x − mean) / √(var + ε); the weights are sums that a third one divides."""
    mean, var, counts = c.blob(0).ravel(), c.blob(1).ravel(), c.blob(2).ravel()
    if counts.size != 1:
        raise ModelFormatError(
            tr(
                "caffemodel: layer {layer} ({type}) divides its sums by {count} numbers, "
                "expected one",
                layer=c.layer.name,
                type=c.layer.type,
                count=counts.size,
            )
        )
    factor = np.float32(0 if counts[0] == 0 else 1 / float(counts[0]))
    size = len(mean)
    return c.emit(
        "BatchNormalization",
        c.x,
        np.ones(size, np.float32),
        np.zeros(size, np.float32),
        mean * factor,
        var * factor,
        epsilon=c.param("batch_norm_param").float("eps", 1e-5),
    )


def _along(c: Call, array: np.ndarray, axis: int) -> Value:
    """A weight whose axes start at `axis`, in broadcasting form."""
    rank, axis = c.rank(), c.axis(axis)
    shape = array.shape if array.ndim <= rank - axis else (array.size,)
    return c.emit.const(array.reshape((*shape, *[1] * (rank - axis - len(shape)))))


@layer("Scale")
def scale(c: Call) -> Value:
    """x·γ + β; γ is a weight or the second bottom."""
    p = c.param("scale_param")
    axis = p.int("axis", 1)
    if len(c.bottoms) > 1:
        factor, at = c.bottom(1), 0
        missing = c.rank() - c.axis(axis) - c.emit.rank(factor)
        if missing > 0:
            rank = c.emit.rank(factor)
            factor = c.emit("Unsqueeze", factor, list(range(rank, rank + missing)))
    else:
        factor, at = _along(c, c.blob(0), axis), 1
    y = c.emit("Mul", c.x, factor)
    return c.emit("Add", y, _along(c, c.blob(at), axis)) if p.flag("bias_term", False) else y


@layer("Bias")
def bias(c: Call) -> Value:
    axis = c.param("bias_param").int("axis", 1)
    return c.emit("Add", c.x, c.bottom(1) if len(c.bottoms) > 1 else _along(c, c.blob(0), axis))


@layer("LRN")
def lrn(c: Call) -> Value:
    """Across channels it is ONNX's; within a channel the mean of squares over a window."""
    p = c.param("lrn_param")
    size, alpha, beta = p.int("local_size", 5), p.float("alpha", 1.0), p.float("beta", 0.75)
    if p.text("norm_region", "ACROSS_CHANNELS") in ("ACROSS_CHANNELS", "0"):
        return c.emit("LRN", c.x, size=size, alpha=alpha, beta=beta, bias=p.float("k", 1.0))
    half = (size - 1) // 2
    mean = c.emit(
        "AveragePool",
        c.emit("Mul", c.x, c.x),
        kernel_shape=[size, size],
        strides=[1, 1],
        pads=[half] * 4,
        count_include_pad=1,
    )
    total = c.emit("Add", c.emit("Mul", mean, float(alpha)), 1.0)
    return c.emit("Mul", c.x, c.emit("Pow", total, -float(beta)))


@layer("MVN")
def mvn(c: Call) -> Value:
    p = c.param("mvn_param")
    axes = list(range(1 if p.flag("across_channels", False) else 2, c.rank()))
    y = c.emit("Sub", c.x, c.emit("ReduceMean", c.x, axes, keepdims=1))
    if not p.flag("normalize_variance", True):
        return y
    spread = c.emit("Sqrt", c.emit("ReduceMean", c.emit("Mul", y, y), axes, keepdims=1))
    return c.emit("Div", y, c.emit("Add", spread, p.float("eps", 1e-9)))


@layer("Normalize")
def normalize(c: Call) -> Value:
    """x / √(Σx² + ε), times one number or one per channel."""
    p = c.param("norm_param")
    axes = list(range(1, c.rank())) if p.flag("across_spatial", True) else [1]
    total = c.emit("ReduceSumSquare", c.x, axes, keepdims=1)
    y = c.emit("Div", c.x, c.emit("Sqrt", c.emit("Add", total, p.float("eps", 1e-10))))
    return c.emit("Mul", y, _along(c, c.blob(0).ravel(), 1))


# ---- several bottoms


@layer("Eltwise")
def eltwise(c: Call) -> Value:
    p = c.param("eltwise_param")
    kind, xs = p.text("operation", "SUM"), list(c.bottoms)
    coefficients = p.floats("coeff")
    if len(coefficients) not in (0, len(xs)):
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: expected a coefficient for each of {inputs} inputs, "
                "or none, found {coefficients}",
                layer=c.layer.name,
                inputs=len(xs),
                coefficients=len(coefficients),
            )
        )
    if kind in ("SUM", "1") and coefficients:
        xs = [x if k == 1 else c.emit("Mul", x, float(k)) for x, k in zip(xs, coefficients)]
    op = {"PROD": "Mul", "0": "Mul", "SUM": "Add", "1": "Add", "MAX": "Max", "2": "Max"}.get(kind)
    if op is None or not xs:
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: operation {kind} is not known, or has no inputs",
                layer=c.layer.name,
                kind=kind,
            )
        )
    y = xs[0]
    for x in xs[1:]:
        y = c.emit(op, y, x)
    return y


@layer("Concat")
def concat(c: Call) -> Value:
    p = c.param("concat_param")
    axis = p.int("axis", p.int("concat_dim", 1))
    return c.x if len(c.bottoms) == 1 else c.emit("Concat", *c.bottoms, axis=axis)


@layer("Crop")
def crop(c: Call) -> Value:
    """The first bottom cut to the size of the second, from `axis` on."""
    p = c.param("crop_param")
    axis, offsets = c.axis(p.int("axis", 2)), p.ints("offset") or [0]
    axes = list(range(axis, c.rank()))
    offsets = offsets * len(axes) if len(offsets) == 1 else offsets
    if len(offsets) != len(axes):
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: expected one offset, or one for each cropped "
                "axis, found {offsets}",
                layer=c.layer.name,
                offsets=len(offsets),
            )
        )
    size = c.emit("Gather", c.emit("Shape", c.bottom(1)), axes, axis=0)
    ends = c.emit("Add", size, offsets)
    return c.emit("Slice", c.x, offsets, ends, axes, [1] * len(axes))


# ---- reductions


@layer("Reduction")
def reduction(c: Call) -> Value:
    """The axes from `axis` on, times a factor."""
    p = c.param("reduction_param")
    kind = p.text("operation", "SUM")
    op = {"SUM": "ReduceSum", "1": "ReduceSum", "ASUM": "ReduceL1", "2": "ReduceL1",
          "SUMSQ": "ReduceSumSquare", "3": "ReduceSumSquare", "MEAN": "ReduceMean",
          "4": "ReduceMean"}.get(kind)  # fmt: skip
    if op is None:
        raise ModelFormatError(
            tr(
                "prototxt: layer {layer}: operation {kind} is not known, or has no inputs",
                layer=c.layer.name,
                kind=kind,
            )
        )
    axes = list(range(c.axis(p.int("axis", 0)), c.rank()))
    y, factor = c.emit(op, c.x, axes, keepdims=0), p.float("coeff", 1.0)
    return y if factor == 1 else c.emit("Mul", y, float(factor))


@layer("ArgMax")
def arg_max(c: Call) -> Value:
    """The top k along an axis (or of all but the batch), as float positions or values."""
    p = c.param("argmax_param")
    k, values = p.int("top_k", 1), p.flag("out_max_val", False)
    if p.has("axis"):
        best, at = c.emit.outputs("TopK", [c.x, c.emit.const([k])], 2, axis=p.int("axis", 1))
        return best if values else c.emit("Cast", at, to=DType.F32)
    flat = c.emit("Unsqueeze", c.emit("Flatten", c.x, axis=1), [1])
    best, at = c.emit.outputs("TopK", [flat, c.emit.const([k])], 2, axis=-1)
    where = c.emit("Cast", at, to=DType.F32)
    return c.emit("Concat", where, best, axis=1) if values else where
