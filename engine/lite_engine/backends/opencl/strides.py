"""Element strides: row-major, broadcast, and axes merged."""

from __future__ import annotations

from ...plan import PlanTensor


def strides_of(dims: tuple[int, ...]) -> list[int]:
    """Row-major element strides."""
    out, step = [], 1
    for d in reversed(dims):
        out.append(step)
        step *= d
    return out[::-1]


def collapsed(
    dims: tuple[int, ...], *strides: list[int], limit: int = 6
) -> tuple[list[int], list[list[int]]] | None:
    """Axes merged where every operand walks them as one, padded to `limit` axes in front.

    None when more than `limit` axes stay.
    """
    axes = [(d, [s[i] for s in strides]) for i, d in enumerate(dims) if d != 1]
    merged: list[tuple[int, list[int]]] = []
    for d, steps in axes:
        if merged and all(outer == inner * d for outer, inner in zip(merged[-1][1], steps)):
            merged[-1] = (merged[-1][0] * d, steps)
        else:
            merged.append((d, steps))
    if len(merged) > limit:
        return None
    pad = [(1, [0] * len(strides))] * (limit - len(merged))
    full = [*pad, *merged]
    return [d for d, _ in full], [[s[i] for _, s in full] for i in range(len(strides))]


def broadcast_strides(tensor: PlanTensor, dims: tuple[int, ...]) -> list[int]:
    """Element strides of an operand over the output's axes; 0 where it repeats."""
    padded = (1,) * (len(dims) - len(tensor.dims)) + tensor.dims
    return [0 if d == 1 else s for d, s in zip(padded, strides_of(padded))]
