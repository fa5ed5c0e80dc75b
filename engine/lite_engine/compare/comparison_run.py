"""One comparison while it runs: the feeds of both sides, what was run, the row of each layer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

from ..errors import LiteError, UsageError
from ..ir import Node, Value, format_shape
from .alignment import Pair, align, closure
from .comparison import LayerDifference
from .difference import channel_map, difference, histogram
from .index_outputs import is_index_output, judge_alone, judge_in_whole_runs
from .judge import CARRIED, floor_of, other_integers, tolerance_of, within
from .rounding import LIKE, UNIT, explained, one_sided
from .side import Side, Valued, quant_of, to_float, to_integer

Arrays = Mapping[str, np.ndarray]


class ComparisonRun:
    """One comparison while it runs. In names, a is the baseline and b the candidate."""

    def __init__(
        self, a: Valued, b: Valued, feeds: Mapping[str, Any], tolerance: float | None,
        isolated: bool, detail: set[str],
    ) -> None:  # fmt: skip
        self.tolerance, self.detail = tolerance, detail
        own = next(s for s in (a, b) if isinstance(s, Side))
        self.inputs = _same_inputs(a, b)
        if not isinstance(a, Side):
            feeds = {self.inputs.get(n, n): x for n, x in feeds.items()}
        checked = own.predictor.check_feeds(feeds)
        back = {name_b: name_a for name_a, name_b in self.inputs.items()}
        self.feeds = checked if own is a else {back[n]: x for n, x in checked.items()}
        self.feeds_b = {self.inputs[n]: x for n, x in self.feeds.items()}
        if own is a and isinstance(b, Side):
            theirs = {v.name: v for v in b.graph.inputs}
            for value in a.graph.inputs:
                other = theirs[self.inputs[value.name]]
                x = to_float(fitted(self.feeds[value.name], other.shape), quant_of(value))
                self.feeds_b[other.name] = to_integer(x, other)
        self.a = a.at(self.feeds) if isinstance(a, Side) else a
        self.b = b.at(self.feeds_b) if isinstance(b, Side) else b
        self.pairs = align(self.a, self.b)
        self.isolated = isolated and isinstance(b, Side)
        self.model_name = own.predictor.model.name
        self.runs = 0
        self._found = False
        self._fallen: set[str] = set()  # B's places that rounding explains, and what reads them
        self._kernels = _kernels(self.b, self.feeds_b)
        self.pair_of = {p.name_b: p for p in self.pairs}
        self.known = {p.name_b: p.name_a for p in self.pairs}
        self.known |= {name_b: name_a for name_a, name_b in self.inputs.items()}
        self._last: tuple[Arrays, Arrays] | None = None

    def rows(self, window: Sequence[Pair], first: int) -> list[LayerDifference]:
        """Differences of these values, from one run of each side and one of the layers alone."""
        judged = self.tolerance is None and isinstance(self.b, Side)
        choices = [p for p in window if judged and is_index_output(self, p.name_b)]
        scores = {} if self.isolated or not choices else self._inputs(choices)
        inputs = self._inputs(window) if self.isolated else scores
        names_a = list(dict.fromkeys([p.name_a for p in window] + list(inputs.values())))
        names_b = list(dict.fromkeys([p.name_b for p in window] + list(scores)))
        va = self.a.values(self.feeds, [n for n in names_a if n not in self.feeds])
        vb = self.b.values(self.feeds_b, [n for n in names_b if n not in self.feeds_b])
        self._last = va, vb
        self.runs += 2
        given = self._given(inputs, va) if self.isolated else {}
        alone = self._run_alone(window, given) if self.isolated else {}
        rows = [
            self._row(first + i, pair, va, vb, alone.get(pair.name_b))
            for i, pair in enumerate(window)
        ]
        if self.tolerance is None:
            self._excuse(window, rows, va, {**vb, **alone})
            known_a, known_b = {**self.feeds, **va}, {**self.feeds_b, **vb}
            for pair in choices:
                row = rows[window.index(pair)]
                if pair.name_b in alone:
                    judge_alone(self, pair, row, known_a, given, alone[pair.name_b])
                elif not self.isolated:
                    judge_in_whole_runs(self, pair, row, known_a, known_b)
                    self._fallen |= {pair.name_b} if row.within and row.rel_l2 else set()
            self._judge_followers(window, rows, va, vb)
        for pair, row in zip(window, rows, strict=True):
            first_wrong = not (row.within or self._found)
            if first_wrong or row.name in self.detail:
                x, y = self.real(pair, va[pair.name_a], vb[pair.name_b])
                own = alone.get(pair.name_b)
                own = own if own is None else self.real(pair, va[pair.name_a], own)[1]
                row.detail = detail_of(x, y, own)
            self._found = self._found or first_wrong
        return rows

    def _judge_followers(
        self, window: Sequence[Pair], rows: list[LayerDifference], va: Arrays, vb: Arrays
    ) -> None:
        """Layers over tolerance after places that fell another way, which whole runs say nothing
        of: B's are run alone."""
        if not self._fallen:
            return
        for pair, row in zip(window, rows, strict=True):
            if row.rel_l2 and any(name in self._fallen for name in self.reads(pair.name_b)):
                self._fallen.add(pair.name_b)
        over = {p.name_b: p for p, row in zip(window, rows, strict=True)
                if not row.within and p.name_b in self._fallen}  # fmt: skip
        if not over:
            return
        inputs = self._inputs(list(over.values()))
        given = self._given(inputs, self.values_a(list(inputs.values())))
        alone = self._run_alone(list(over.values()), given)
        for i, row in enumerate(rows):
            if row.value_candidate in over:
                pair = over[row.value_candidate]
                rows[i] = self._row(row.index, pair, va, vb, alone.get(row.value_candidate))

    def differing(self, probes: Sequence[Pair]) -> int | None:
        """Which of these values of two whole runs is the first that differs by more than rounding
        adds up to along a model."""
        isolated, self.isolated = self.isolated, False
        rows = self.rows(probes, 0)
        self.isolated, self._found = isolated, False
        return next((i for i, row in enumerate(rows) if not row.within), None)

    def _excuse(
        self, window: Sequence[Pair], rows: Sequence[LayerDifference], va: Arrays, theirs: Arrays
    ) -> None:
        """Layers over tolerance are right when rounding explains their error. `theirs` are B's
        values, of the layers alone where they were run alone."""
        suspects = [p for p, row in zip(window, rows, strict=True) if not row.within]
        found = explained(suspects, self.pairs, self.a, self.b, (self.feeds, self.feeds_b))
        self.runs += 2 if found else 0
        for pair, row in zip(window, rows, strict=True):
            if pair.name_a in found:
                rounding = found[pair.name_a]
                x, y = self.real(pair, va[pair.name_a], theirs[pair.name_b])
                times = 1 if row.isolated else CARRIED
                if row.isolated and rounding.exact is not None:
                    x = rounding.exact
                limit = max(row.tolerance, LIKE * rounding.rel_l2)
                inside = difference(rounding.clip(x), rounding.clip(y))
                limits = (limit, row.floor, LIKE * rounding.max_abs)
                row.within = within(inside, *(times * x for x in limits))
                row.explained = rounding.rel_l2 + rounding.clipping
                row.tolerance = limit + rounding.clipping

    def reads(self, value_b: str) -> dict[str, str]:
        """B's value → A's, for what B's layer that makes this value reads."""
        return self._inputs([self.pair_of[value_b]])

    def again(self, values_b: Sequence[str]) -> tuple[Arrays, Arrays]:
        """These values of B: from its layers alone on B's own values, and, with what they read,
        from the whole run."""
        assert isinstance(self.b, Side)
        pairs = [self.pair_of[name] for name in values_b]
        reads = [name for name in self._inputs(pairs) if name not in self.feeds_b]
        whole = self.b.values(self.feeds_b, list(dict.fromkeys([*reads, *values_b])))
        self.runs += 1
        known = {
            v.name: whole[v.name].astype(v.dtype.np, copy=False) if v.dtype else whole[v.name]
            for n in self.b.graph.nodes for v in n.outputs if v.name in reads
        }  # fmt: skip
        return self._run_alone(pairs, {**self.feeds_b, **known}), {**self.feeds_b, **whole}

    def values_a(self, names: Sequence[str]) -> Arrays:
        """These values of A's whole run, or the feeds."""
        self.runs += 1
        return {
            **self.feeds,
            **self.a.values(self.feeds, [n for n in names if n not in self.feeds]),
        }

    def _inputs(self, window: Sequence[Pair]) -> dict[str, str]:
        """B's value → A's value, for what the window's layers of B read."""
        known = self.known
        found: dict[str, str] = {}
        assert isinstance(self.b, Side)
        for pair in window:
            assert pair.node_b is not None
            for node in closure(pair.node_b, known):
                for value in node.inputs:
                    if value is not None and value.const is None and value.name in known:
                        found[value.name] = known[value.name]
        return found

    def _given(self, inputs: Mapping[str, str], va: Arrays) -> dict[str, np.ndarray]:
        """Side A's values as side B's layers read them, by B's names."""
        if not inputs:
            return {}
        assert isinstance(self.b, Side)
        by_name = {v.name: v for n in self.b.graph.nodes for v in (*n.inputs, *n.outputs) if v}
        return {
            name: self.feeds_b[name]
            if name in self.feeds_b
            else self._as_b(name, by_name[name], va[other])
            for name, other in inputs.items()
            if name in by_name
        }

    def _run_alone(self, window: Sequence[Pair], known: Arrays) -> dict[str, np.ndarray]:
        """B's layers of these pairs on known values of B. B's own nodes are used: its kernels and
        fusions."""
        assert isinstance(self.b, Side)
        wanted: dict[int, Node] = {}
        for pair in window:
            assert pair.node_b is not None
            nodes = closure(pair.node_b, known)
            if not any(True for n in nodes for _ in n.subgraphs()):
                wanted |= {id(n): n for n in nodes}
        ordered = [n for n in self.b.graph.nodes if id(n) in wanted]
        if not ordered:
            return {}
        self.runs += 1
        return self.b.isolated(ordered, known)

    def _as_b(self, name: str, value: Value, array: np.ndarray) -> np.ndarray:
        """A's array as B's layer reads it: in its order, in integers where B is quantised."""
        pair = self.pair_of[name]
        if pair.value_a is None:
            return to_integer(fitted(array, value.shape), value)
        if one_sided(pair) or other_integers(pair):
            return to_integer(to_float(array, quant_of(pair.value_a)), value)
        return array

    def _row(
        self, index: int, pair: Pair, va: Arrays, vb: Arrays, alone: np.ndarray | None
    ) -> LayerDifference:
        x, y = self.real(pair, va[pair.name_a], vb[pair.name_b])
        alone = None if alone is None else self.real(pair, va[pair.name_a], alone)[1]
        if x.shape != y.shape:
            raise LiteError(
                f"the baseline gives shape {x.shape}, the candidate {y.shape}", where=pair.node.name
            )
        limit = self.tolerance
        if limit is None:
            limit = tolerance_of(pair, (self.a.precision, self.b.precision), x)
        d = difference(x, y)
        own = None if alone is None else difference(x, alone)
        sources = list(pair.node.sources)
        others = list(pair.node_b.sources) if pair.node_b else []
        coarser = max(self.a.precision, self.b.precision, key=UNIT.__getitem__)
        floor = floor_of(pair.node, coarser) if self.tolerance is None else 0.0
        row = LayerDifference(
            index, pair.node.name, pair.node.op, sources, limit, **asdict(d),
            isolated=None if own is None else asdict(own),
            within=within(d, CARRIED * limit, CARRIED * floor) if own is None
            else within(own, limit, floor),
            quantized=one_sided(pair) or other_integers(pair), floor=floor,
            kernel_candidate=self._kernels.get(pair.node_b.name, "") if pair.node_b else "",
            value_baseline=pair.name_a, value_candidate=pair.name_b,
            sources_candidate=[] if others == sources else others,
        )  # fmt: skip
        return row

    def real(self, pair: Pair, x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """A's and B's arrays of a value as numbers that can be compared: real ones where the sides
        hold other integers, with A's channels where B has them."""
        if one_sided(pair) or other_integers(pair):
            quant_a, quant_b = quant_of(pair.value_a), quant_of(pair.value_b)
            if not (pair.value_a and pair.value_b):  # a framework's integers are the file's
                quant_a = quant_b = quant_a or quant_b
            x, y = to_float(x, quant_a), to_float(y, quant_b)
        if isinstance(self.a, Side) != isinstance(self.b, Side):
            x = fitted(x, y.shape)
        return x, y

    def outputs(self) -> tuple[dict[str, dict[str, Any]], list[str]]:
        """Differences of the model's outputs in the last whole runs, and those that the other side
        does not have or has in another shape."""
        if self._last is None:
            self._last = self.a.values(self.feeds, ()), self.b.values(self.feeds_b, ())
            self.runs += 2
        va, vb = self._last
        graphs = [s.graph for s in (self.a, self.b) if s.graph is not None]
        quant = [{v.name: quant_of(v) for v in g.outputs} for g in graphs]
        real_a = {n: to_float(va[n], quant[0].get(n)) for n in self.a.output_names}
        real_b = {n: to_float(vb[n], quant[-1].get(n)) for n in self.b.output_names}
        other = _same_outputs(real_a, real_b)
        out = {n: asdict(difference(_as_shaped(x, real_b[other[n]]), real_b[other[n]]))
               for n, x in real_a.items() if n in other}  # fmt: skip
        alone = [
            f"only {side.label} has {n}, {format_shape(x.shape)}"
            for side, real, known in ((self.a, real_a, other), (self.b, real_b, other.values()))
            for n, x in real.items() if n not in known
        ]  # fmt: skip
        return out, alone


def fitted(array: np.ndarray, shape: Sequence[Any] | None) -> np.ndarray:
    """The array with its channels where `shape` has them: our graphs are NCHW inside, TensorFlow's
    tensors NHWC. Unchanged when that does not explain the difference."""
    if shape is None or array.ndim < 3 or len(shape) != array.ndim:
        return array

    def fits(found: tuple[int, ...]) -> bool:
        return all(not isinstance(d, int) or d == n for d, n in zip(shape, found, strict=True))

    for candidate in (array, np.moveaxis(array, -1, 1), np.moveaxis(array, 1, -1)):
        if fits(candidate.shape):
            return np.ascontiguousarray(candidate)
    return array


def detail_of(x: np.ndarray, y: np.ndarray, alone: np.ndarray | None) -> dict[str, Any]:
    """Histogram and channel map; of the layer alone where it was run alone."""
    other = y if alone is None else alone
    kind = "accumulated" if alone is None else "isolated"
    return {"kind": kind, "shape": list(x.shape), "histogram": histogram(x, other),
            **channel_map(x, other)}  # fmt: skip


def _kernels(side: Valued, feeds: Arrays) -> dict[str, str]:
    if not isinstance(side, Side):
        return {}
    plan = side.predictor.plan({n: x.shape for n, x in feeds.items()})
    return {s.name: s.kernel for s in plan.steps}


def _same_inputs(a: Valued, b: Valued) -> dict[str, str]:
    """A's input → B's: by name, else in order. Raises UsageError when there are not as many."""
    if set(a.input_names) == set(b.input_names):
        return {name: name for name in a.input_names}
    if len(a.input_names) != len(b.input_names):
        raise UsageError(
            f"{a.label} has the inputs {', '.join(a.input_names)}, {b.label} "
            f"{', '.join(b.input_names)}: they cannot get the same inputs"
        )
    return dict(zip(a.input_names, b.input_names, strict=True))


def _same_outputs(a: Arrays, b: Arrays) -> dict[str, str]:
    """A's output → B's: by name, the others in order where the shape is the same."""
    found: dict[str, str] = {}
    for name in [*(n for n in a if n in b), *(n for n in a if n not in b)]:
        left = [n for n in b if n not in found.values() and (n == name or n not in a)]
        for other in [n for n in left if n == name] or left:
            if _as_shaped(a[name], b[other]).shape == b[other].shape:
                found[name] = other
                break
    return found


def _as_shaped(x: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The array with its channels where `like` has them and without the ones that it has not."""
    x = fitted(x, like.shape)
    return x.reshape(like.shape) if np.squeeze(x).shape == np.squeeze(like).shape else x
