"""Many inputs through the same two sides: for each layer the typical and the worst error, and the
input that shows the worst. Errors of a few inputs are lost in a mean and overlooked on one sample.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from lite_messages import tr, trn

from ..runtime.answer import Answer
from .comparison import Comparison, State
from .finding import Kind


@dataclass(frozen=True)
class LayerErrors:
    """One layer on one input: relative L2 errors. `isolated` is None where the layer was not run on
    its own."""

    name: str
    op: str
    accumulated: float
    isolated: float | None
    state: State


@dataclass(frozen=True)
class InputResult:
    """What the comparison on one input found."""

    input: str
    kind: Kind
    exit_code: int
    verdict: str
    layers: list[LayerErrors]

    @staticmethod
    def of(name: str, found: Comparison) -> InputResult:
        rows: dict[str, LayerErrors] = {}
        for x in found.layers:
            alone = None if x.isolated is None else float(x.isolated["rel_l2"])
            row = LayerErrors(x.name, x.op, x.rel_l2, alone, x.state)
            rows[x.name] = _graver(rows[x.name], row) if x.name in rows else row
        finding = found.finding
        return InputResult(
            name, finding.kind, finding.exit_code, found.verdict, list(rows.values())
        )


def _graver(one: LayerErrors, other: LayerErrors) -> LayerErrors:
    """Two outputs of one layer: what is worst of each."""
    states: tuple[State, ...] = ("within", "propagated", "differing", "failing")
    return LayerErrors(
        one.name, one.op, max(one.accumulated, other.accumulated),
        max((e for e in (one.isolated, other.isolated) if e is not None), default=None),
        max(one.state, other.state, key=states.index),
    )  # fmt: skip


@dataclass(frozen=True)
class LayerSpread:
    """One layer over all inputs: medians and largest values of its relative L2 errors, and the
    inputs that show these. The isolated ones are None where it never ran on its own. `failing`
    counts the inputs on which it is wrong."""

    name: str
    op: str
    inputs: int
    failing: int
    typical: float
    worst: float
    worst_input: str
    isolated_typical: float | None
    isolated_worst: float | None
    isolated_worst_input: str

    @property
    def own(self) -> float:
        """The largest error of the layer itself, in whole runs where it never ran alone."""
        return self.worst if self.isolated_worst is None else self.isolated_worst

    @property
    def shown_by(self) -> str:
        """The input of `own`."""
        return self.worst_input if self.isolated_worst is None else self.isolated_worst_input


@dataclass(frozen=True, repr=False)
class ComparisonOfInputs(Answer):
    """The result of comparing two sides on many inputs.

    layers      in the order of the model
    inputs      how many were compared; `agreeing` of them gave no finding
    kinds       what was found how often
    worst       the first of the inputs with the gravest finding, None when all agree
    unreadable  (input, error) of those that could not be read
    """

    baseline: str
    candidate: str
    model: str
    inputs: int
    agreeing: int
    kinds: dict[Kind, int]
    layers: list[LayerSpread]
    worst: InputResult | None
    verdict: str = ""
    unreadable: list[tuple[str, str]] = field(default_factory=list)

    @property
    def headline(self) -> str:
        return self.verdict

    @property
    def exit_code(self) -> int:
        """That of the gravest finding: 0, 3 or 1 as for one input."""
        return self.worst.exit_code if self.worst else 0

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Layers that fail on the most inputs first, then those with the largest error."""
        heads = [tr("layer"), "op", tr("failing"), tr("typical"), tr("worst"), tr("on input"),
                 tr("isolated, typical"), tr("isolated, worst"), tr("on input")]  # fmt: skip
        rows = sorted(self.layers, key=lambda x: (-x.failing, -x.own))
        return heads, [
            [x.name, x.op, f"{x.failing}/{x.inputs}", f"{x.typical:.1e}", f"{x.worst:.1e}",
             x.worst_input, *_told(x)]
            for x in rows
        ]  # fmt: skip


def _told(layer: LayerSpread) -> list[str]:
    if layer.isolated_typical is None or layer.isolated_worst is None:
        return ["–", "–", ""]
    return [f"{layer.isolated_typical:.1e}", f"{layer.isolated_worst:.1e}",
            layer.isolated_worst_input]  # fmt: skip


def summarize(
    labels: tuple[str, str],
    model: str,
    results: Sequence[InputResult],
    unreadable: Sequence[tuple[str, str]] = (),
) -> ComparisonOfInputs:
    """The results of at least one input, in the order of the inputs."""
    layers: dict[str, list[tuple[str, LayerErrors]]] = {}
    for result in results:
        for row in result.layers:
            layers.setdefault(row.name, []).append((result.input, row))
    spreads = [_spread(rows) for rows in layers.values()]
    # An error of a layer (1) is graver than outputs that differ without one (3).
    wrong = sorted((r for r in results if r.exit_code), key=lambda r: r.exit_code)
    worst = wrong[0] if wrong else None
    kinds = dict(Counter(r.kind for r in results))
    verdict = _verdict(labels, len(results), len(wrong), worst, spreads)
    return ComparisonOfInputs(
        *labels, model, len(results), len(results) - len(wrong), kinds, spreads, worst, verdict,
        list(unreadable),
    )  # fmt: skip


def _spread(rows: Sequence[tuple[str, LayerErrors]]) -> LayerSpread:
    first = rows[0][1]
    worst_input, worst = max(rows, key=lambda pair: pair[1].accumulated)
    alone = [(name, row.isolated) for name, row in rows if row.isolated is not None]
    isolated_input, isolated = max(alone, key=lambda pair: pair[1], default=("", None))
    return LayerSpread(
        first.name, first.op, len(rows), sum(_is_wrong(row.state) for _, row in rows),
        median(row.accumulated for _, row in rows), worst.accumulated, worst_input,
        median(error for _, error in alone) if alone else None, isolated, isolated_input,
    )  # fmt: skip


def _is_wrong(state: State) -> bool:
    return state in ("failing", "differing")


def _verdict(
    labels: tuple[str, str],
    count: int,
    wrong: int,
    worst: InputResult | None,
    layers: Sequence[LayerSpread],
) -> str:
    if worst is not None:
        return tr(
            "{wrong} of {inputs} differ; the worst is input {input}: {verdict}",
            wrong=wrong, inputs=trn("{n} input", "{n} inputs", count), input=worst.input,
            verdict=worst.verdict,
        )  # fmt: skip
    said = tr(
        "{baseline} and {candidate} agree on {inputs}",
        baseline=labels[0], candidate=labels[1], inputs=trn("{n} input", "{n} inputs", count),
    )  # fmt: skip
    largest = max(layers, key=lambda x: x.own, default=None)
    if largest is None or not largest.own:
        return said
    return said + tr(
        "; {layer} has the largest error of its own, {error:.1e}, on input {input}",
        layer=largest.name, error=largest.own, input=largest.shown_by,
    )  # fmt: skip
