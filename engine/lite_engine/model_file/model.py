"""Model: an optimised graph with its targets and everything that travels with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import UsageError
from ..ir import Graph, Journal, Shape
from .needs import Needs

TARGETS = ("x86", "arm", "opencl")
PRECISIONS = ("fp32", "fp16", "bf16", "int8")


@dataclass
class Model:
    """What `.lite` holds. `targets` is the order of preference, empty for "any"."""

    graph: Graph
    targets: list[str] = field(default_factory=list)
    precisions: dict[str, str] = field(default_factory=dict)
    tuning: dict[str, dict[str, str]] = field(default_factory=dict)
    metadata: dict[str, Any] = field(default_factory=dict)
    journal: Journal = field(default_factory=Journal)
    needs: Needs = field(default_factory=Needs)
    path: Path | None = None

    @property
    def name(self) -> str:
        return self.path.stem if self.path else self.graph.name

    def precision(self, target: str) -> str:
        return self.precisions.get(target, "fp32")

    def save(self, path: str | Path) -> Path:
        """Writes a `.lite` file (to a temporary name, then renamed). Same model, same bytes."""
        from .writer import write_model

        return write_model(self, Path(path))

    def __repr__(self) -> str:
        targets = ", ".join(f"{t} {self.precision(t)}" for t in self.targets) or "any target"
        return f"<Model {self.name}: {len(self.graph.nodes)} layers, {targets}>"


def parse_precisions(text: str | Mapping[str, str], targets: Sequence[str]) -> dict[str, str]:
    """`fp16` or `opencl=fp16,arm=int8` → precision by target. Raises UsageError."""
    if not isinstance(text, str):
        pairs = dict(text)
    elif "=" in text:
        pairs = {}
        for part in text.split(","):
            target, _, precision = part.partition("=")
            pairs[target.strip()] = precision.strip()
    else:
        pairs = dict.fromkeys(targets, text)
    for target, precision in pairs.items():
        if target not in TARGETS:
            raise UsageError(f"target {target!r} is not one of {', '.join(TARGETS)}")
        if precision not in PRECISIONS:
            raise UsageError(f"precision {precision!r} is not one of {', '.join(PRECISIONS)}")
    return pairs


def parse_targets(targets: str | Sequence[str]) -> list[str]:
    """`arm,opencl` or a list → targets in order, each once. Raises UsageError."""
    names = targets.split(",") if isinstance(targets, str) else list(targets)
    names = list(dict.fromkeys(n.strip() for n in names if n.strip()))
    for name in names:
        if name not in TARGETS:
            raise UsageError(f"target {name!r} is not one of {', '.join(TARGETS)}")
    return names


def optimize(
    model: str | Path | Graph,
    *,
    targets: str | Sequence[str] = (),
    precision: str | Mapping[str, str] = "fp32",
    shapes: Mapping[str, Shape] | None = None,
    metadata: Mapping[str, Any] | None = None,
) -> Model:
    """A Graph (or a model file) → Model, after the target-independent passes.

    `metadata` (preprocess, labels) travels with the model. Raises ModelFormatError,
    UnsupportedOperatorError, UsageError.
    """
    # Importers and passes are loaded only here: a .lite file needs neither.
    from ..importers import load
    from ..passes import optimize_graph

    graph = model if isinstance(model, Graph) else load(model, shapes=shapes)
    path = None if isinstance(model, Graph) else Path(model)
    names = parse_targets(targets)
    precisions = parse_precisions(precision, names)
    journal = Journal()
    optimised = optimize_graph(graph, journal=journal)
    meta = {k: v for k, v in graph.metadata.items() if k in ("preprocess", "labels")}
    meta["source"] = {k: v for k, v in graph.metadata.items() if k not in meta}
    return Model(
        optimised,
        names,
        precisions,
        metadata={**meta, **(metadata or {})},
        journal=journal,
        path=path,
    )


def open_model(model: str | Path | Model | Graph) -> Model:
    """A Model as it is, a `.lite` file read, any other model file imported and optimised."""
    if isinstance(model, Model):
        return model
    if isinstance(model, Graph):
        return optimize(model)
    from .reader import is_lite, read_model

    path = Path(model)
    return read_model(path) if is_lite(path) else optimize(path)
