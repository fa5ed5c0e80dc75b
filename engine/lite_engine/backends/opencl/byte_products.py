"""Products of few rows with weights of 8 bits (`lite quantize --weights-only int8`), which the
device keeps and reads as they are: such a layer takes as long as its weights need from memory."""

from __future__ import annotations

from .launch import Launch
from .options import join, storage_option, vectors, widest
from .problem import Convolution
from .profile import DeviceProfile
from .variants import IN_BYTES

#: The way's name among those of a layer.
WAY = str(IN_BYTES)
#: Most rows (pixels of all images): each weight is multiplied so often, and beyond it the
#: arithmetic decides. Phones compute more for each byte that their memory gives.
_MOST_ROWS, _MOST_ROWS_OF_PHONES = 7, 16
#: Most rows that are made with each weight read.
_ROWS = 8
#: Most work-items of a group that makes one output.
_ITEMS = 64


def ways(problem: Convolution, profile: DeviceProfile) -> tuple[str, ...]:
    """The way through bytes, where a layer has one and is bound by memory."""
    phone = profile.device_class in ("mali", "adreno")
    few = problem.sizes[0] <= (_MOST_ROWS_OF_PHONES if phone else _MOST_ROWS)
    suits = few and problem.pointwise and problem.dense and problem.groups == 1
    return (WAY,) if suits and problem.weights is not None else ()


def product(problem: Convolution, profile: DeviceProfile) -> list[Launch]:
    """A layer that has the way."""
    weights, x, y, m = problem.weights, problem.x, problem.y, problem.sizes[0]
    assert weights is not None
    count, depth = weights.taps.shape
    blocks = -(-m // _ROWS)
    v = widest(profile, x.dtype)
    while v > 1 and v > depth:
        v = v // 2 if v > 4 else 1
    options = [
        storage_option(y.dtype), problem.act.rest, vectors(profile, v, aligned=depth % v == 0),
        f"#define ROWS {-(-m // blocks)}", "#define FAST_FMA" if profile.fast_fma else "",
    ]  # fmt: skip
    args: list[object] = [
        x, weights.taps, weights.scales, problem.bias, problem.residual or y, y, m, count, depth,
        *problem.ending,
    ]  # fmt: skip
    if not profile.local_tiles:
        return [Launch("byte_weights", "byte_rows", args, (count, blocks), join(*options))]
    items = 1
    while items < _ITEMS and items * v < depth:
        items *= 2
    text = join(*options, f"#define ITEMS {items}")
    grid = (count * items, blocks)
    return [Launch("byte_weights", "byte_groups", args, grid, text, (items, 1))]


def shape_key(problem: Convolution) -> str:
    """Names a layer with such weights among measured ones, beside those of floats."""
    return f"{WAY}_" if problem.weights is not None else ""
