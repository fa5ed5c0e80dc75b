"""Single layers set by hand: on another backend, or in another precision.

A layer has one name here, that of the float version. Other versions split it (b3/dw becomes
b3/dw.linear and b3/dw.hardswish); what came from the same nodes of the file is the same layer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace

from lite_engine.errors import UsageError, check_choice
from lite_engine.ir import Graph, Node
from lite_engine.model_file import Model
from lite_engine.quantize import Verdict, integer_nodes, judge, quantize_static
from lite_messages import tr

from ..names import BACKENDS, CUSTOM
from ..quantizing import FastRun, model_from
from ._state import SessionState
from .versions import base_model, drop, keep, model_of

#: What a layer's precision can be set to: "fp32" keeps it out of the integers.
PRECISIONS = ("fp32", "int8")


def precisions_of(state: SessionState) -> dict[str, str]:
    """{layer: precision} set by hand in the chosen version."""
    return dict(state.overrides.precisions) if state.version == CUSTOM else {}


def backends_in(state: SessionState, version: str | None = None) -> dict[str, str]:
    """The backends set by hand, by the node names of a version (None: the chosen one)."""
    graph, home = model_of(state, version).graph, base_model(state).graph
    return {
        node: backend
        for layer, backend in state.overrides.backends.items()
        for node in counterparts([layer], home, graph)
    }


def set_layers(
    state: SessionState, layers: Sequence[str], backend: str | None, precision: str | None
) -> None:
    """See `Session.override`. Raises UsageError, CalibrationError."""
    check_choice(tr("backend"), backend, (None, *BACKENDS))
    check_choice(tr("precision"), precision, (None, *PRECISIONS))
    names = float_layers(state, layers)
    # a float version has no integers to leave: "fp32" is then a word of the plan
    within = precision == "fp32" and state.is_base
    word = backend or (precision if within else None)
    _set_precision(state, names, None if within else precision)
    for name in names:
        state.overrides.backends.pop(name, None)
        if word is not None:
            state.overrides.backends[name] = word


def _set_precision(state: SessionState, layers: Sequence[str], precision: str | None) -> None:
    """The version "custom" with these layers in that precision; without any, the version that it
    came from."""
    held, now = state.overrides, precisions_of(state)
    base = held.base if state.version == CUSTOM else state.version
    wanted = {k: v for k, v in now.items() if k not in layers}
    wanted |= {name: precision for name in layers if precision is not None}
    if wanted == now:
        return
    if wanted:
        model, verdict = requantize(state, base, wanted)
        held.precisions, held.base, held.verdict = wanted, base, verdict
        keep(state, CUSTOM, model)
    else:
        held.precisions, held.verdict = {}, None
        drop(state, CUSTOM, base)


def counterparts(names: Collection[str], home: Graph, graph: Graph) -> list[str]:
    """The nodes of `graph` that compute what the nodes `names` of `home` do."""
    if graph is home:
        return [n.name for n in graph.nodes if n.name in names]
    sources = {s for n in home.nodes if n.name in names for s in n.sources}
    return [n.name for n in graph.nodes if n.name in names or sources.intersection(n.sources)]


def layer_of(graph: Graph, name: str) -> Node:
    """The node of that name. Raises UsageError."""
    try:
        return graph.node(name)
    except KeyError:
        raise _no_layer(name) from None


def _no_layer(name: str) -> UsageError:
    return UsageError(
        tr("there is no layer {name!r}", name=name),
        fix=tr("list them"),
        command="lite info MODEL --layers",
    )


def float_layers(state: SessionState, names: Iterable[str]) -> list[str]:
    """The float version's names of layers of the chosen version. Raises UsageError."""
    home, graph = base_model(state).graph, model_of(state).graph
    wanted = list(names)
    own = {n.name for n in home.nodes}
    known = {n.name for n in graph.nodes} | own
    for name in wanted:
        if name not in known:
            raise _no_layer(name)
    if own.issuperset(wanted):
        return wanted
    return counterparts(wanted, graph, home)


def held(state: SessionState, layer: str) -> dict[str, str]:
    """{"backend", "precision"} that a layer of the chosen version was set to, "" as planned."""
    home, graph = base_model(state).graph, model_of(state).graph
    names = counterparts([layer], graph, home)
    backends, precisions = state.overrides.backends, precisions_of(state)
    words = [backends[n] for n in names if n in backends]
    own = [precisions[n] for n in names if n in precisions]
    return {
        "backend": next((w for w in words if w not in PRECISIONS), ""),
        "precision": next((w for w in [*own, *words] if w in PRECISIONS), ""),
    }


def choices(state: SessionState, layer: str, backend: str) -> list[str]:
    """Precisions that a layer of the chosen version can be set to where `backend` runs it."""
    made, model = state.quantization, model_of(state)
    graph = made.made.parent if made is not None else base_model(state).graph
    able, _ = integer_nodes(graph)
    integer = bool(able.intersection(counterparts([layer], model.graph, graph)))
    if state.is_base and model.precision(backend) == "fp32":
        return ["int8"] if integer else []
    return list(PRECISIONS) if integer else ["fp32"] if state.is_base else []


def requantize(
    state: SessionState, base: str, precisions: Mapping[str, str]
) -> tuple[Model, Verdict]:
    """The version `base` with these layers in other precisions, and its verdict.

    Uses the calibration of `Session.quantize`. Raises UsageError where there is none, or where a
    layer cannot compute in integers; CalibrationError when the outputs fall short.
    """
    if state.quantization is None:
        raise UsageError(
            tr("the model is not calibrated yet"), fix=tr("call session.quantize(images) first")
        )
    made, home = state.quantization.made, base_model(state).graph
    parent, scheme = made.parent, made.options.scheme

    def nodes(precision: str) -> set[str]:
        layers = [k for k, v in precisions.items() if v == precision]
        return set(counterparts(layers, home, parent))

    wanted = nodes("int8")
    if base == state.base:
        kept = {n.name for n in parent.nodes} - wanted
    else:
        own = state.quantization.kept
        kept = (set(counterparts(own, parent, parent)) | nodes("fp32")) - wanted
    chosen, why = integer_nodes(parent, frozenset(kept))
    for layer in [k for k, v in precisions.items() if v == "int8"]:
        names = counterparts([layer], home, parent)
        if not chosen.intersection(names):
            reason = next((why[n] for n in names if n in why), tr("it is fused into another layer"))
            raise UsageError(
                tr("{layer} cannot compute in int8: {reason}", layer=layer, reason=reason)
            )
    scheme = replace(scheme, keep_float=frozenset(kept))
    graph = quantize_static(parent, made.finished().ranges, scheme, biases=made.biases)
    verdict = judge(
        parent, graph, made.held[:4], run=FastRun(), threshold_db=made.options.threshold_db,
        keep_float=scheme.keep_float,
    )  # fmt: skip
    verdict.require()
    return model_from(graph, base_model(state)), verdict
