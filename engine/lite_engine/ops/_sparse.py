"""When weights have so many zeros that skipping them is faster than multiplying them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from lite_messages import tr

from ..ir import Node, TypeInfo
from ._conditions import Condition
from ._helpers import product

#: Smaller weights are not looked at.
MIN_ELEMS = 1024
#: Share of weights that are not 0 below which sparse kernels execute fewer instructions than dense
#: ones on every instruction set that they are built for (`python -m benchmarks.sparse`).
MAX_DENSITY = 0.3
#: The same up to which they can be the faster ones on some machine: `lite tune` measures them.
MEASURED_DENSITY = 0.5
#: Share of weights that are not 0, and the rank of a sparse kernel of floats up to it: before the
#: dense ones, or behind them.
SPARSE_FORMS = ((MAX_DENSITY, -1), (MEASURED_DENSITY, 9))
SKIPS_ZEROS = tr("most weights are 0, and only the others are multiplied")
MULTIPLIES_ZEROS = tr("every weight is multiplied, though most are 0")
#: Share of words of WORD inputs of an output, which one instruction multiplies, up to which
#: integers have a sparse form. Whether it is taken, the kernel decides on the machine that runs.
MAX_WORDS = 0.5
WORD = 4
#: Rows that a weight must meet: each one that is not 0 is multiplied with vectors of rows.
MIN_ROWS = 16


def density(weight: np.ndarray) -> float:
    """Share of elements that are not 0; 1 for an empty array."""
    return float(np.count_nonzero(weight)) / weight.size if weight.size else 1.0


def word_density(rows: np.ndarray) -> float:
    """Share of the words of (outputs, inputs) that are not all 0."""
    padded = np.pad(rows != 0, ((0, 0), (0, -rows.shape[1] % WORD)))
    return density(np.asarray(padded.reshape(len(rows), -1, WORD).any(axis=2)))


def share_of_zeros(arrays: Iterable[np.ndarray]) -> float:
    """Share of the float elements that are 0, to three digits."""
    floats = [a for a in arrays if a.dtype.kind == "f"]
    total = sum(a.size for a in floats)
    return round(1 - sum(int(np.count_nonzero(a)) for a in floats) / total, 3) if total else 0.0


def sparse_and_dense(kernels: Sequence[str]) -> tuple[str, str] | None:
    """Of the kernels that can run a layer, best first, those that skip its zeros and that do not;
    None where there is no choice."""
    sparse = next((k for k in kernels if k.endswith("_sparse")), None)
    plain = [k for k in kernels if not k.endswith("_sparse")]
    # where another kernel chooses while it is loaded, the dense one has a name of its own
    dense = next((k for k in plain if k.endswith("_dense")), next(iter(plain), None))
    return (sparse, dense) if sparse and dense else None


def mostly_zeros(index: int, most: float = MAX_DENSITY) -> Condition:
    """Of the constant input `index` at most this share is not 0, and it meets enough rows."""

    def check(node: Node, types: list[TypeInfo | None]) -> bool | str:
        info = types[index] if index < len(types) else None
        if info is None or not info.is_const or info.size < MIN_ELEMS or info.const is None:
            return tr("its weight is small or not constant")
        y = node.output.type
        if not y.is_static or not y.rank:
            return tr("its size is not known")
        columns = info.const.shape[0] if node.op == "Conv" else product(y.dims[-1:])
        rows = product(y.dims) // max(columns, 1)
        if rows < MIN_ROWS:
            return tr("it has fewer than {rows} rows", rows=MIN_ROWS)
        share = density(info.const)
        return share <= most or tr("{percent:.0f} % of its weights are not 0", percent=100 * share)

    return check


def words_of_zeros(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """An integer product whose weights have few words that are not 0, and meet enough rows."""
    w, zero = types[3], types[5]
    if w is None or not w.is_const or w.size < MIN_ELEMS or w.const is None:
        return tr("its weight is small or not constant")
    if zero is not None and (zero.const is None or zero.const.any()):
        return tr("its weights have a zero point")
    y = node.output.type
    if not y.is_static or not y.rank:
        return tr("its size is not known")
    by_output = node.op == "QLinearConv" or bool(node.attrs.get("transB", 0))
    rows = w.const.reshape(w.const.shape[0], -1) if by_output else w.const.T
    if product(y.dims) < MIN_ROWS * len(rows):
        return tr("it has fewer than {rows} rows", rows=MIN_ROWS)
    share = word_density(rows)
    return share <= MAX_WORDS or tr(
        "{percent:.0f} % of the words of {word} weights are not 0", percent=100 * share, word=WORD
    )


def pointwise(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """A 1x1 convolution of stride 1 with one group."""
    w = types[1 if node.op == "Conv" else 3]
    plain = w is not None and w.rank is not None and is_pointwise(w.dims, node.attrs)
    return plain or tr("not a 1x1 convolution of stride 1")


def is_pointwise(weight: Sequence[int | str | None], attrs: Mapping[str, Any]) -> bool:
    """A 1x1 convolution of stride 1 with one group and no padding, by its weight's shape."""
    return (
        len(weight) == 4 and tuple(weight[2:]) == (1, 1) and attrs.get("group", 1) == 1
        and not any(attrs.get("pads") or [0]) and set(attrs.get("strides") or [1]) == {1}
    )  # fmt: skip
