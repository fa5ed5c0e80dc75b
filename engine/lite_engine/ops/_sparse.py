"""When weights have so many zeros that skipping them is faster than multiplying them."""

from __future__ import annotations

from collections.abc import Iterable

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
#: Rows that a weight must meet: each one that is not 0 is multiplied with vectors of rows.
MIN_ROWS = 16


def density(weight: np.ndarray) -> float:
    """Share of elements that are not 0; 1 for an empty array."""
    return float(np.count_nonzero(weight)) / weight.size if weight.size else 1.0


def share_of_zeros(arrays: Iterable[np.ndarray]) -> float:
    """Share of the float elements that are 0, to three digits."""
    floats = [a for a in arrays if a.dtype.kind == "f"]
    total = sum(a.size for a in floats)
    return round(1 - sum(int(np.count_nonzero(a)) for a in floats) / total, 3) if total else 0.0


def mostly_zeros(index: int) -> Condition:
    """The constant input `index` has few weights that are not 0, and meets enough rows."""

    def check(node: Node, types: list[TypeInfo | None]) -> bool | str:
        info = types[index] if index < len(types) else None
        if info is None or info.const is None or info.const.size < MIN_ELEMS:
            return tr("its weight is small or not constant")
        y = node.output.type
        if not y.is_static or not y.rank:
            return tr("its size is not known")
        columns = info.const.shape[0] if node.op == "Conv" else product(y.dims[-1:])
        rows = product(y.dims) // max(columns, 1)
        if rows < MIN_ROWS:
            return tr("it has fewer than {rows} rows", rows=MIN_ROWS)
        share = density(info.const)
        return share <= MAX_DENSITY or tr(
            "{percent:.0f} % of its weights are not 0", percent=100 * share
        )

    return check


def pointwise(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """A 1x1 convolution of stride 1 with one group."""
    w, attrs = types[1], node.attrs
    plain = (
        w is not None and w.rank == 4 and w.dims[2:] == (1, 1) and attrs.get("group", 1) == 1
        and not any(attrs.get("pads") or [0]) and set(attrs.get("strides") or [1]) == {1}
    )  # fmt: skip
    return plain or tr("not a 1x1 convolution of stride 1")
