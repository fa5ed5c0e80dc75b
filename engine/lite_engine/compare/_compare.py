"""Finds the layer that is wrong: two ways of running a model, compared layer by layer.

`a` is the baseline, which is trusted; `b` is the candidate. The accumulated error compares a value
in two whole runs. The isolated error runs a layer of the candidate on the baseline's values, which
separates a failing layer from the layers after it. Values are compared in windows of bounded size.
At the first divergence the NumPy reference decides which side is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from lite_messages import tr

from ..errors import UsageError
from .alignment import Pair
from .answer import Read, answers
from .comparison import Comparison, LayerDifference
from .find import find
from .finding import AnswerDifference
from .ill_conditioned import ill_conditioned
from .judge import FLOAT_TOLERANCE
from .matched import Matched, match, whole_run
from .outputs import compare_outputs, differing
from .ran import with_backends
from .side import Side, Valued
from .window import NOTHING, compare_window
from .words import sentence, wrong_side

WINDOW_BYTES = 96 << 20
Progress = Callable[[int, int], None]


def compare(
    a: Valued,
    b: Valued,
    feeds: Mapping[str, Any],
    *,
    tolerance: float | None = None,
    isolated: bool = True,
    layers: Sequence[str] | None = None,
    until: str | None = None,
    detail: Sequence[str] = (),
    progress: Progress | None = None,
    read: Read | None = None,
) -> Comparison:
    """Compares every value that both sides have. `tolerance` is a relative L2 error, by default
    each operator's own for the coarser precision. `detail` names layers whose histogram and
    channel map are wanted; the first divergence always has them. `read` says what both sides answer
    where one holds integers and the other floats. Raises ShapeError, UsageError.
    """
    _check(tolerance)
    on = match(a, b, feeds, tolerance, isolated, detail)
    pairs = choose(on.pairs, layers, until, detail)
    return _compared(on, pairs, whole=not (layers or until), progress=progress, read=read)


def bisect(
    a: Valued,
    b: Valued,
    feeds: Mapping[str, Any],
    *,
    tolerance: float | None = None,
    isolated: bool = True,
    layers: Sequence[str] | None = None,
    until: str | None = None,
    detail: Sequence[str] = (),
    read: Read | None = None,
) -> Comparison:
    """The first divergence with the fewest runs: each run of both sides probes as many values, at
    even distances, as a window holds; the layers before the first wrong one are the next to look
    into, and what fits into one window is compared as `compare` does. The rows are the last
    window's. For models and devices that are slow to run.

    Where no layer of that window is wrong and outputs differ, every window is compared.
    """
    _check(tolerance)
    on = match(a, b, feeds, tolerance, isolated, detail)
    every = choose(on.pairs, layers, until, detail)
    suspects = _sized(on, every)
    narrowed = False  # then the last of them is known to differ
    while sum(size for _, size in suspects) > WINDOW_BYTES and len(suspects) > 1:
        probes = _spread([size for _, size in suspects], narrowed)
        wrong = _first_differing(on, [suspects[i][0] for i in probes])
        if wrong is None:
            suspects = suspects[probes[-1] + 1 :] or suspects[-1:]
        else:
            suspects = suspects[probes[wrong - 1] + 1 if wrong else 0 : probes[wrong] + 1]
            narrowed = True
    whole = not (layers or until)
    result = _compared(on, [pair for pair, _ in suspects], whole=whole, read=read)
    if whole and not result.agrees and result.first_divergence is None and len(every) > 1:
        return _compared(on, every, whole=True, read=read)
    return result


def _check(tolerance: float | None) -> None:
    """Raises UsageError for a tolerance that is not a number of 0 or more."""
    if tolerance is None:
        return
    number = isinstance(tolerance, Real) and not isinstance(tolerance, bool)
    if not number or not math.isfinite(tolerance) or tolerance < 0:
        raise UsageError(
            tr("tolerance must be a number of 0 or more, got {value!r}", value=tolerance),
            fix=tr("pass a relative L2 error such as 1e-3, or None for each operator's own"),
        )


def _first_differing(on: Matched, probes: Sequence[Pair]) -> int | None:
    """Which of these values of two whole runs is the first that differs by more than rounding
    adds up to along a model."""
    rows = compare_window(replace(on, isolated=False), probes, 0, NOTHING).rows
    return next((i for i, row in enumerate(rows) if not row.within), None)


def _compared(
    on: Matched, pairs: Sequence[Pair], *, whole: bool, progress: Progress | None = None,
    read: Read | None = None,
) -> Comparison:  # fmt: skip
    """These layers, window by window; the outputs and what has no counterpart when `whole`."""
    a, b = on.a, on.b
    rows: list[LayerDifference] = []
    window = NOTHING
    for part in _windows(on, pairs):
        window = compare_window(on, part, len(rows), window)
        rows += window.rows
        if progress:
            progress(len(rows), len(pairs))
    rows, shares, ran = with_backends(on, rows)
    outputs: dict[str, dict[str, Any]] = {}
    unmatched: list[str] = []
    answer: AnswerDifference | None = None
    if whole:
        va, vb = (window.a, window.b) if rows else (whole_run(on, ()), whole_run(on, (), of_b=True))
        outputs, unmatched = compare_outputs(on, va, vb)
        answer = answers(on, outputs, (va, vb), read)
    apart = differing(on, rows, outputs)
    excused: dict[str, str] = {}
    if on.tolerance is None and isinstance(b, Side) and all(x.within for x in rows):
        excused = ill_conditioned(on, apart, rows)
    apart = [name for name in apart if name not in excused]
    finding = find(on, rows, outputs, apart, unmatched)
    result = Comparison(
        a.label, b.label, on.tolerance, None, rows, finding, finding.kind == "agree",
        on.tolerance or max((x.tolerance for x in rows), default=0.0) or FLOAT_TOLERANCE,
        model=on.model_name, outputs=outputs, ill_conditioned=excused, differing_outputs=apart,
        unmatched_outputs=unmatched, unaligned=len(b.value_names()) - len(on.pairs) if whole else 0,
        runs=on.tally.runs, shares=shares, ran=ran, answer=answer,
    )  # fmt: skip
    result = replace(result, verdict=sentence(result), first_divergence=_first_divergence(result))
    return result.of(a.graph)


def _first_divergence(result: Comparison) -> dict[str, Any] | None:
    row = next((x for x in result.layers if not x.within), None)
    if row is None:
        return None
    return {
        "index": row.index, "name": row.name, "op": row.op, "sources": row.sources,
        "kernel": row.kernel_candidate, "wrong_side": wrong_side(result), "detail": row.detail,
    }  # fmt: skip


def choose(
    pairs: Sequence[Pair],
    layers: Sequence[str] | None,
    until: str | None,
    detail: Sequence[str] = (),
) -> list[Pair]:
    """The wanted layers, by name. Raises UsageError for an unknown one, and where none is left."""
    names = [p.node.name for p in pairs]
    for wanted in [*(layers or ()), *([until] if until else []), *detail]:
        if wanted not in names:
            raise UsageError(
                tr("there is no layer {wanted!r}", wanted=wanted),
                fix=tr("list them"),
                command="lite info MODEL --layers",
            )
    chosen = list(pairs)
    if until:
        chosen = chosen[: max(i for i, n in enumerate(names) if n == until) + 1]
    chosen = [p for p in chosen if not layers or p.node.name in layers]
    if layers and not chosen:
        raise UsageError(
            tr("{layers} come after {until}", layers=", ".join(layers), until=until),
            fix=tr("leave out one of the two options"),
        )
    return chosen


def _windows(on: Matched, pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Consecutive layers whose values fit into WINDOW_BYTES."""
    window: list[Pair] = []
    size = 0
    for pair, nbytes in _sized(on, pairs):
        if window and size + nbytes > WINDOW_BYTES:
            yield window
            window, size = [], 0
        window.append(pair)
        size += nbytes
    if window:
        yield window


def _sized(on: Matched, pairs: Sequence[Pair]) -> list[tuple[Pair, int]]:
    """Layers and the bytes of their values; without values that no plan holds."""
    plans = [
        side.predictor.plan({n: x.shape for n, x in feeds.items()})
        for side, feeds in ((on.a, on.feeds), (on.b, on.feeds_b))
        if isinstance(side, Side)
    ]
    found = []
    for pair in pairs:
        names = [pair.name_a if s is on.a else pair.name_b for s in (on.a, on.b)
                 if isinstance(s, Side)]  # fmt: skip
        if all(name in plan.tensor_of for name, plan in zip(names, plans, strict=True)):
            nbytes = plans[0].tensors[plans[0].tensor_of[names[0]]].nbytes
            found.append((pair, nbytes))
    return found


def _spread(sizes: Sequence[int], narrowed: bool) -> list[int]:
    """Indices at even distances, with the last one unless `narrowed`, as many as fit into
    WINDOW_BYTES together."""
    least = 1 if narrowed else 2
    for count in range(len(sizes) - 1, least - 1, -1):
        parts = count + narrowed
        indices = [-(-len(sizes) * (i + 1) // parts) - 1 for i in range(count)]
        if count == least or sum(sizes[p] for p in indices) <= WINDOW_BYTES:
            return indices
    return [0, 1]


__all__ = [
    "Side",
    "bisect",
    "compare",
]
