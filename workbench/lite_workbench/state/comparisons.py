"""The comparisons of a session: what their sides' names mean, who ran them, what a layer gave.

A side is named "opencl" (a backend), "int8" (a version) or "int8@opencl" (both).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.compare import Side
from lite_engine.compare import compare as compare_sides
from lite_engine.compare.comparison import Comparison
from lite_engine.compare.evidence import compared_values
from lite_engine.compare.many import ComparisonOfInputs
from lite_engine.compare.widened import rounded_apart
from lite_engine.errors import BackendUnavailableError, UsageError
from lite_engine.ir import Graph
from lite_engine.model_file.precision import is_quantised
from lite_engine.runtime import Predictor
from lite_messages import tr

from ..answers_compared import reader
from ..cluster import Cluster
from ..compare_inputs import Sides, compare_inputs, inputs_of
from ..inputs import size_of
from ..names import BACKENDS
from ._state import Pair, SessionState
from .feeds import input_of
from .overrides import layer_of
from .predictors import predictor
from .versions import model_of


def backend_and_version(state: SessionState, name: str) -> tuple[str, str | None]:
    """What a side's name means; the version is None for the chosen one. Raises UsageError."""
    version, _, backend = name.rpartition("@") if "@" in name else ("", "", name)
    if backend in state.versions:
        version, backend = backend, "auto"
    if backend not in (*BACKENDS, "auto") or (version and version not in state.versions):
        sides = ", ".join([*BACKENDS, *state.versions])
        raise UsageError(
            tr("cannot compare {name!r}", name=name),
            fix=tr("choose from {sides}, or VERSION@BACKEND", sides=sides),
        )
    return backend, version or None


def current_sides(
    state: SessionState, pair: Sequence[str], chosen: str | None = None
) -> dict[str, Predictor]:
    """Side → Predictor, of the overrides of now; a side that names no version is of the `chosen`
    one (default: that of now). Raises UsageError."""
    sides = {}
    for name in pair:
        backend, version = backend_and_version(state, name)
        sides[name] = predictor(state, backend, version or chosen)
    return sides


def sides_of(state: SessionState, pair: Pair) -> dict[str, Predictor]:
    """Side → Predictor of the pair's comparison, though another version may be chosen by now."""
    if pair in state.compared:
        return state.compared[pair]
    version, _ = state.compared_of.get(pair, (state.version, ""))
    return current_sides(state, pair, version if version in state.versions else None)


def is_of_another_version(state: SessionState, pair: Pair) -> bool:
    """Was another version chosen when the pair was compared, and would a side be of that of now?"""
    if pair not in state.compared_of or state.compared_of[pair][0] == state.version:
        return False
    return any(name.partition("@")[0] in (*BACKENDS, "auto") for name in pair)


def missing_side(state: SessionState, pair: Pair) -> BackendUnavailableError | None:
    """Why a side of a comparison that was made elsewhere cannot run here."""
    try:
        sides_of(state, pair)
    except BackendUnavailableError as error:
        return error
    return None


def graph_of(state: SessionState, pair: Pair) -> Graph:
    """The graph of the comparison's baseline; of the chosen version, where no backend here runs
    the baseline."""
    known: Graph | None = state.comparisons[pair].graph
    if known is not None:
        return known
    used = state.compared.get(pair)
    try:
        return (used or current_sides(state, pair[:1]))[pair[0]].graph
    except BackendUnavailableError:
        return model_of(state).graph


def precisions_of_sides(state: SessionState, pair: Pair) -> tuple[str, str]:
    """What each side computes in: "int8" for a quantized version, else its storage."""
    used = sides_of(state, pair)
    # By the name and not by its meaning: the version may be gone by now.
    plain = (*BACKENDS, "auto", state.base)
    a, b = (used[name].precision if name.partition("@")[0] in plain else "int8" for name in pair)
    return a, b


def compare(state: SessionState, pair: Pair, image: Any, **options: Any) -> Comparison:
    """See `Session.compare`. Raises UsageError."""
    with state.busy:
        feeds = input_of(state, image)
        used = current_sides(state, pair)
        of = state.version, state.input_name  # another may be chosen while this one runs
        a, b = (Side(used[name], name) for name in pair)
        read = reader((a, b), feeds, size_of(state.image))
        made = compare_sides(a, b, feeds, progress=state.progress, read=read, **options)
        state.comparisons.pop(pair, None)  # the newest is last
        state.comparisons[pair] = made
        state.compared[pair] = used
        state.compared_of[pair] = of
        state.compared_on[pair] = feeds
        state.measured("comparison", pair)
    state.remember(f"diff = session.compare({pair[0]!r}, {pair[1]!r})")
    state.notify("comparison", made)
    return made


def compare_many(
    state: SessionState,
    data: Any,
    pair: Pair,
    *,
    limit: int | None = None,
    images: str | Path | None = None,
    workers: int | None = None,
    scheduler: str | None = None,
    client: Any = None,
    **options: Any,
) -> ComparisonOfInputs:
    """See `Session.compare_many`. Raises UsageError."""
    with state.busy:
        used = current_sides(state, pair)
        a, b = (Side(used[name], name) for name in pair)
        board = state.board.name if state.board is not None else "local"
        devices = tuple(board if used[name].device else "local" for name in pair)
        sides = Sides(a, b, model_of(state), (devices[0], devices[1]), options)
        inputs = inputs_of(data, sides.model, images=images, limit=limit)
        cluster = Cluster(workers, scheduler, client)
        made = compare_inputs(sides, inputs, cluster=cluster, progress=state.progress)
    words = repr(str(data)) if isinstance(data, str | Path) else "data"
    limited = f", limit={limit}" if limit is not None else ""
    state.remember(f"spread = session.compare_many({words}, {pair[0]!r}, {pair[1]!r}{limited})")
    state.notify("inputs", made)
    return made


def values(
    state: SessionState,
    side: str,
    layer: str,
    alone_after: str | None,
    pair: Pair | None,
    outputs: Sequence[str] = (),
) -> np.ndarray:
    """See `Session.values`. Raises UsageError."""
    # Beside the numbers of a comparison, whatever input was set since.
    known = state.compared_on.get(pair) if pair is not None else None
    feeds = input_of(state) if known is None else known
    with state.busy:
        return _values(state, feeds, side, layer, alone_after, pair, outputs)


def _values(
    state: SessionState,
    feeds: Mapping[str, np.ndarray],
    side: str,
    layer: str,
    alone_after: str | None,
    pair: Pair | None,
    outputs: Sequence[str],
) -> np.ndarray:
    used = sides_of(state, pair or (side, alone_after or side))
    if pair is not None and outputs and mixed(used, pair):
        a, b = (Side(used[name]) for name in pair)
        both = compared_values(a, b, feeds, outputs[1], alone=alone_after is not None)
        return both[pair.index(side)]
    own = Side(used[side]).at(feeds)
    node = layer_of(own.graph, layer)
    name = next((v.name for v in node.outputs if v.name in outputs), node.outputs[0].name)
    if alone_after is None:
        return Side(used[side]).values(feeds, [name])[name]
    reads = [v.name for v in node.inputs if v is not None and v.const is None]
    inner = [r for r in reads if r not in feeds]
    source = used[alone_after].run(feeds, taps=inner)
    return own.isolated([node], {**feeds, **source})[name]


def mixed(used: Mapping[str, Predictor], pair: Pair) -> bool:
    """One side holds integers, where layers and values have other names, and the other floats or
    other integers."""
    a, b = (used[name].graph for name in pair)
    return is_quantised(a) != is_quantised(b) or rounded_apart(a, b)
