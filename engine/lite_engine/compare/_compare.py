"""Finds the layer that is wrong: two ways of running a model, compared layer by layer.

`a` is the baseline, which is trusted; `b` is the candidate. The accumulated error compares a value
in two whole runs. The isolated error runs a layer of the candidate on the baseline's values, which
separates a failing layer from the layers after it. Values are compared in windows of bounded size.
At the first divergence the NumPy reference decides which side is wrong.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from ..errors import UsageError
from .alignment import Pair
from .comparison import Comparison, LayerDifference
from .comparison_run import ComparisonRun
from .ill_conditioned import ill_conditioned, wrong_in_whole_runs
from .judge import apart, judge
from .ran import note_shares
from .side import Side, Valued

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
) -> Comparison:
    """Compares every value that both sides have. `tolerance` is a relative L2 error, by default
    each operator's own for the coarser precision. `detail` names layers whose histogram and
    channel map are wanted; the first divergence always has them. Raises ShapeError, UsageError.
    """
    run = ComparisonRun(a, b, feeds, tolerance, isolated, set(detail))
    pairs = choose(run.pairs, layers, until, detail)
    return _compared(run, pairs, whole=not (layers or until), progress=progress)


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
) -> Comparison:
    """The first divergence with the fewest runs: each run of both sides probes as many values, at
    even distances, as a window holds; the layers before the first wrong one are the next to look
    into, and what fits into one window is compared as `compare` does. The rows are the last
    window's. For models and devices that are slow to run.

    Where no layer of that window is wrong and outputs differ, every window is compared.
    """
    run = ComparisonRun(a, b, feeds, tolerance, isolated, set(detail))
    every = choose(run.pairs, layers, until, detail)
    suspects = _sized(run, every)
    narrowed = False  # then the last of them is known to differ
    while sum(size for _, size in suspects) > WINDOW_BYTES and len(suspects) > 1:
        probes = _spread([size for _, size in suspects], narrowed)
        wrong = run.differing([suspects[i][0] for i in probes])
        if wrong is None:
            suspects = suspects[probes[-1] + 1 :] or suspects[-1:]
        else:
            suspects = suspects[probes[wrong - 1] + 1 if wrong else 0 : probes[wrong] + 1]
            narrowed = True
    whole = not (layers or until)
    result = _compared(run, [pair for pair, _ in suspects], whole=whole)
    if whole and not result.agrees and result.first_divergence is None and len(every) > 1:
        return _compared(run, every, whole=True)
    return result


def _compared(
    run: ComparisonRun, pairs: Sequence[Pair], *, whole: bool, progress: Progress | None = None
) -> Comparison:
    """These layers, window by window; the outputs and what has no counterpart when `whole`."""
    a, b = run.a, run.b
    rows: list[LayerDifference] = []
    for window in _windows(run, pairs):
        rows += run.rows(window, len(rows))
        if progress:
            progress(len(rows), len(pairs))
    result = Comparison(a.label, b.label, run.tolerance, None, rows, True, model=run.model_name)
    if whole:
        result.outputs, result.unmatched_outputs = run.outputs()
        result.unaligned = len(b.value_names()) - len(run.pairs)
    if run.tolerance is None and isinstance(b, Side) and all(x.within for x in rows):
        result.ill_conditioned = ill_conditioned(apart(result, a, b), result, run)
    note_shares(result, run)
    judge(result, a, b, run.feeds)
    unexplained = result.differing_outputs and run.isolated and not result.first_divergence
    if unexplained and (row := wrong_in_whole_runs(result, run)) is not None:
        result.verdict = (
            f"no layer fails on its own, but {row.name} ({row.op}) gives different results in "
            f"{b.label}'s whole run than on its own: an error in its plan or driver, not rounding"
        )
    result.runs += run.runs
    return result


def choose(
    pairs: Sequence[Pair],
    layers: Sequence[str] | None,
    until: str | None,
    detail: Sequence[str] = (),
) -> list[Pair]:
    """The wanted layers, by name. Raises UsageError for an unknown one."""
    names = [p.node.name for p in pairs]
    for wanted in [*(layers or ()), *([until] if until else []), *detail]:
        if wanted not in names:
            raise UsageError(
                f"there is no layer {wanted!r}",
                fix="list them",
                command="lite info MODEL --layers",
            )
    chosen = list(pairs)
    if until:
        chosen = chosen[: max(i for i, n in enumerate(names) if n == until) + 1]
    return [p for p in chosen if not layers or p.node.name in layers]


def _windows(run: ComparisonRun, pairs: Sequence[Pair]) -> Iterator[list[Pair]]:
    """Consecutive layers whose values fit into WINDOW_BYTES."""
    window: list[Pair] = []
    size = 0
    for pair, nbytes in _sized(run, pairs):
        if window and size + nbytes > WINDOW_BYTES:
            yield window
            window, size = [], 0
        window.append(pair)
        size += nbytes
    if window:
        yield window


def _sized(run: ComparisonRun, pairs: Sequence[Pair]) -> list[tuple[Pair, int]]:
    """Layers and the bytes of their values; without values that no plan holds."""
    plans = [
        side.predictor.plan({n: x.shape for n, x in feeds.items()})
        for side, feeds in ((run.a, run.feeds), (run.b, run.feeds_b))
        if isinstance(side, Side)
    ]
    found = []
    for pair in pairs:
        names = [pair.name_a if s is run.a else pair.name_b for s in (run.a, run.b)
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
