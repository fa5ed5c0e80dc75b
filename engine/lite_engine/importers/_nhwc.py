"""Spatial operators of channels-last formats (TensorFlow, TFLite) as ONNX's channels-first ones.

Every function takes and gives channels-last values, (N,H,W,C) or (N,D,H,W,C), and puts Transposes
around what it emits; neighbours cancel at once, `passes/layout_sink_transposes` moves the rest.
Weights come in ONNX order: (O,I/g,*K) for convolutions, (I,O/g,*K) for transposed ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ModelFormatError
from ..ir import DType, Value
from ..ops.resize import nearest_places
from ._emit import Emitter


def channels_first(rank: int) -> list[int]:
    """(N,*S,C) → (N,C,*S)."""
    return [0, rank - 1, *range(1, rank - 1)]


def channels_last(rank: int) -> list[int]:
    """(N,C,*S) → (N,*S,C)."""
    return [0, *range(2, rank), 1]


def to_first(emit: Emitter, x: Value) -> Value:
    return emit.transpose(x, channels_first(emit.rank(x)))


def to_last(emit: Emitter, x: Value) -> Value:
    return emit.transpose(x, channels_last(emit.rank(x)))


def window(
    emit: Emitter,
    x: Value,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int] = (),
    explicit: Sequence[int] = (),
) -> dict[str, Any]:
    """Attributes of a sliding window over x (N,C,*S).

    SAME pads become numbers where the sizes are known and `auto_pad` where they are not.
    `explicit` is [begin, end] per spatial axis, for padding "EXPLICIT".
    """
    if min([*strides, *dilations, *kernel, 1]) < 1:
        raise ModelFormatError(
            tr(
                "window sizes, strides and dilations must be at least 1, found window "
                "{kernel}, strides {strides}, dilations {dilations}",
                kernel=list(kernel),
                strides=list(strides),
                dilations=list(dilations),
            ),
            where=emit.source,
            fix=tr("all must be 1 or more"),
        )
    attrs: dict[str, Any] = {"strides": list(strides)}
    if any(d != 1 for d in dilations):
        attrs["dilations"] = list(dilations)
    sizes = emit.dims(x)[2:]
    if len(sizes) != len(kernel):
        raise ModelFormatError(
            tr(
                "the window {kernel} does not have the rank of the input {type}",
                kernel=list(kernel),
                type=x.type,
            ),
            where=emit.source,
        )
    if padding == "EXPLICIT":
        attrs["pads"] = [*explicit[0::2], *explicit[1::2]]
    elif padding == "SAME":
        pads = [
            same_pads(size, k, s, d) if size is not None else None
            for size, k, s, d in zip(sizes, kernel, strides, dilations or [1] * len(kernel))
        ]
        known = [p for p in pads if p is not None]
        if len(known) < len(pads):
            attrs["auto_pad"] = "SAME_UPPER"
        elif any(any(p) for p in known):
            attrs["pads"] = [p[0] for p in known] + [p[1] for p in known]
    elif padding != "VALID":
        raise ModelFormatError(
            tr("padding {padding!r} is not SAME, VALID or EXPLICIT", padding=padding),
            where=emit.source,
        )
    return attrs


def same_pads(size: int, kernel: int, stride: int, dilation: int) -> tuple[int, int]:
    """TensorFlow's SAME: ⌈size / stride⌉ outputs, the odd element of padding at the end."""
    total = max(0, (-(-size // stride) - 1) * stride + (kernel - 1) * dilation + 1 - size)
    return total // 2, total - total // 2


def conv(
    emit: Emitter,
    x: Value,
    w: Value,
    bias: Value | None,
    strides: Sequence[int],
    padding: str,
    dilations: Sequence[int],
    group: int = 1,
    explicit: Sequence[int] = (),
) -> Value:
    """x (N,*S,C), w (O,C/g,*K) → (N,O,*S'): the answer is channels-first, for what is fused."""
    first = to_first(emit, x)
    kernel = [d or 0 for d in emit.dims(w)[2:]]
    attrs = window(emit, first, kernel, strides, padding, dilations, explicit)
    return emit("Conv", first, w, bias, kernel_shape=kernel, group=group, **attrs)


def conv_transpose(
    emit: Emitter,
    x: Value,
    w: Value,
    bias: Value | None,
    strides: Sequence[int],
    padding: str,
    size: Sequence[int | None],
) -> Value:
    """x (N,*S,C), w (C,O,*K) → (N,O,*size), channels-first.

    `size` is the wanted spatial size, None where the file leaves it to the padding rule.
    """
    first = to_first(emit, x)
    kernel = [d or 0 for d in emit.dims(w)[2:]]
    begins, ends, extra = [], [], []
    for have, want, k, s in zip(emit.dims(first)[2:], size, kernel, strides):
        if have is None and want is not None:  # what a convolution makes of the wanted size
            have = -(-(want if padding == "SAME" else want - k + 1) // s)
        if have is None or want is None:  # the rule's own size: in·stride, plus k − s if VALID
            surplus = k - s if padding == "SAME" else min(0, k - s)
        else:
            surplus = (have - 1) * s + k - want
        total = max(0, surplus)
        begins.append(total // 2)
        ends.append(total - total // 2)
        extra.append(max(0, -surplus))
    attrs: dict[str, Any] = {"strides": list(strides), "kernel_shape": kernel}
    if any(begins + ends):
        attrs["pads"] = begins + ends
    if any(extra):
        attrs["output_padding"] = extra
    return emit("ConvTranspose", first, w, bias, **attrs)


def pool(
    emit: Emitter,
    op: str,
    x: Value,
    kernel: Sequence[int],
    strides: Sequence[int],
    padding: str,
    explicit: Sequence[int] = (),
) -> Value:
    """AveragePool (padding not counted), MaxPool or L2 pooling; channels-first answer."""
    first = to_first(emit, x)
    attrs = window(emit, first, kernel, strides, padding, explicit=explicit)
    if op == "L2Pool":
        squares = emit("AveragePool", emit("Mul", first, first), kernel_shape=list(kernel), **attrs)
        return emit("Sqrt", squares)
    return emit(op, first, kernel_shape=list(kernel), **attrs)


def resize(
    emit: Emitter, x: Value, size: Value, mode: str, align_corners: bool, half_pixel: bool
) -> Value:
    """x (N,H,W,C) to size (2,) [H', W']; mode "linear", "nearest" or "cubic".

    TensorFlow's nearest neighbour takes ⌊(i + ½)·scale⌋ with half-pixel centres, rounds half up
    with aligned corners, and ⌊i·scale⌋ otherwise.
    """
    first = to_first(emit, x)
    dims = emit.dims(first)
    attrs: dict[str, Any] = {"mode": mode}
    if align_corners:
        attrs["coordinate_transformation_mode"] = "align_corners"
    else:
        attrs["coordinate_transformation_mode"] = "half_pixel" if half_pixel else "asymmetric"
    if mode == "nearest":
        attrs["nearest_mode"] = "round_prefer_ceil" if align_corners or half_pixel else "floor"
        places = _other_places(first, size, align_corners, half_pixel, attrs)
        if places is not None:
            rows = emit("Gather", first, places[0], axis=2)
            return to_last(emit, emit("Gather", rows, places[1], axis=3))
    if mode == "cubic":
        attrs["cubic_coeff_a"] = -0.5 if half_pixel else -0.75
        attrs["exclude_outside"] = int(half_pixel)
    lead = emit("Shape", first, start=0, end=2) if None in dims[:2] else emit.const(dims[:2])
    sizes = emit("Concat", lead, emit.cast(size, DType.I64), axis=0)
    return to_last(emit, emit("Resize", first, None, None, sizes, **attrs))


def _other_places(
    x: Value, size: Value, align_corners: bool, half_pixel: bool, attrs: dict[str, Any]
) -> list[np.ndarray] | None:
    """TensorFlow's rows and columns of x (N,C,H,W), i·scale in float32, where ONNX's i/scale falls
    on the other side of a whole number."""
    if size.const is None or x.shape is None:
        return None
    wanted, alike = [], True
    for n_in, n_out in zip(x.shape[2:], size.const.ravel().tolist(), strict=True):
        if not isinstance(n_in, int) or n_in < 1 or n_out < 1:
            return None
        apart = align_corners and n_out > 1
        scale = np.float32(n_in - apart) / np.float32(n_out - apart)
        at = (np.arange(n_out, dtype=np.float32) + np.float32(0.5 * half_pixel)) * scale
        whole = np.floor(at + np.float32(0.5)) if align_corners else np.floor(at)
        wanted.append(np.minimum(whole, n_in - 1).astype(np.int64))
        mode = attrs["coordinate_transformation_mode"]
        ours = nearest_places(n_in, n_out, n_out / n_in, mode, attrs["nearest_mode"])
        alike = alike and bool((ours == wanted[-1]).all())
    return None if alike else wanted


def depth_to_space(emit: Emitter, x: Value, block: int) -> Value:
    first = to_first(emit, x)
    return to_last(emit, emit("DepthToSpace", first, blocksize=block, mode="DCR"))


def space_to_depth(emit: Emitter, x: Value, block: int) -> Value:
    return to_last(emit, emit("SpaceToDepth", to_first(emit, x), blocksize=block))


def local_response(
    emit: Emitter, x: Value, radius: int, bias: float, alpha: float, beta: float
) -> Value:
    """y = x / (bias + α·Σx²)^β over 2·radius + 1 channels."""
    size = 2 * radius + 1
    first = to_first(emit, x)
    return to_last(emit, emit("LRN", first, size=size, alpha=alpha * size, beta=beta, bias=bias))
