"""The window of a convolution: its attributes and what they mean for an input and a weight."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import TypeInfo
from ._helpers import window_pads

#: The window of a convolution; what is empty has ONNX's default.
WINDOW: dict[str, Any] = {
    "auto_pad": "NOTSET",
    "dilations": [],
    "group": 1,
    "kernel_shape": [],
    "pads": [],
    "strides": [],
}


def conv_window(
    x: TypeInfo | np.ndarray, w: TypeInfo | np.ndarray, attrs: dict[str, Any]
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Kernel, strides, pads [begin…, end…] and dilations with the defaults resolved."""
    n = len(x.shape) - 2  # type: ignore[arg-type]
    kernel = [int(d) for d in w.shape[2:]]  # type: ignore[index, arg-type, union-attr]
    if attrs["kernel_shape"] and list(attrs["kernel_shape"]) != kernel:
        raise ShapeError(
            tr(
                "kernel_shape {attrs} differs from the weight's {kernel}",
                attrs=attrs["kernel_shape"],
                kernel=kernel,
            )
        )
    strides = list(attrs["strides"]) or [1] * n
    dilations = list(attrs["dilations"]) or [1] * n
    if not len(kernel) == len(strides) == len(dilations) == n:
        raise ShapeError(
            tr(
                "kernel {kernel}, strides {strides} or dilations do not fit {number} spatial axes",
                number=n,
                kernel=kernel,
                strides=strides,
            )
        )
    sizes = [d if isinstance(d, int) else 1 for d in x.shape[2:]]  # type: ignore[index]
    pads = window_pads(sizes, kernel, strides, attrs["pads"], dilations, attrs["auto_pad"])
    if len(pads) != 2 * n:
        raise ShapeError(
            tr(
                "expected two pads for each of {number} spatial axes, found {pads}",
                pads=len(pads),
                number=n,
            )
        )
    return kernel, strides, pads, dilations
