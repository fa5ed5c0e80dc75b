"""ConvTranspose: each input position adds its kernel to the output."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, Node, TypeInfo
from ._conditions import all_of, constant, rank, within_frames
from ._conv_window import WINDOW
from ._core import define_op
from ._helpers import AUTO_PADS, check_word, float_kernels, product, symbol_product, wide
from ._records import Cost
from ._samples import Draw, Sample
from .activation import FUSED, apply_activation

#: The window of a transposed convolution.
TRANSPOSED_WINDOW: dict[str, Any] = {**WINDOW, "output_padding": [], "output_shape": []}
conv_transpose = define_op(
    "ConvTranspose",
    weights={1: 1},
    integer_form="conv_transpose",
    quantized="weights",
    inputs="x w b?",
    attrs={**TRANSPOSED_WINDOW, **FUSED},
    layout="channels_last",
    source="ONNX ConvTranspose-22; activation is ours",
)


def transposed_window(
    dims: tuple[Dim, ...], kernel: list[int], attrs: dict[str, Any]
) -> dict[str, list[Any]]:
    """strides, dilations, pads [begin…, end…] and output sizes with the defaults resolved.

    out = (in − 1)·stride + output_padding + (k − 1)·dilation + 1 − begin − end.
    """
    n = len(dims) - 2
    strides = list(attrs["strides"]) or [1] * n
    dilations = list(attrs["dilations"]) or [1] * n
    extra = list(attrs["output_padding"]) or [0] * n
    pads = list(attrs["pads"]) or [0] * (2 * n)
    if not len(strides) == len(dilations) == len(extra) == len(kernel) == n or len(pads) != 2 * n:
        raise ShapeError(
            tr(
                "kernel {kernel}, strides {strides}, pads {pads} or dilations do not "
                "fit {number} spatial axes",
                number=n,
                kernel=kernel,
                strides=strides,
                pads=pads,
            )
        )
    sizes = dims[2:]
    full = [
        (d - 1) * s + e + (k - 1) * f + 1 if isinstance(d, int) else None
        for d, s, e, k, f in zip(sizes, strides, extra, kernel, dilations)
    ]
    wanted: list[Any] = list(attrs["output_shape"])[-n:] if attrs["output_shape"] else []
    check_word("auto_pad", attrs["auto_pad"], *AUTO_PADS)
    same = attrs["auto_pad"] in ("SAME_UPPER", "SAME_LOWER")
    if not wanted and same:
        wanted = [d * s if isinstance(d, int) else None for d, s in zip(sizes, strides)]
    if wanted:
        for i, (f, w) in enumerate(zip(full, wanted)):
            if f is None or w is None:
                continue
            total = max(0, f - w)
            small, large = total // 2, total - total // 2
            upper = attrs["auto_pad"] == "SAME_UPPER"
            pads[i], pads[n + i] = (small, large) if upper else (large, small)
        return {"strides": strides, "dilations": dilations, "pads": pads, "out": wanted}
    if attrs["auto_pad"] == "VALID":
        pads = [0] * (2 * n)
    out: list[Dim] = [None if f is None else f - pads[i] - pads[n + i] for i, f in enumerate(full)]
    if any(isinstance(o, int) and o < 1 for o in out):
        raise ShapeError(tr("with pads {pads} the output is empty", pads=pads))
    for i, (d, s) in enumerate(zip(sizes, strides)):
        more = extra[i] + (kernel[i] - 1) * dilations[i] + 1 - s - pads[i] - pads[n + i]
        if isinstance(d, str) and more == 0:
            out[i] = symbol_product(d, s)
    return {"strides": strides, "dilations": dilations, "pads": pads, "out": out}


@conv_transpose.infer
def _(x: TypeInfo, w: TypeInfo, b: TypeInfo | None, **attrs: Any) -> TypeInfo:
    if x.rank < 3 or x.rank != w.rank:
        raise ShapeError(
            tr(
                "input and weight must have the same rank of at least 3, found {rank} "
                "and {weight_rank}",
                rank=x.rank,
                weight_rank=w.rank,
            )
        )
    if isinstance(x.dims[1], int) and isinstance(w.dims[0], int) and x.dims[1] != w.dims[0]:
        raise ShapeError(
            tr(
                "the input has {channels} channels, but the weight takes {taken}",
                channels=x.dims[1],
                taken=w.dims[0],
            )
        )
    channels = w.dims[1] * attrs["group"] if isinstance(w.dims[1], int) else None
    if any(not isinstance(d, int) for d in w.dims[2:]):
        return x.with_shape((x.dims[0], channels, *[None] * (x.rank - 2)))
    kernel = [int(d) for d in w.dims[2:]]  # type: ignore[arg-type]
    window = transposed_window(x.dims, kernel, attrs)
    return x.with_shape((x.dims[0], channels, *window["out"]))


@conv_transpose.reference
def _(x: np.ndarray, w: np.ndarray, b: np.ndarray | None, **attrs: Any) -> np.ndarray:
    """x (N,C,*S), w (C,O/g,*K), b (O,) → (N,O,*S'): a matrix product and a strided add per tap"""
    n, group = x.ndim - 2, attrs["group"]
    kernel = list(w.shape[2:])
    window = transposed_window(x.shape, kernel, attrs)
    strides, dilations, pads, out = (window[k] for k in ("strides", "dilations", "pads", "out"))
    batch, per_group = x.shape[0], w.shape[0] // group
    # room for every tap; the pads are cut off afterwards, missing cells at the end stay 0
    room = [
        max((s - 1) * t + (k - 1) * d + 1, o + pads[i])
        for i, (s, t, k, d, o) in enumerate(zip(x.shape[2:], strides, kernel, dilations, out))
    ]
    xs = wide(x).reshape(batch, group, per_group, -1)
    ws = wide(w).reshape(group, per_group, w.shape[1], *kernel)
    y = np.zeros((batch, group * w.shape[1], *room), xs.dtype)
    for tap in np.ndindex(*kernel):
        part = np.matmul(ws[(slice(None),) * 3 + tap].transpose(0, 2, 1), xs)
        at = tuple(
            slice(t * d, t * d + (s - 1) * st + 1, st)
            for t, d, s, st in zip(tap, dilations, x.shape[2:], strides)
        )
        y[(slice(None), slice(None), *at)] += part.reshape(batch, -1, *x.shape[2:])
    y = y[(slice(None), slice(None), *(slice(pads[i], pads[i] + out[i]) for i in range(n)))]
    if b is not None:
        y = y + b.reshape(1, -1, *[1] * n)
    return apply_activation(attrs["activation"], attrs["activation_params"], y).astype(x.dtype)


@conv_transpose.cost
def _(x: TypeInfo, w: TypeInfo, b: TypeInfo | None, **attrs: Any) -> Cost:
    return Cost(macs=x.size * product(w.dims[1:]))


def depth_ends(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """Of a volume: no frame is added behind the last one."""
    x, extra = types[0], node.attrs.get("output_padding") or [0]
    ends = x is None or x.rank < 5 or (extra[0] == 0 and not node.attrs.get("output_shape"))
    return ends or tr("its window spans depth")


def stride_limit(node: Node, types: list[TypeInfo | None]) -> bool | str:
    return math.prod(node.attrs.get("strides") or [1]) <= 4096 or tr(
        "strides whose product exceeds 4096"
    )


_frames = all_of(within_frames, depth_ends, constant(1, 2), stride_limit)
float_kernels(
    conv_transpose,
    "deconv2d",
    accepts_pitch=True,
    accepts_halo=True,
    when=_frames,
    why=tr("one stride-1 GEMM over taps per remainder of the stride"),
)
conv_transpose.kernel(
    "cpu",
    "bf16_deconv2d",
    dtype="f32,bf16",
    mixed="x residual",
    accepts_pitch=True,
    accepts_halo=True,
    when=_frames,
    rank=-1,
    why=tr("bf16 products (AMX, AVX512-BF16), elsewhere float32"),
    precision="bf16",
)
conv_transpose.kernel(
    "cpu",
    "f32_deconv2d_bf16x2",
    accepts_pitch=True,
    accepts_halo=True,
    when=_frames,
    rank=9,
    why=tr(
        "as requested: each float is split into two bf16 values for matrix units (AMX), "
        "which keep 16 of its 24 bits"
    ),
)
conv_transpose.kernel(
    "opencl", "deconv2d", dtype="f32,f16", when=all_of(rank(4), constant(1, 2)),
    why=tr("a convolution per remainder of the stride, or each output gathers its inputs"),
)  # fmt: skip


@conv_transpose.samples
def _(draw: Draw) -> Iterator[Sample]:
    for c, o, k, s, p in ((5, 3, 2, 2, 0), (16, 17, 3, 2, 1), (33, 16, 3, 1, 1), (3, 5, 4, 2, 1)):
        x, w = draw(1, c, 4, 5), draw.weights(c, o, k, k)
        attrs = {"strides": [s, s], "pads": [p] * 4}
        yield Sample([x, w, draw.f32(o)], {**attrs, "activation": "Relu"}, constant=(1, 2))
        yield Sample([x, w], attrs, constant=(1,))
    x, w = draw(2, 4, 4, 3), draw.weights(4, 2, 3, 3)
    yield Sample([x, w], {"group": 2, "strides": [2, 2], "output_padding": [1, 1]}, constant=(1,))
    volume, w = draw(2, 5, 3, 4, 5), draw.weights(5, 7, 1, 3, 3)
    frames: dict[str, Any] = {"strides": [1, 2, 2], "pads": [0, 1, 1, 0, 0, 1]}
    yield Sample([volume, w, draw.f32(7)], frames, constant=(1, 2))
