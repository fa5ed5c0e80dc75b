"""What the constant sizes of a Reshape become where sizes of its input change.

A Reshape keeps the order in memory. An axis that changes therefore lies in one axis of the output,
which changes with it, or across several. Which of several grows, the file does not say: T = 8 as
2·4 may be of chunks of 4, or of two halves. Equal numbers say nothing (13 cells, 13 numbers of each
anchor), only places do. A guess would scramble the data, so what is not certain is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from lite_messages import tr

from ..errors import LiteError, ShapeError
from ..ir import Dim, Graph, Node, Shape, Value, format_shape
from ..ops import infer_node
from ..ops._helpers import split_symbol
from .moving_size import MovingSize, Place

#: Stand for sizes that are open, each for one symbol: no product of numbers is one of them.
_PRIMES = (1_000_003, 1_000_033, 1_000_037, 1_000_039, 1_000_081, 1_000_099, 1_000_117)

#: Axes of the output that change → the axes of the input that lie in each.
Moved = dict[int, list[int]]


@dataclass(frozen=True)
class _Reshape:
    """A Reshape before and after its input changed; `sizes` is the constant that it has."""

    node: Node
    before: Shape
    now: Shape
    out: Shape
    sizes: list[int]

    @property
    def changed(self) -> list[int]:
        return [i for i, (a, b) in enumerate(zip(self.before, self.now)) if a != b]

    @property
    def copies(self) -> bool:
        return not self.node.attrs.get("allowzero")


def follow_reshape(
    graph: Graph, node: Node, old: Mapping[int, Shape | None], moving: MovingSize | None,
    batch: bool,
) -> bool:  # fmt: skip
    """Whether a Reshape got other sizes, before its types are inferred anew. A batch is checked
    with numbers afterwards: what is not certain stays as it is. Raises ShapeError for it else."""
    x, target, out = node.input(0), node.input(1), old.get(id(node.output))
    before = None if x is None else old.get(id(x))
    if x is None or not before or x.shape is None or len(x.shape) != len(before):
        return False
    if target is None or target.const is None or out is None:
        return False
    this = _Reshape(node, before, x.shape, out, target.const.ravel().tolist())
    place = moving.place(x) if moving else None
    if not this.changed and place is None:
        return False
    others = set() if batch else _changed_sizes(graph, old)
    try:
        if moving and place and (batch or place.inner > 1):
            moved = _of_the_size(this, moving, x, place, sure=not batch)
        else:
            moved = _by_place(this, others)
        wanted = None if moved is None else _with_moved(this, moved)
        if wanted is None and (moved or others.intersection(this.sizes)):
            raise _uncertain(this)
    except ShapeError:
        if not batch:
            raise
        return False
    if wanted is None or wanted == this.sizes:
        return False
    node.attrs.pop("allowzero", None)
    made = np.array(wanted, np.int64)
    node.set_input(1, Value(graph.unique(target.name), const=made))
    return True


def _uncertain(this: _Reshape) -> ShapeError:
    return ShapeError(
        tr("the sizes {sizes} do not say which of them grow where {before} becomes {now}",
           sizes=this.sizes, before=format_shape(this.before), now=format_shape(this.now))
    )  # fmt: skip


def _changed_sizes(graph: Graph, old: Mapping[int, Shape | None]) -> set[Dim]:
    """The sizes of axes that are others now, of all values before this layer."""
    values = [*graph.inputs, *(v for n in graph.nodes for v in n.outputs)]
    pairs = [(old.get(id(v)) or (), v.shape or ()) for v in values]
    return {a for was, now in pairs if len(was) == len(now) for a, b in zip(was, now) if a != b}


# ---- where axes lie


def _of_the_size(
    this: _Reshape, moving: MovingSize, x: Value, place: Place, sure: bool
) -> Moved | None:
    """By what is known of the one size that moves. Raises ShapeError if it has to be `sure`."""
    before, end, out, size = this.before, place.axis + 1, this.out, moving.before
    known = None not in out[:end]
    here = place.axis if known and out[:end] == before[:end] else None
    step, sizes = moving.step(x, place), _static(out)
    if step is None or sizes is None or 0 in sizes:
        return None if here is None else {here: [place.axis]}
    behind = [inside for inside, _ in _spans(sizes)]
    found = [
        i for i, inside in enumerate(behind)
        if step % inside == 0 and inside * sizes[i] % (step * size) == 0
    ]  # fmt: skip
    alone = [i for i in found if behind[i] == step and sizes[i] == size]
    was = _static(before)
    if sure and (
        was is None or len(alone or found) != 1
        or (size > 1 and here is None and _beside_ones(was, sizes, step, step * size, False))
    ):  # fmt: skip
        raise _uncertain(this)
    if alone:
        return {place.axis if place.axis in alone else alone[0]: [place.axis]}
    if here is not None or not found:
        return None if here is None else {here: [place.axis]}
    # Between two axes it is the end of the first (T, B, C → T·B, C) or the start of the second
    # (T, B, C → T, B·heads, C/heads): exporters write both in this way.
    return {found[0] if len(out) < len(before) else found[-1]: [place.axis]}


def _by_place(this: _Reshape, changed_sizes: set[Dim]) -> Moved | None:
    """By the places in memory; None where open sizes do not tell them. Raises ShapeError for an
    axis that could be in several places, unless the file itself says -1 for one of them, and none
    of the others has a size that changed."""
    known = _numbers(this.before, this.out)
    if known is None or any(this.before[i] is None for i in this.changed):
        return None
    before, out = known
    moved: Moved = {}
    units = 1 in changed_sizes or (out[:1] == [1] and this.sizes[0] == -1)
    for i in this.changed:
        at = _axis_of(before, out, i, units)
        at = _said(this, before, out, i, changed_sizes) if at is None else at
        if at is None:
            raise _uncertain(this)
        moved.setdefault(at, []).append(i)
    return moved


def _axis_of(before: Sequence[int], out: Sequence[int], i: int, units: bool) -> int | None:
    """The one axis of the output in which an axis of the input lies; None where that is not
    certain. `units` tells whether axes of 1 change as well, which may be parts of larger axes."""
    spans = _spans(out)
    low, high = _spans(before)[i]
    if before[i] == 1:
        had, has = len(_ones(before, low)), len(_ones(out, low))
        if i == 0:  # in front of everything
            return 0 if out and has <= had else None
        return i if had == has and out[: i + 1] == before[: i + 1] else None
    if out[: i + 1] == before[: i + 1]:  # nothing in front of it has moved: T, 2, 1, C → T, 1, 2·C
        return i
    if _beside_ones(before, out, low, high, units):
        return None
    for j, (inside, end) in enumerate(spans):
        if out[j] > 1 and low % inside == 0 and end % high == 0:
            return j
    return None


def _beside_ones(
    before: Sequence[int], out: Sequence[int], low: int, high: int, units: bool
) -> bool:
    """Whether the output has a new axis of 1 that could grow in the place of what changes: one
    window of the whole axis, (7,) → (1, 7), becomes (2, 7)."""
    whole = math.prod(before)
    ends = [end for _, end in [*_spans(out), (1, 1)]]
    new = {end for end in ends if len(_ones(out, end)) > len(_ones(before, end))}
    # In front of everything, it is the batch that was left out before.
    first = new == {whole} and not _ones(before, whole) and len(_ones(out, whole)) == 1
    return (high in new and (units or not first)) or low in new


def _said(
    this: _Reshape, before: Sequence[int], out: Sequence[int], i: int, changed_sizes: set[Dim]
) -> int | None:
    """The axis that the file gives "what is left", if an axis of the input may lie there."""
    low, high = _spans(before)[i]
    near = [
        j for j, (inside, end) in enumerate(_spans(out))
        if max(low, inside) < min(high, end) or (low == high and inside <= low <= end)
    ]  # fmt: skip
    at = [j for j in near if this.sizes[j] == -1]
    others = {out[j] for j in near if j not in at}
    return at[0] if at and not others & changed_sizes else None


def _spans(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Elements inside each axis, and of the axis as a whole."""
    return [(math.prod(sizes[i + 1 :]), math.prod(sizes[i:])) for i in range(len(sizes))]


def _ones(sizes: Sequence[int], at: int) -> list[int]:
    """The axes of 1 with so many elements inside."""
    return [i for i, (inside, end) in enumerate(_spans(sizes)) if inside == end == at]


def _numbers(before: Shape, out: Shape) -> tuple[list[int], list[int]] | None:
    """Both shapes with numbers for open sizes; None where they do not say enough."""
    stand: dict[object, int] = {}

    def number(dim: Dim, key: object) -> int:
        times, symbol = split_symbol(dim)
        if symbol == "":
            return times
        return times * stand.setdefault(symbol or key, _PRIMES[len(stand) % len(_PRIMES)])

    was = [number(d, i) for i, d in enumerate(before)]
    of_out = [None if d is None else number(d, None) for d in out]
    rest = math.prod(d for d in of_out if d is not None)
    if len(stand) > len(_PRIMES) or of_out.count(None) > 1 or not rest or 0 in was:
        return None
    left, over = divmod(math.prod(was), rest)
    made = [left if d is None else d for d in of_out]
    return (was, made) if not over and math.prod(made) == math.prod(was) else None


def _static(shape: Shape) -> tuple[int, ...] | None:
    return shape if all(isinstance(d, int) for d in shape) else None  # type: ignore[return-value]


# ---- the sizes that say so


def _with_moved(this: _Reshape, moved: Moved) -> list[int] | None:
    """Sizes by which these axes change and the others stay: 0, "as the input has it", and -1,
    "what is left", as far as they go; those of the layer, if it does so as it is. None if there
    are none."""
    new = {j: _new_size(this, j, axes) for j, axes in moved.items()}
    if _does(this, new):
        return this.sizes
    if 0 in this.out:
        return None
    sizes = [0 if j in moved else _kept(this, j) for j in range(len(this.out))]
    left = [j for j, axes in moved.items() if axes != [j] or this.out[j] != this.before[j]]
    for j in left:
        size = new[j]
        sizes[j] = size if isinstance(size, int) and (len(left) > 1 or -1 in sizes) else -1
    return sizes if sizes.count(-1) <= 1 else None


def _new_size(this: _Reshape, j: int, axes: list[int]) -> Dim:
    """The new size of an axis in which these axes lie; None if it has no number or name."""
    before, now, size = [this.before[i] for i in axes], [this.now[i] for i in axes], this.out[j]
    if len(axes) == 1 and size == before[0]:
        return now[0]
    was, new = _static(tuple(before)), _static(tuple(now))
    if was is None or new is None or not isinstance(size, int) or size % math.prod(was):
        return None
    return size // math.prod(was) * math.prod(new)


def _does(this: _Reshape, new: Mapping[int, Dim]) -> bool:
    """Whether the layer as it is changes these axes only, to these sizes where they are known."""
    try:
        shape = infer_node(this.node)[0].shape
    except LiteError:
        return False
    if shape is None or len(shape) != len(this.out):
        return False
    return all(
        got == was if j not in new else (got != was if new[j] is None else got == new[j])
        for j, (was, got) in enumerate(zip(this.out, shape))
    )


def _kept(this: _Reshape, j: int) -> int:
    """The size of an axis that stays."""
    size, written = this.out[j], this.sizes[j]
    if written == 0 and this.copies and this.now[j] == this.before[j]:
        return 0
    return size if isinstance(size, int) else written
