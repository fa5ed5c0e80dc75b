"""Sliding-window pooling and its global forms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, DType, Node, TypeInfo
from ._conditions import all_of, has_elements, within_frames
from ._core import REQUIRED, OpDef, define_op, get_op
from ._helpers import float_kernels, product, wide, window_output, window_pads
from ._records import Cost
from ._samples import Draw, Sample
from .reduce import OPENCL_MAXIMUM, OPENCL_MEAN

_WINDOW: dict[str, Any] = {
    "auto_pad": "NOTSET",
    "ceil_mode": 0,
    "dilations": [],
    "kernel_shape": REQUIRED,
    "pads": [],
    "strides": [],
}
#: The float kernels for CPUs take padded images, and some rows of one at a time.
_ROWS: dict[str, Any] = {"accepts_pitch": True, "accepts_halo": True, "by_rows": True}


class Window:
    """Resolved window of a pooling over the spatial axes of x (N,C,*S)."""

    def __init__(self, shape: tuple[Dim, ...], attrs: dict[str, Any]) -> None:
        n = len(shape) - 2
        self.kernel = list(attrs["kernel_shape"])
        self.strides = list(attrs["strides"]) or [1] * n
        self.dilations = list(attrs["dilations"]) or [1] * n
        if not len(self.kernel) == len(self.strides) == len(self.dilations) == n:
            raise ShapeError(
                tr(
                    "kernel {kernel}, strides {strides} or dilations do not fit {number} "
                    "spatial axes",
                    number=n,
                    kernel=self.kernel,
                    strides=self.strides,
                )
            )
        if min(*self.kernel, *self.strides, *self.dilations) < 1:
            raise ShapeError(
                tr(
                    "window sizes, strides and dilations must be at least 1, found "
                    "{kernel}, {strides} and {dilations}",
                    kernel=self.kernel,
                    strides=self.strides,
                    dilations=self.dilations,
                )
            )
        sizes = [d if isinstance(d, int) else 1 for d in shape[2:]]
        self.pads = window_pads(
            sizes, self.kernel, self.strides, attrs["pads"], self.dilations, attrs["auto_pad"]
        )
        if len(self.pads) != 2 * n:
            raise ShapeError(
                tr(
                    "expected two pads for each of {number} spatial axes, found {pads}",
                    pads=len(self.pads),
                    number=n,
                )
            )
        ceil = bool(attrs["ceil_mode"])
        self.out = [self._positions(shape[2 + i], i, ceil) for i in range(n)]

    def _positions(self, size: Dim, i: int, ceil: bool) -> Dim:
        """Output positions; with ceil the last window must still start inside the data."""
        n = len(self.kernel)
        begin, end = self.pads[i], self.pads[n + i]
        out = window_output(
            size, self.kernel[i], self.strides[i], begin + end, self.dilations[i], ceil=ceil
        )
        known = isinstance(out, int) and isinstance(size, int)
        if ceil and known and (out - 1) * self.strides[i] >= size + begin:  # type: ignore[operator]
            out -= 1  # type: ignore[operator]
        return out

    def padded(self, x: np.ndarray, value: Any) -> np.ndarray:
        """x with its pads, and as many more cells at the end as the last window needs."""
        widths = [(0, 0), (0, 0)]
        n = len(self.kernel)
        for i in range(n):
            reach = (
                (int(self.out[i] or 0) - 1) * self.strides[i]
                + (self.kernel[i] - 1) * self.dilations[i]
                + 1
            )
            end = max(self.pads[n + i], reach - x.shape[2 + i] - self.pads[i])
            widths.append((self.pads[i], end))
        return np.pad(x, widths, constant_values=value)

    def taps(self, padded: np.ndarray) -> Any:
        """One view of shape (N,C,*out) per window element, in row-major order."""
        for tap in np.ndindex(*self.kernel):
            window = tuple(
                slice(t * d, t * d + (int(o or 0) - 1) * s + 1, s)
                for t, d, o, s in zip(tap, self.dilations, self.out, self.strides)
            )
            yield tap, padded[(slice(None), slice(None), *window)]


def _pooled(x: TypeInfo, **attrs: Any) -> TypeInfo:
    if x.rank < 3:
        raise ShapeError(
            tr("expected batch, channels and spatial axes, found rank {rank}", rank=x.rank)
        )
    return x.with_shape((*x.dims[:2], *Window(x.dims, attrs).out))


def _window_cost(x: TypeInfo, **attrs: Any) -> Cost:
    window = Window(x.dims, attrs)
    return Cost(flops=product((*x.dims[:2], *window.out)) * math.prod(window.kernel))


def flat_pool(node: Node, types: list[TypeInfo | None]) -> bool | str:
    x = types[0]
    if x is None or x.rank not in (3, 4):
        return tr("only 1-D and 2-D pooling has this kernel")
    return len(node.outputs) == 1 or tr("its indices are an output")


def _frame_pool(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """flat_pool, also of the frames of a volume."""
    if types[0] is None or types[0].rank != 5:
        return flat_pool(node, types)
    ok = True if node.op.startswith("Global") else within_frames(node, types)
    return ok if ok is not True else len(node.outputs) == 1 or tr("its indices are an output")


frame_pool = all_of(_frame_pool, has_elements(0))

# ---- MaxPool and MaxUnpool

max_pool = define_op(
    "MaxPool",
    integer_form="keep", quantized="follows",
    inputs="x", outputs="y indices", attrs={**_WINDOW, "storage_order": 0},
    layout="channels_last", source="ONNX MaxPool-22",
)  # fmt: skip


@max_pool.infer
def _(x: TypeInfo, *, n_outputs: int, **attrs: Any) -> list[TypeInfo]:
    y = _pooled(x, **attrs)
    return [y, y.with_dtype(DType.I64)][:n_outputs]


@max_pool.reference
def _(x: np.ndarray, *, n_outputs: int, storage_order: int, **attrs: Any) -> Any:
    """y = max over the window; indices are flat positions in x (column-major if storage_order)"""
    window = Window(x.shape, attrs)
    low = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
    padded = window.padded(x, low)
    if n_outputs == 1:
        y = None
        for _, part in window.taps(padded):
            y = part.copy() if y is None else np.maximum(y, part, out=y)
        return y
    y = np.full((*x.shape[:2], *window.out), low, x.dtype)
    best = np.zeros(y.shape, np.int64)
    sizes, n = x.shape[2:], x.ndim - 2
    order = range(n) if storage_order else range(n - 1, -1, -1)
    strides, step = [0] * n, 1
    for i in order:
        strides[i], step = step, step * sizes[i]
    grids = np.indices([int(o or 0) for o in window.out])
    for tap, part in window.taps(padded):
        at = sum(
            (g * s + t * d - p) * stride
            for g, s, t, d, p, stride in zip(
                grids, window.strides, tap, window.dilations, window.pads, strides
            )
        )
        better = part > y
        y = np.where(better, part, y)
        best = np.where(better, at, best)
    planes = np.arange(x.shape[0] * x.shape[1]).reshape(*x.shape[:2], *[1] * n)
    return y, best + planes * math.prod(sizes)


max_pool.cost(lambda x, *, storage_order, **attrs: _window_cost(x, **attrs))
float_kernels(max_pool, "pool", when=frame_pool, **_ROWS)
max_pool.kernel(
    "cpu", "i8_pool", dtype="i8,u8", accepts_pitch=True, accepts_halo=True, when=frame_pool, rank=1
)
max_pool.kernel("opencl", "i8_pool", dtype="i8,u8", when=flat_pool, rank=1)

max_unpool = define_op(
    "MaxUnpool", inputs="x indices output_shape?",
    attrs={"kernel_shape": REQUIRED, "pads": [], "strides": []}, source="ONNX MaxUnpool-22",
)  # fmt: skip


def _unpooled(
    shape: tuple[Dim, ...], kernel: list[int], pads: list[int], strides: list[int]
) -> list[Dim]:
    n = len(shape) - 2
    strides, pads = strides or [1] * n, pads or [0] * (2 * n)
    return [
        *shape[:2],
        *[
            (d - 1) * strides[i] - pads[i] - pads[n + i] + kernel[i] if isinstance(d, int) else None
            for i, d in enumerate(shape[2:])
        ],
    ]


@max_unpool.infer
def _(
    x: TypeInfo,
    indices: TypeInfo,
    shape: TypeInfo | None,
    *,
    kernel_shape: list[int],
    pads: list[int],
    strides: list[int],
) -> TypeInfo:
    if shape is not None:
        known = shape.const
        return x.with_shape(tuple(int(v) for v in known) if known is not None else (None,) * x.rank)
    return x.with_shape(tuple(_unpooled(x.dims, kernel_shape, pads, strides)))


@max_unpool.reference
def _(
    x: np.ndarray,
    indices: np.ndarray,
    shape: np.ndarray | None,
    *,
    kernel_shape: list[int],
    pads: list[int],
    strides: list[int],
) -> np.ndarray:
    """Puts each x at its flat index of a zero tensor; indices refer to the inferred shape"""
    inferred = tuple(int(d or 0) for d in _unpooled(x.shape, kernel_shape, pads, strides))
    y = np.zeros(math.prod(inferred), x.dtype)
    y[indices.ravel()] = x.ravel()
    y = y.reshape(inferred)
    if shape is None:
        return y
    out = np.zeros(tuple(shape), x.dtype)
    out[tuple(slice(0, d) for d in inferred)] = y
    return out


# ---- AveragePool and LpPool

average_pool = define_op(
    "AveragePool",
    integer_form="simple", quantized="joins",
    inputs="x", attrs={**_WINDOW, "count_include_pad": 0}, layout="channels_last",
    source="ONNX AveragePool-22",
)  # fmt: skip


@average_pool.infer
def _(x: TypeInfo, *, count_include_pad: int, **attrs: Any) -> TypeInfo:
    return _pooled(x, **attrs)


@average_pool.reference
def _(x: np.ndarray, *, count_include_pad: int, **attrs: Any) -> np.ndarray:
    """y = Σ window / count; the count leaves pads out unless count_include_pad"""
    total, count = window_sums(wide(x), count_include_pad, attrs)
    return (total / count).astype(x.dtype)


def window_sums(
    x: np.ndarray, count_include_pad: int, attrs: dict[str, Any]
) -> tuple[np.ndarray, np.ndarray]:
    """Σ over each window of x (N,C,*S), and the number of cells to divide by, at least 1."""
    window = Window(x.shape, attrs)
    total = sum(part for _, part in window.taps(window.padded(x, 0)))
    ones = np.ones((1, 1, *x.shape[2:]), np.float32)
    if count_include_pad:
        n = len(window.kernel)
        widths = [(0, 0), (0, 0), *[(window.pads[i], window.pads[n + i]) for i in range(n)]]
        ones = np.pad(ones, widths, constant_values=1)
        # cells past the pads, which only ceil_mode reaches, never count
        extra = [(0, 0)] * 2 + [
            (0, max(0, a - b))
            for a, b in zip(window.padded(x[:1, :1], 0).shape[2:], ones.shape[2:])
        ]
        counted = np.pad(ones, extra)
    else:
        counted = window.padded(ones, 0)
    count = sum(part for _, part in window.taps(counted))
    return total, np.maximum(count, 1)


average_pool.cost(lambda x, *, count_include_pad, **attrs: _window_cost(x, **attrs))
float_kernels(average_pool, "pool", when=frame_pool, **_ROWS)

lp_pool = define_op(
    "LpPool", inputs="x", attrs={**_WINDOW, "p": 2}, layout="channels_last", source="ONNX LpPool-22"
)


@lp_pool.infer
def _(x: TypeInfo, *, p: int, **attrs: Any) -> TypeInfo:
    return _pooled(x, **attrs)


@lp_pool.reference
def _(x: np.ndarray, *, p: int, **attrs: Any) -> np.ndarray:
    """y = (Σ |x|^p)^(1/p)"""
    window = Window(x.shape, attrs)
    total = sum(np.abs(part) ** p for _, part in window.taps(window.padded(wide(x), 0)))
    return (total ** (1 / p)).astype(x.dtype)


# ---- global forms


def _global(
    name: str,
    fn: Callable[..., np.ndarray],
    *,
    native: bool = False,
    properties: Mapping[str, Any] = MappingProxyType({}),
    **attrs: Any,
) -> OpDef:
    op = define_op(
        name, inputs="x", attrs=attrs, layout="channels_last", source=f"ONNX {name}-22",
        **properties,
    )  # fmt: skip

    @op.infer
    def _(x: TypeInfo, **_: Any) -> TypeInfo:
        if x.rank < 2:
            raise ShapeError(tr("expected batch and channels, found rank {rank}", rank=x.rank))
        return x.with_shape((*x.dims[:2], *[1] * (x.rank - 2)))

    @op.reference
    def _(x: np.ndarray, **attrs: Any) -> np.ndarray:
        return fn(wide(x), tuple(range(2, x.ndim)), **attrs).astype(x.dtype)

    op.cost(lambda x, **_: Cost(flops=x.size))
    if native:
        float_kernels(op, "pool", when=frame_pool, **_ROWS)
    return op


_global(
    "GlobalAveragePool", lambda x, a: np.mean(x, axis=a, keepdims=True), native=True,
    properties={"integer_form": "simple", "quantized": "joins"},
)  # fmt: skip
_global(
    "GlobalMaxPool", lambda x, a: np.max(x, axis=a, keepdims=True), native=True,
    properties={"integer_form": "keep"},
)  # fmt: skip
_global(
    "GlobalLpPool", lambda x, a, p: np.sum(np.abs(x) ** p, axis=a, keepdims=True) ** (1 / p), p=2
)

for _name in ("MaxPool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool"):
    get_op(_name).kernel(
        "cpu", "bf16_pool", dtype="bf16", when=frame_pool, precision="bf16", **_ROWS,
    )  # fmt: skip
for _op in (max_pool, average_pool):
    _op.kernel("opencl", "pool", dtype="f32,f16", when=flat_pool)
for _name, _fold in (("GlobalAveragePool", OPENCL_MEAN), ("GlobalMaxPool", OPENCL_MAXIMUM)):
    get_op(_name).kernel("opencl", "reduce", dtype="f32,f16", code=_fold)
get_op("GlobalMaxPool").kernel("opencl", "i8_pool", dtype="i8,u8", when=flat_pool, rank=1)


def _window_samples(draw: Draw) -> Iterator[Sample]:
    for shape, attrs in (
        ((1, 3, 9, 11), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
        ((2, 17, 8, 8), {"kernel_shape": [2, 2], "strides": [2, 2]}),
        ((1, 70, 7, 7), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
        ((1, 5, 10, 9), {"kernel_shape": [3, 2], "pads": [0, 1, 2, 0], "strides": [2, 3]}),
        ((1, 16, 6), {"kernel_shape": [3], "strides": [1], "pads": [1, 1]}),
        ((1, 4, 9, 9), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
        ((1, 4, 13, 13), {"kernel_shape": [5, 5], "dilations": [2, 2], "pads": [4, 4, 4, 4]}),
        ((2, 5, 3, 7, 6), {"kernel_shape": [1, 3, 2], "strides": [1, 2, 2], "pads": [0, 1, 1] * 2}),
    ):  # fmt: skip
        x = draw.full(*shape) if draw.dtype.np.itemsize == 1 else draw(*shape)
        yield Sample([x], attrs)


max_pool.samples(_window_samples)


@average_pool.samples
def _(draw: Draw) -> Iterator[Sample]:
    for sample in _window_samples(draw):
        yield sample
        yield Sample(sample.inputs, {**sample.attrs, "count_include_pad": 1})
