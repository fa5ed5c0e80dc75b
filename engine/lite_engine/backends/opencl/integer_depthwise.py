"""Integer depthwise convolutions on GPUs: dot products along the rows of a window."""

from __future__ import annotations

import numpy as np

from .constants import Constant
from .integers import IntegerConvolution, word_of
from .launch import Launch
from .options import join
from .problem import DEPTHWISE_ITEMS
from .profile import DeviceProfile

#: Columns that an item makes, and rows where a GPU's units still get enough items.
_WIDE, _TALL = 4, 2
#: Largest window whose taps fit in registers.
_MOST_TAPS = 25


def centred(array: np.ndarray, zeros: np.ndarray) -> Constant | None:
    """Weights (O, …) less their zero points (O,) as signed bytes, where they fit."""
    weight = Constant.of(array)
    if weight.dtype.np.kind == "u":
        weight, zeros = weight.flipped(), zeros - 128
    if not zeros.any():
        return weight
    values = weight.value - zeros.reshape(-1, *[1] * (array.ndim - 1))
    if values.min() < -128 or values.max() > 127:
        return None
    return Constant.of(values.astype(np.int8))


def by_rows(problem: IntegerConvolution, profile: DeviceProfile) -> list[Launch] | None:
    """None where the kernel does not apply."""
    _, height, width, channels, out_h, out_w, _ = problem.sizes
    kh, kw, sh, sw, top, left, dh, dw = problem.window
    aligned = all(n % 4 == 0 for n in (channels, *problem.places))
    small = kh * kw <= _MOST_TAPS and max(kh, kw) <= 8 and max(sh, sw) <= 2 and dh == dw == 1
    weight = centred(problem.weight, problem.zeros) if aligned and small else None
    if weight is None:
        return None
    signed = profile.dot != "qcom"
    x_zero = problem.of_x.zero - (128 if signed else 0)
    more = -x_zero * weight.value.astype(np.int64).sum((1, 2))
    words = -(-(kw + (sw == 1)) // 4)
    # (C, 1, KH·KW) → (KH, words, C, 4)
    rows = weight.reshape(channels, kh, kw).padded(channels, kh, words * 4)
    packed = rows.reshape(channels, kh, words, 4).transpose(1, 2, 0, 3)
    ending, images = problem.ending, problem.images
    grid = (channels // 4, -(-out_w // _WIDE), images * out_h)
    tall = _TALL if grid[0] * grid[1] * grid[2] >= DEPTHWISE_ITEMS * profile.compute_units else 1
    flip = problem.of_x.flip ^ (128 if signed else 0)
    args = [
        problem.x, packed, ending.biases(channels, more), ending.scales(channels),
        problem.residual, problem.y, images, height, width, channels, out_h, out_w, top, left,
        *problem.places, word_of(flip), word_of(x_zero), *problem.finish,
    ]  # fmt: skip
    options = join(
        "#define V 4\n#define ALIGNED", f"#define DOT_{profile.dot.upper()}" if profile.dot else "",
        f"#define PX {_WIDE}\n#define PY {tall}\n#define KH {kh}\n#define KW {kw}",
        f"#define SH {sh}\n#define SW {sw}",
    )  # fmt: skip
    grid = (*grid[:2], images * -(-out_h // tall))
    return [Launch("i8_depthwise_rows", "depthwise_rows", args, grid, options)]
