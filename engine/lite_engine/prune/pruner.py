"""Pruning from beginning to end: which, how many, solved on samples, compared with the parent.

Channels go first, as they make other layers smaller; then the weights of what is left.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import CalibrationError, UsageError
from ..ir import Graph
from ..quantize._run import Run, reference_run
from ..quantize.analyze import output_errors
from ..quantize.guard import THRESHOLD_DB
from ..quantize.metrics import PERFECT_DB, Errors
from ..quantize.moments import weight_of
from ..quantize.samples import Feed, HoldOut, Samples, read_samples
from ..quantize.select import named_layers
from .channels import MULTIPLE, Group, channel_groups, kept_of, remove_channels
from .layers import LEVELS, Curves, curves, dealt, prunable, prune_layers
from .patterns import Pattern

#: Samples that the choices are made on, and those that weights are solved on.
CHOICE_SAMPLES, SOLVE_SAMPLES = 4, 32


@dataclass(frozen=True)
class PruneOptions:
    """`sparsity` is the share of zeros in the weights of all layers that get some, `channels` the
    share of channels that go; None leaves it."""

    sparsity: float | None = None
    channels: float | None = None
    pattern: str = "unstructured"
    threshold_db: float = THRESHOLD_DB
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.sparsity is None and self.channels is None:
            raise UsageError(
                tr("there is nothing to prune"), fix=tr("give --sparsity SHARE or --channels SHARE")
            )
        for name, value in (("sparsity", self.sparsity), ("channels", self.channels)):
            if value is not None and not 0 < value < 1:
                raise UsageError(
                    tr(
                        "{name} must be more than 0 and less than 1, got {value:g}",
                        name=name,
                        value=value,
                    )
                )
        fixed = Pattern.parse(self.pattern).share
        if fixed is not None and self.sparsity not in (None, fixed):
            raise UsageError(
                tr("the pattern {pattern} has {share:.0f} % zeros", pattern=self.pattern,
                   share=100 * fixed),
                fix=tr("leave out --sparsity"),
            )  # fmt: skip


@dataclass
class Pruned:
    """`graph` has the names of its float `parent`. `layers` have their zeros and the SQNR of the
    outputs in dB when each alone is pruned, `dense_layers` says why the others were left.
    `channels` are the groups that lost some, called like their first layers; `whole_layers` says
    why the other layers did not."""

    parent: Graph
    graph: Graph
    options: PruneOptions
    layers: list[dict[str, Any]]  # name, zeros, sqnr_db
    channels: list[dict[str, Any]]  # name, before, after
    whole_layers: dict[str, str]
    dense_layers: dict[str, str]
    sqnr_db: float
    top1: float | None
    samples: int
    held_out: bool
    curves: Curves = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return self.sqnr_db >= self.options.threshold_db

    def require(self) -> None:
        """Raises CalibrationError when the outputs are not good enough."""
        if not self.passed:
            raise CalibrationError(
                tr(
                    "the pruned model has an SQNR of {sqnr_db:.1f} dB against the dense model, "
                    "below the threshold of {threshold_db:g} dB",
                    sqnr_db=self.sqnr_db,
                    threshold_db=self.options.threshold_db,
                ),
                fix=tr(
                    "prune less, keep the worst layers with --keep, train the model while it is "
                    "pruned, or --force"
                ),
            )

    def to_dict(self) -> dict[str, Any]:
        return {
            "options": asdict(self.options),
            "layers": self.layers,
            "channels": self.channels,
            "whole_layers": self.whole_layers,
            "dense_layers": self.dense_layers,
            "guard": {"passed": self.passed, "sqnr_db": self.sqnr_db, "top1_agreement": self.top1,
                      "threshold_db": self.options.threshold_db, "samples": self.samples,
                      "held_out": self.held_out},
            "curves": [
                {"name": name, "points": [{"zeros": s, "sqnr_db": db} for s, db in own.items()]}
                for name, own in self.curves.items()
            ],
        }  # fmt: skip


class Pruner:
    """Prunes an optimised float graph on samples, as often as asked; what was measured once serves
    again. Layers named in `keep` stay. Raises UsageError, CalibrationError."""

    def __init__(
        self,
        graph: Graph,
        source: Any,
        options: PruneOptions,
        *,
        keep: Sequence[str] = (),
        run: Run = reference_run,
        progress: Callable[[int, int], None] = lambda done, total: None,
    ) -> None:
        self.graph, self.options, self.run, self.progress = graph, options, run, progress
        self.keep = named_layers(graph, keep)
        self.pattern = Pattern.parse(options.pattern)
        held = HoldOut(Samples(itertools.islice(read_samples(source, graph), options.limit), graph))
        self.samples: list[Feed] = list(held)[:SOLVE_SAMPLES]
        if not self.samples:
            raise CalibrationError(tr("there is no sample to prune with"))
        self.held_out = bool(held.held)
        self.feeds = held.held or held.spare
        self.sparsity = self.pattern.share if options.sparsity is None else options.sparsity
        if self.sparsity is None and options.channels is None:
            raise UsageError(tr("there is nothing to prune"), fix=tr("give --sparsity SHARE"))

    @property
    def share(self) -> float:
        """Of zeros, or of channels where no weights become 0."""
        return self.sparsity or self.options.channels or 0.0

    def at(self, share: float) -> Pruner:
        """One with another `share` on the same samples: what was measured once serves it, too.
        Raises UsageError for a share that cannot be."""
        other = copy.copy(self)
        if self.sparsity is None:
            other.options = replace(self.options, channels=share)
        else:
            other.options, other.sparsity = replace(self.options, sparsity=share), share
        return other

    @cached_property
    def _found(self) -> tuple[list[Group], dict[str, str]]:
        return channel_groups(self.graph) if self.options.channels is not None else ([], {})

    @cached_property
    def groups(self) -> list[Group]:
        """Groups of channels that may go."""
        return [g for g in self._found[0] if not self.keep & {*g.makers, *g.same}]

    def _whole_layers(self, whole: Mapping[str, str], share: float) -> dict[str, str]:
        """Why layers with weights keep all of their channels."""
        groups, unknown = self._found
        left: dict[str, str] = {}
        for group in groups:
            why = whole.get(group.name) or _stays(group.size, share)
            if group not in self.groups:
                why = tr("kept on request")
            left.update(dict.fromkeys(group.makers if why else (), why))
        return {**left, **unknown}

    @cached_property
    def candidates(self) -> list[str]:
        """Layers that may get zeros."""
        return [n.name for n in prunable(self.graph, self.keep)[0]] if self.sparsity else []

    @cached_property
    def curves(self) -> Curves:
        """What each layer alone costs; empty where no weights become 0."""
        if self.sparsity is None:
            return {}
        nodes = [self.graph.node(name) for name in self.candidates]
        if self.pattern.share is None:
            levels = sorted({*LEVELS, max(self.sparsity, LEVELS[0])})
        else:
            levels = [self.pattern.share]
        feeds = self.feeds[:CHOICE_SAMPLES]
        return curves(
            self.graph, nodes, levels, self.pattern, self.samples, feeds, self.run, self.progress
        )

    def ranking(self) -> list[str]:
        """What `make` can leave whole, by the noise that it alone makes, worst first."""
        alone = {name: min(own.values()) for name, own in self.curves.items()}
        for group in self.groups:
            graph = self._without({group.name: self.options.channels or 0.0})
            alone[group.name] = min(
                alone.get(group.name, PERFECT_DB), self._errors(graph).sqnr_db(self._outputs)
            )
        return sorted(alone, key=lambda name: alone[name])

    def make(self, whole: Mapping[str, str] | None = None) -> Pruned:
        """The pruned graph. `whole` are layers that stay, with the reason; a group of channels is
        called like its first layer. Raises CalibrationError when nothing is left to prune."""
        whole, share = whole or {}, self.options.channels or 0.0
        whole_layers = self._whole_layers(whole, share)
        own = [g for g in self.groups if g.name not in whole_layers]
        graph = self._without({g.name: share for g in own}) if own else self.graph
        shapes = {g.name: graph.node(g.name).output.shape or (0, 0) for g in own}
        dense = {name: why for name, why in whole.items() if name in self.candidates}
        shares: dict[str, float] = {}
        if self.sparsity is not None:
            nodes, left = prunable(graph, self.keep)
            dense.update(left)
            names = [n.name for n in nodes if n.name not in whole and n.name in self.candidates]
            shares, graph = self._zeros(graph, names)
            why = tr("its zeros cost more accuracy than those of other layers")
            dense.update({n: why for n in names if not shares.get(n)})
        layers = [
            {"name": name, "zeros": round(zeros, 3), "sqnr_db": self.curves[name].get(zeros)}
            for name, zeros in shares.items() if zeros
        ]  # fmt: skip
        if not layers and not own:
            left = {**dense, **whole_layers}
            why = next((f" ({name}: {reason})" for name, reason in left.items()), "")
            raise CalibrationError(
                tr("no layer of the model can be pruned") + why,
                fix=tr("quantize its weights instead, like --weights-only int8"),
            )
        errors = self._errors(graph)
        agreement = [e.top1 for e in errors.values() if e.top1 is not None]
        return Pruned(
            self.graph, graph, self.options, layers,
            [{"name": g.name, "before": g.size, "after": shapes[g.name][1]} for g in own],
            whole_layers, dense, round(errors.sqnr_db(self._outputs), 3),
            min(agreement, default=None), len(self.feeds), self.held_out, self.curves,
        )  # fmt: skip

    @cached_property
    def _outputs(self) -> list[str]:
        return [v.name for v in self.graph.outputs]

    @cached_property
    def _wants(self) -> list[dict[str, np.ndarray]]:
        return [self.run(self.graph, feed) for feed in self.feeds]

    def _errors(self, graph: Graph) -> Errors:
        return output_errors(graph, self.feeds, self._wants, self.run)

    def _without(self, shares: Mapping[str, float]) -> Graph:
        return remove_channels(self.graph, shares, self.samples, self.run)

    def _zeros(self, graph: Graph, names: Sequence[str]) -> tuple[dict[str, float], Graph]:
        """The better one of as many zeros in each layer, where sparse kernels take those, and of
        zeros dealt out by what they cost."""
        assert self.sparsity is not None
        sizes = {n: weight_of(graph.node(n)).size for n in names}
        even = dict.fromkeys(names, self.sparsity)
        tried = [even]
        if self.pattern.share is None:
            uneven = dealt({n: self.curves[n] for n in names}, sizes, self.sparsity)
            tried = [even, uneven] if self.sparsity >= LEVELS[0] else [uneven]
        made = [
            prune_layers(graph, s, self.pattern, self.samples, self.run, self.progress)
            for s in tried
        ]
        scores = [self._errors(g).sqnr_db(self._outputs) for g in made]
        best = int(np.argmax(scores))
        return tried[best], made[best]


def _stays(size: int, share: float) -> str:
    """Why a group loses no channel at this share; empty where it does."""
    if kept_of(size, share) < size:
        return ""
    asked = f"{100 * share:.3g}"
    if size <= 2 * MULTIPLE:
        return tr(
            "{share} % of {size} channels is less than half a channel", share=asked, size=size
        )
    return tr(
        "{share} % of {size} channels are too few to remove: the number kept must be a multiple "
        "of {n}",
        share=asked, size=size, n=MULTIPLE,
    )  # fmt: skip
