"""Pooling: windows, global, adaptive."""

from __future__ import annotations

from typing import Any

from lite_messages import tr

from ....ir import Value
from ..registry import Call, translates
from .conv import channels_first, channels_last, is_channels_last, window_pads


@translates("pool2d", "pool3d", "max_pool2d_with_index", "max_pool3d_with_index", "lp_pool2d")
def _(op: Call) -> None:
    x = op.need("X")
    n = 3 if "3d" in op.type else 2
    last = is_channels_last(op)
    if last:
        x = channels_first(op, x)
    average = op.attr("pooling_type", "max") == "avg"
    if op.type.startswith("max_pool"):
        average = False
    kernel = op.ints("ksize", [1] * n)
    kernel = kernel * n if len(kernel) == 1 else kernel
    if op.flag("global_pooling") or (op.flag("adaptive") and all(k == 1 for k in kernel)):
        y = op.node("GlobalAveragePool" if average else "GlobalMaxPool", [x])
    elif op.flag("adaptive"):
        y = adaptive_pool(op, x, kernel, average)
    else:
        y = _window(op, x, kernel, average)
    if op.out_name("Mask") is not None and op.scope.is_read(op.out_name("Mask") or ""):
        raise op.unsupported(tr("the indices of max pooling are used; they are not supported"))
    op.set("Out", channels_last(op, y) if last else y)


def _window(op: Call, x: Value, kernel: list[int], average: bool) -> Value:
    n = len(kernel)
    attrs = {
        "kernel_shape": kernel,
        "strides": op.ints("strides", [1] * n),
        "ceil_mode": int(op.flag("ceil_mode")),
        **_fitting(x, kernel, window_pads(op, n)),
    }
    if not average:
        return op.node("MaxPool", [x], **attrs)
    # `exclusive` leaves the padding out of the divisor.
    include = int(not op.flag("exclusive", True))
    return op.node("AveragePool", [x], count_include_pad=include, **attrs)


def _fitting(x: Value, kernel: list[int], pads: dict[str, Any]) -> dict[str, Any]:
    """A window larger than its padded input still gives one cell in Paddle: pad up to it."""
    n = len(kernel)
    if "pads" not in pads or x.shape is None or len(x.shape) != n + 2:
        return pads
    amounts = list(pads["pads"])
    for i, size in enumerate(x.shape[2:]):
        if isinstance(size, int):
            amounts[n + i] += max(0, kernel[i] - size - amounts[i] - amounts[n + i])
    return {"pads": amounts}


def adaptive_pool(op: Call, x: Value, size: list[int], average: bool) -> Value:
    """Output cell i covers ⌊i·L/O⌋ … ⌈(i+1)·L/O⌉: a plain window where O divides L."""
    dims = x.shape[2:] if x.shape is not None else ()
    fits = len(dims) == len(size) and all(
        isinstance(d, int) and o > 0 and d % o == 0 for d, o in zip(dims, size)
    )
    if not fits:
        return op.node("AdaptivePool", [x], output_size=size, mode="avg" if average else "max")
    kernel = [int(d) // o for d, o in zip(dims, size)]  # type: ignore[arg-type]
    if all(k == 1 for k in kernel):
        return x
    return op.node(
        "AveragePool" if average else "MaxPool", [x], kernel_shape=kernel, strides=kernel
    )
