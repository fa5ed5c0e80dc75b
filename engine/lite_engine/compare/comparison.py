"""The answer of a comparison: a row per layer, what was found, the verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from .._deprecated import deprecated_name
from ..runtime.answer import Answer
from ..runtime.shares import Share
from .difference import Difference
from .finding import AnswerDifference, Finding

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: Findings about the errors of layers.
_OF_LAYERS = ("layer_fails", "layer_differs")
State = Literal["within", "propagated", "differing", "failing"]


@dataclass(frozen=True)
class _Compared:
    """Which layer a row is about. A base of its own, because fields come in the order of bases."""

    index: int
    name: str
    op: str
    sources: list[str]
    tolerance: float


@dataclass(frozen=True)
class LayerDifference(Difference, _Compared):
    """One row: the accumulated difference of a layer. `isolated` holds the same figures for the
    layer run alone on the baseline's values. `sources` are nodes of the baseline,
    `sources_candidate` those of the candidate where they differ. An absolute difference up to
    `floor` is never an error. `explained` is the measured error of rounding and clipping;
    `quantized` is true where the two sides hold different integers.
    `backend_baseline` and `backend_candidate` ran the layer in the whole runs; they are empty for a
    layer without computation and for another framework.

    `state` is what the row says of its layer: "failing" (on its own), "propagated" (right on its
    own, but the whole runs differ by more than rounding adds up to), "differing" (the whole runs
    do, and nothing is known of the layer on its own), or "within".
    """

    isolated: dict[str, Any] | None
    within: bool
    state: State = "within"
    kernel_candidate: str = ""
    backend_baseline: str = ""
    backend_candidate: str = ""
    value_baseline: str = ""
    value_candidate: str = ""
    sources_candidate: list[str] = field(default_factory=list)
    floor: float = 0.0
    explained: float | None = None
    quantized: bool = False
    detail: dict[str, Any] | None = None


@dataclass(frozen=True, repr=False)
class Comparison(Answer):
    """The result of `lite compare`; `to_dict` is its JSON.

    baseline, candidate  the names of the two sides; the baseline is trusted
    finding              what was found, as data; its `kind` decides about the exit code
    verdict              the same as a sentence
    first_divergence     the first layer that fails on its own, None without one
    agrees               `finding.kind` is "agree"
    usual_tolerance      where one line stands for the tolerances of all layers
    differing_outputs    outputs that differ by more than the errors of layers add up to and than
                         ill-conditioned layers explain
    unmatched_outputs    outputs without a counterpart, one sentence each
    ill_conditioned      {output: layer}: the layer amplifies a difference within the limit, and
                         nothing else makes this output differ
    unaligned            number of the candidate's values without a counterpart
    shares               {"baseline" or "candidate": {backend: its share of the compared layers}}
    ran                  the same as a sentence
    answer               what both answer, where one side holds integers and the other floats

    With `layers` or `until`, outputs are not compared.
    """

    baseline: str
    candidate: str
    tolerance: float | None
    first_divergence: dict[str, Any] | None
    layers: list[LayerDifference]
    finding: Finding
    agrees: bool
    usual_tolerance: float
    verdict: str = ""
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    model: str = ""
    ill_conditioned: dict[str, str] = field(default_factory=dict)
    differing_outputs: list[str] = field(default_factory=list)
    unmatched_outputs: list[str] = field(default_factory=list)
    unaligned: int = 0
    runs: int = 0
    shares: dict[str, dict[str, Share]] = field(default_factory=dict)
    ran: str = ""
    answer: AnswerDifference | None = None

    @property
    def needs_attention(self) -> bool:
        """Something may be wrong. Not so where integers give the answer of the floats and layers
        exceed only the caller's own tolerance."""
        if self.answer is None or self.answer.same is None:
            return not self.agrees
        strict = self.tolerance is not None and self.only_layers_differ
        return not (self.answer.same and (self.agrees or strict))

    @property
    def only_layers_differ(self) -> bool:
        """Integers give the answer of the floats, although layers exceed their tolerance."""
        same = self.answer is not None and self.answer.same is True
        return same and self.finding.kind in _OF_LAYERS

    @property
    def over_tolerance(self) -> int:
        """The number of layers that are wrong or exceed their tolerance."""
        return len({row.name for row in self.layers if not row.within})

    @property
    def headline(self) -> str:
        return self.verdict

    @property
    def exit_code(self) -> int:
        return self.finding.exit_code

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """Failing layers first, then those with the largest error of their own."""
        heads = ["layer", "operator", "isolated", "accumulated", "", "kernel"]
        rows = sorted(self.layers, key=lambda x: (x.state != "failing", -_own_error(x)))
        return heads, [
            [x.name, x.op, f"{x.isolated['rel_l2']:.1e}" if x.isolated else "–",
             f"{x.rel_l2:.1e}", "" if x.state == "within" else x.state, x.kernel_candidate]
            for x in rows
        ]  # fmt: skip

    def figure(self, kind: str = "error", layer: str | None = None) -> Figure:
        """A plotly Figure: "error", or of one layer that was compared with `detail` "histogram" or
        "channels". Raises UsageError for another kind or layer; LiteError without plotly."""
        from ..figures import comparisons

        return comparisons.figure(self.to_dict(), kind, layer)

    a = deprecated_name("a", "baseline")
    b = deprecated_name("b", "candidate")
    magnified = deprecated_name("magnified", "ill_conditioned")
    outputs_apart = deprecated_name("outputs_apart", "differing_outputs")
    outputs_alone = deprecated_name("outputs_alone", "unmatched_outputs")


def _own_error(row: LayerDifference) -> float:
    return float((row.isolated or {"rel_l2": row.rel_l2})["rel_l2"])
