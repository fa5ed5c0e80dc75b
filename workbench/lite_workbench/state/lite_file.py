"""A model file as a session holds it, and a session's version as a `.lite` file holds it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from lite_engine.errors import LiteError, UsageError
from lite_engine.files import model_path
from lite_engine.ir import Graph
from lite_engine.model_file import (
    Model,
    is_lite,
    read_model,
    retarget,
    with_int8,
    with_layers,
    with_shapes,
)
from lite_engine.model_file.layers import PLACES
from lite_engine.model_file.precision import is_quantised
from lite_engine.runtime import host_target
from lite_messages import tr

from ..names import FLOAT, GIVEN, INT8
from ._state import SessionState
from .overrides import PRECISIONS, backends_in
from .versions import model_of

if TYPE_CHECKING:
    from lite_engine.passes import Optimized
    from lite_engine.runtime.support import ModelInfo

HALF_PRECISIONS = ("fp16", "bf16")


@dataclass
class Opened:
    """What a file holds. `versions`, `backends` (set by hand, by layer), `targets` and their
    `precision` are empty unless it is a `.lite` file; `int8_targets` are int8 in it beside others
    in float. `optimized` is what the passes make of another file's graph."""

    graph: Graph
    base: str
    versions: dict[str, Model] = field(default_factory=dict)
    backends: dict[str, str] = field(default_factory=dict)
    targets: list[str] = field(default_factory=list)
    precision: dict[str, str] = field(default_factory=dict)
    int8_targets: list[str] = field(default_factory=list)
    optimized: Optimized | None = None

    def info(self, name: str) -> ModelInfo:
        """What `lite info` says about it."""
        from lite_engine.runtime.support import model_info

        ready = self.optimized.graph if self.optimized else None
        return model_info(self.graph, name, optimized=ready)


def open_file(given: str | Path, shapes: Mapping[str, tuple[int, ...]]) -> Opened:
    """Reads a model of any format. Raises LiteError."""
    from lite_engine.importers import load

    path = model_path(given)
    if not is_lite(path):
        graph = load(path, shapes=shapes)
        return Opened(graph, _base_of(graph), optimized=_optimized(graph))
    model = with_shapes(read_model(path), shapes)
    graph = model.described_graph()
    made = Opened(graph, _base_of(graph), targets=list(model.targets),
                  precision=dict(model.precisions))  # fmt: skip
    _read_versions(model, made)
    return made


def _optimized(graph: Graph) -> Optimized | None:
    """None for a graph that the passes refuse: whoever converts it learns why."""
    from lite_engine.passes import optimized

    try:
        return optimized(graph)
    except LiteError:
        return None


def _base_of(graph: Graph) -> str:
    return GIVEN if is_quantised(graph) else FLOAT


def _read_versions(model: Model, made: Opened) -> None:
    kept: dict[str, dict[str, str]] = {}
    for target, layers in model.overrides.items():
        for layer, word in layers.items():
            if word in PLACES:
                made.backends[layer] = host_target() if word == "cpu" else word
            else:
                kept.setdefault(target, {})[layer] = word
    whole = model.but(overrides=kept)
    if not model.graphs:
        made.versions = {made.base: whole}
        return
    made.int8_targets = [t for t in model.targets if model.precision(t) == "int8"]
    made.versions = {
        made.base: retarget(whole, precision=dict.fromkeys(made.int8_targets, "fp32")),
        INT8: retarget(whole, precision=dict.fromkeys(model.targets, "int8")),
    }
    for version in made.versions.values():
        version.path = model.path


def to_ship(state: SessionState, int8: Collection[str]) -> Model:
    """The chosen version with the layers that were moved by hand; targets in `int8` take the int8
    version beside it. A CPU target runs without OpenCL, so nothing of it is moved there.

    Raises UsageError without an int8 version.
    """
    model = model_of(state)
    if int8 and state.version != INT8:
        if INT8 not in state.versions:
            raise UsageError(
                tr("there is no int8 version yet"), fix=tr("call session.quantize(images) first")
            )
        model = with_int8(model, state.versions[INT8].graph, list(int8))
    for target in model.targets:
        version = INT8 if target in int8 else state.version
        moved = {
            layer: backend
            for layer, backend in backends_in(state, version).items()
            if (backend in PRECISIONS and model.precision(target) in HALF_PRECISIONS)
            or backend == "reference"
            or (target == "opencl" and backend not in (target, *PRECISIONS))
        }
        model = with_layers(model, {target: moved})
    return model
