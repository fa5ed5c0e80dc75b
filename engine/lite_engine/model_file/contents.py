"""What a `.lite` file holds: an optimised graph with its targets and everything that travels with
it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .._deprecated import deprecated_name
from ..ir import Journal
from .needs import Needs
from .precision import told

if TYPE_CHECKING:  # a stored program runs without it
    from ..ir import Graph

#: Metadata that is said once and then travels with the model: how images become inputs, the names
#: of classes, how outputs are read.
TRAVELLING = ("preprocess", "labels", "adapter")
#: Of each target, what was chosen for which layers.
Choices = dict[str, dict[str, str]]


class Contents:
    """`targets` is the order of preference, empty for "any".

    `graph` serves every target, but for the precisions that have one of their own in `graphs`:
    {"int8": …} beside a float `graph` is int8 for one target and float for the others.
    `source` is `graph`, or how to read it: a stored program runs without it.
    By target, `overrides` maps layers to a backend or a precision and `tuning` to kernels; entries
    of `tuning` under "opencl/DEVICE" are what was measured on a device (backends/opencl/tuning.py).
    """

    def __init__(
        self,
        source: Graph | Callable[[], Graph],
        targets: Iterable[str] = (),
        precisions: Mapping[str, str] | None = None,
        tuning: Choices | None = None,
        metadata: Mapping[str, Any] | None = None,
        journal: Journal | None = None,
        needs: Needs | None = None,
        path: Path | None = None,
        graphs: Mapping[str, Graph] | None = None,
        overrides: Choices | None = None,
    ) -> None:
        self.source = source
        self.targets = list(targets)
        self.precisions = dict(precisions or {})
        self.tuning = tuning or {}
        self.metadata = dict(metadata or {})
        self.journal = journal or Journal()
        self.needs = needs or Needs()
        self.path = path
        self.graphs = graphs or {}
        self.overrides = overrides or {}

    @property
    def graph(self) -> Graph:
        """The optimised graph, read from the file on first use. Raises ModelFormatError."""
        if callable(self.source):
            self.source = self.source()
        return self.source

    @graph.setter
    def graph(self, graph: Graph) -> None:
        self.source = graph

    def described_graph(self) -> Graph:
        """The graph, whose own metadata says what travels with the model: for whoever changes the
        graph and makes another model of it. Raises ModelFormatError."""
        graph = self.graph
        graph.metadata.update({k: self.metadata[k] for k in TRAVELLING if k in self.metadata})
        return graph

    @property
    def is_read(self) -> bool:
        """Whether the graph is in memory, where it may have been changed."""
        return not callable(self.source)

    @property
    def name(self) -> str:
        return self.path.stem if self.path else self.graph.name

    def precision(self, target: str) -> str:
        return self.precisions.get(target, "fp32")

    def display_precision(self, target: str) -> str:
        """What people read of a target: int8 for a model whose integers came with its file, too."""
        precision = self.precision(target)
        return told(self.graph_in(precision), precision)

    told_precision = deprecated_name("told_precision", "display_precision")

    def graph_in(self, precision: str) -> Graph:
        """The graph that is computed in a precision."""
        own = precision in self.graphs  # graphs are read on use: not both
        return self.graphs[precision] if own else self.graph

    def all_graphs(self) -> list[Graph]:
        return [self.graph, *self.graphs.values()]

    @property
    def notes(self) -> dict[str, str]:
        """Why a written file has no program for lite_run, by target."""
        return dict(self.metadata.get("notes", {}))

    def describe(self) -> list[dict[str, Any]]:
        """What the file says of each target, for `lite info`."""
        notes = self.notes
        return [
            {
                "target": t,
                "precision": self.display_precision(t),
                "layers": len(self.graph_in(self.precision(t)).nodes),
                "set": {**self.tuning.get(t, {}), **self.overrides.get(t, {})},
                "tuned_devices": sum(k.startswith(f"{t}/") for k in self.tuning),
                "note": notes.get(t, ""),
            }
            for t in self.targets
        ]
