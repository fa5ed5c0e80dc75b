"""Numbers of a layer that may repeat a size which its input has no longer.

A file does not say whether `x[:, :16]` of 16 rows means the first 16 or all, nor whether a window
of 7x7 on a map of 7x7 is the whole map. Such numbers stay, and are told.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from lite_messages import tr

from ..ir import Node, Shape, Value
from .moved_constants import resized_to

#: The axes of a value that changed → the size that each had.
Changed = Mapping[int, int]


def kept_numbers(node: Node, old: Mapping[int, Shape | None]) -> list[str]:
    """What a layer keeps that fits the sizes before: a sentence each."""
    x, find = node.input(0), _FINDS.get(node.op)
    before = None if x is None else old.get(id(x))
    if x is None or find is None or not before or x.shape is None or len(x.shape) != len(before):
        return []
    changed = {
        i: a for i, (a, b) in enumerate(zip(before, x.shape))
        if a != b and isinstance(a, int) and a > 1
    }  # fmt: skip
    return find(node, before, changed) if changed else []


def _integers(value: Value | None) -> list[int] | None:
    return None if value is None or value.const is None else value.const.ravel().tolist()


def _axes(node: Node, count: int, rank: int) -> list[int]:
    axes = _integers(node.input(3))
    return [a % rank for a in axes] if axes is not None else list(range(count))


def _slice(node: Node, before: Shape, changed: Changed) -> list[str]:
    starts, ends = _integers(node.input(1)), _integers(node.input(2))
    if starts is None or ends is None:
        return []
    found = []
    for axis, start, end in zip(_axes(node, len(starts), len(before)), starts, ends):
        size = changed.get(axis)
        if size is None:
            continue
        if end in (size, size - 1) and end > 1:
            found.append(tr("it ends at {n} of axis {axis}", n=end, axis=axis))
        if start == size - 1 and start > 0:
            found.append(tr("it starts at {n} of axis {axis}", n=start, axis=axis))
    return found


def _gather(node: Node, before: Shape, changed: Changed) -> list[str]:
    axis, indices = int(node.attrs.get("axis", 0)) % len(before), _integers(node.input(1))
    size = changed.get(axis)
    if size is None or not indices or size - 1 not in indices:
        return []
    return [tr("it reads index {n} of axis {axis}", n=size - 1, axis=axis)]


def _resize(node: Node, before: Shape, changed: Changed) -> list[str]:
    """Those that `moved_constants.follow_resize` leaves."""
    return [
        tr("it resizes axis {axis} to {n}", n=n, axis=axis)
        for axis, n in resized_to(node, len(before)) or ()
        if axis in changed
    ]


def _pool(node: Node, before: Shape, changed: Changed) -> list[str]:
    window: Sequence[int] = node.attrs.get("kernel_shape") or ()
    first = len(before) - len(window)
    whole = [n for i, n in enumerate(window) if changed.get(first + i) == n]
    return (
        [tr("its {n} window covered the whole map", n="x".join(map(str, window)))] if whole else []
    )


def _top(node: Node, before: Shape, changed: Changed) -> list[str]:
    k = _integers(node.input(1))
    size = changed.get(int(node.attrs.get("axis", -1)) % len(before))
    return [tr("it takes the first {n}", n=k[0])] if k and k[0] == size else []


_FINDS: dict[str, Callable[[Node, Shape, Changed], list[str]]] = {
    "AveragePool": _pool,
    "Gather": _gather,
    "LpPool": _pool,
    "MaxPool": _pool,
    "Resize": _resize,
    "Slice": _slice,
    "TopK": _top,
}
