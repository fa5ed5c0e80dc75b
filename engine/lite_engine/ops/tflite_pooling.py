"""MediaPipe's pooling with positions: MaxPoolingWithArgmax2D and MaxUnpooling2D, on (N,H,W,C)."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from ._core import REQUIRED, define_op
from ._helpers import window_output, window_pads
from ._records import Cost

_ATTRS = {"kernel_shape": REQUIRED, "strides": REQUIRED, "padding": "VALID"}

pool_with_argmax = define_op(
    "MaxPoolingWithArgmax2D", inputs="x", outputs="y positions", attrs=_ATTRS,
    source="MediaPipe, custom TFLite operator",
)  # fmt: skip


def _pads(size: list[int], kernel: list[int], strides: list[int], padding: str) -> list[int]:
    auto = "SAME_UPPER" if padding == "SAME" else "VALID"
    return window_pads(size, kernel, strides, [], [1, 1], auto)


@pool_with_argmax.infer
def _(x: TypeInfo, *, kernel_shape: list[int], strides: list[int], padding: str) -> list[TypeInfo]:
    if x.rank != 4:
        raise ShapeError(tr("expected an input of shape (N,H,W,C)"))
    sizes = [d if isinstance(d, int) else 1 for d in x.dims[1:3]]
    pads = _pads(sizes, kernel_shape, strides, padding)
    out = [
        window_output(x.dims[1 + i], kernel_shape[i], strides[i], pads[i] + pads[2 + i], 1)
        for i in range(2)
    ]
    y = x.with_shape((x.dims[0], *out, x.dims[3]))
    return [y, y]


@pool_with_argmax.cost
def _(x: TypeInfo, **_: object) -> Cost:
    return Cost(flops=2 * x.size)


@pool_with_argmax.reference
def _(
    x: np.ndarray, *, kernel_shape: list[int], strides: list[int], padding: str
) -> tuple[np.ndarray, np.ndarray]:
    """Maximum of each window and where it lies inside it, ky·kw + kx, as f32; the first of
    equals."""
    pads = _pads(list(x.shape[1:3]), kernel_shape, strides, padding)
    padded = np.pad(
        x, [(0, 0), (pads[0], pads[2]), (pads[1], pads[3]), (0, 0)], constant_values=-np.inf
    )
    views = np.lib.stride_tricks.sliding_window_view(padded, kernel_shape, (1, 2))
    views = views[:, :: strides[0], :: strides[1]]
    flat = views.reshape(*views.shape[:4], -1)
    at = flat.argmax(-1)
    return np.take_along_axis(flat, at[..., None], -1)[..., 0], at.astype(np.float32)


unpool = define_op(
    "MaxUnpooling2D", inputs="x positions", attrs=_ATTRS, source="MediaPipe, custom TFLite operator"
)


@unpool.infer
def _(
    x: TypeInfo, positions: TypeInfo, *, kernel_shape: list[int], strides: list[int], padding: str
) -> TypeInfo:
    if x.rank != 4:
        raise ShapeError(tr("expected an input of shape (N,H,W,C)"))
    spatial = [d * k if isinstance(d, int) else None for d, k in zip(x.dims[1:3], kernel_shape)]
    return x.with_shape((x.dims[0], *spatial, x.dims[3]))


@unpool.cost
def _(x: TypeInfo, positions: TypeInfo, **_: object) -> Cost:
    return Cost(flops=x.size)


@unpool.reference
def _(
    x: np.ndarray,
    positions: np.ndarray,
    *,
    kernel_shape: list[int],
    strides: list[int],
    padding: str,
) -> np.ndarray:
    """Each element at its position inside its window of (N,H·kh,W·kw,C); zeros elsewhere."""
    batch, height, width, channels = x.shape
    size = [height * kernel_shape[0], width * kernel_shape[1]]
    out = np.zeros((batch, *size, channels), x.dtype)
    offset = [
        max(0, (n - 1) * s + k - total) // 2
        for n, s, k, total in zip((height, width), strides, kernel_shape, size)
    ]
    ky, kx = np.divmod(positions.astype(np.int64), kernel_shape[1])
    n, y, xx, c = (np.asarray(i) for i in np.indices(x.shape))
    rows, cols = y * strides[0] - offset[0] + ky, xx * strides[1] - offset[1] + kx
    inside = (rows >= 0) & (rows < size[0]) & (cols >= 0) & (cols < size[1])
    out[n[inside], rows[inside], cols[inside], c[inside]] = x[inside]
    return out
