"""Physical layouts as permutations: physical axis i holds logical axis layout[i]."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..errors import ShapeError
from ..ops import OpDef
from .model import Layout, row_major


def physical_dims(shape: Sequence[int], layout: Layout) -> tuple[int, ...]:
    """Logical shape → dims in memory order."""
    return tuple(shape[axis] for axis in layout)


def same_bytes(shape: Sequence[int], a: Layout, b: Layout) -> bool:
    """Whether two layouts of one shape put every element at the same place.

    Axes of size 1 do not matter: (N,C,1,1) is the same in row-major and channels-last.
    """
    return [x for x in a if shape[x] != 1] == [x for x in b if shape[x] != 1]


def transposed(layout: Layout, perm: Sequence[int]) -> Layout:
    """Layout of Transpose's output over the same bytes: output axis j is input axis perm[j]."""
    return tuple(list(perm).index(axis) for axis in layout)


def without_axes(layout: Layout, axes: Sequence[int]) -> Layout:
    """Layout after logical `axes` are removed (a reduction without keepdims)."""
    kept = [axis for axis in sorted(layout) if axis not in axes]
    return tuple(kept.index(axis) for axis in layout if axis not in axes)


def unsqueezed(layout: Layout, axes: Sequence[int]) -> Layout:
    """Layout after logical `axes` of size 1 are inserted: the old order, new axes outermost."""
    rank = len(layout) + len(axes)
    new_index = [axis for axis in range(rank) if axis not in axes]
    return (*sorted(axes), *(new_index[axis] for axis in layout))


def remap_attrs(op: OpDef, attrs: dict[str, Any], layout: Layout) -> dict[str, Any]:
    """Axis numbers and per-axis lists of the operator, from logical to physical axes."""
    rank = len(layout)
    if layout == row_major(rank):
        return attrs
    out = dict(attrs)
    for key in op.axis_attrs:
        value = out.get(key)
        if isinstance(value, int):
            out[key] = layout.index(value % rank)
        elif value is not None:
            out[key] = [layout.index(int(axis) % rank) for axis in value]
    for key in op.per_axis_attrs:
        value = out.get(key)
        if value is None or len(value) == 0:
            continue
        if len(value) not in (rank, 2 * rank):
            raise ShapeError(f"{op.name}: {key} has {len(value)} entries for rank {rank}")
        half = [value[i : i + rank] for i in range(0, len(value), rank)]
        out[key] = [part[axis] for part in half for axis in layout]
    return out
