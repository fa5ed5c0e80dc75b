"""Single layers set by hand: on another backend, or in another precision.

A layer has one name here, that of the float version. Other versions cut it up (b3/dw becomes
b3/dw.linear and b3/dw.hardswish); what came from the same nodes of the file is the same layer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError

from .names import BACKENDS, CUSTOM, FLOAT, GIVEN, INT8

if TYPE_CHECKING:
    from .session import Session

#: What a layer's precision can be set to: "fp32" keeps it out of the integers.
PRECISIONS = ("fp32", "int8")
HALVES = ("fp16", "bf16")


class ByHand:
    """``session.override(layers, backend, precision=…)`` is kept here.

    overrides  {layer: backend, or "fp32" in a half-precision version}
    verdict    of the version "custom", None without one

    Layers have the float version's names.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self.overrides: dict[str, str] = {}
        self.verdict: Any = None
        self._precisions: dict[str, str] = {}
        self._base = ""

    @property
    def precisions(self) -> dict[str, str]:
        """{layer: precision} of the chosen version."""
        return dict(self._precisions) if self._session.version == CUSTOM else {}

    def moved(self, version: str | None = None) -> dict[str, str]:
        """`overrides` by the node names of a version."""
        session = self._session
        model = session.model if version is None else session.versions[version]
        home = session.base_model.graph
        return {
            node: backend
            for layer, backend in self.overrides.items()
            for node in counterparts([layer], home, model.graph)
        }

    def set(self, layers: Sequence[str], backend: str | None, precision: str | None) -> None:
        """See `Session.override`. Raises UsageError, CalibrationError."""
        if backend not in (None, *BACKENDS):
            raise UsageError(f"backend {backend!r} is not one of {', '.join(BACKENDS)}")
        if precision not in (None, *PRECISIONS):
            raise UsageError(f"precision {precision!r} is not one of {', '.join(PRECISIONS)}")
        names = float_layers(layers, self._session)
        # a float version has no integers to leave: "fp32" is then a word of the plan
        within = precision == "fp32" and self._session.is_base
        word = backend or (precision if within else None)
        self._set_precision(names, None if within else precision)
        for name in names:
            self.overrides.pop(name, None)
            if word is not None:
                self.overrides[name] = word

    def _set_precision(self, layers: Sequence[str], precision: str | None) -> None:
        """The version "custom" with these layers otherwise; the one it came from when none is."""
        session = self._session
        base = self._base if session.version == CUSTOM else session.version
        wanted = {k: v for k, v in self.precisions.items() if k not in layers}
        wanted |= {name: precision for name in layers if precision is not None}
        if wanted == self.precisions:
            return
        if wanted:
            model, self.verdict = requantize(session, base, wanted)
            self._precisions, self._base = wanted, base
            session.set_version(CUSTOM, model)
        else:
            self._precisions, self.verdict = {}, None
            session.drop_version(CUSTOM, base)


def counterparts(names: Collection[str], home: Any, graph: Any) -> list[str]:
    """The nodes of `graph` that compute what the nodes `names` of `home` do."""
    if graph is home:
        return [n.name for n in graph.nodes if n.name in names]
    sources = {s for n in home.nodes if n.name in names for s in n.sources}
    return [n.name for n in graph.nodes if n.name in names or sources.intersection(n.sources)]


def layer_of(graph: Any, name: str) -> Any:
    """The node of that name. Raises UsageError."""
    try:
        return graph.node(name)
    except KeyError:
        raise UsageError(
            f"no layer is called {name!r}", fix="list them", command="lite info MODEL --layers"
        ) from None


def float_layers(names: Iterable[str], session: Session) -> list[str]:
    """The float version's names of layers of the chosen version. Raises UsageError."""
    home, graph = session.base_model.graph, session.model.graph
    wanted = list(names)
    known = {n.name for n in graph.nodes} | {n.name for n in home.nodes}
    for name in wanted:
        if name not in known:
            raise UsageError(
                f"no layer is called {name!r}", fix="list them", command="lite info MODEL --layers"
            )
    own = {n.name for n in home.nodes}
    if own.issuperset(wanted):
        return wanted
    return counterparts(wanted, graph, home)


def held(session: Session, layer: str) -> dict[str, str]:
    """{"backend", "precision"} that a layer of the chosen version was set to, "" as planned."""
    home, graph = session.base_model.graph, session.model.graph
    names = counterparts([layer], graph, home)
    words = [session.by_hand.overrides[n] for n in names if n in session.by_hand.overrides]
    own = [session.by_hand.precisions[n] for n in names if n in session.by_hand.precisions]
    return {
        "backend": next((w for w in words if w not in PRECISIONS), ""),
        "precision": next((w for w in [*own, *words] if w in PRECISIONS), ""),
    }


def choices(session: Session, layer: str, backend: str) -> list[str]:
    """Precisions that a layer of the chosen version can be set to where `backend` runs it."""
    from lite_engine.quantize import integer_nodes

    made = session.quantization
    graph = made.made.parent if made is not None else session.base_model.graph
    home = session.model.graph
    able, _ = integer_nodes(graph)
    found = counterparts([layer], home, graph)
    integer = bool(able.intersection(found))
    if session.is_base and session.model.precision(backend) == "fp32":
        return ["int8"] if integer else []
    return list(PRECISIONS) if integer else ["fp32"] if session.is_base else []


def from_file(model: Any) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """A `.lite` file's Model as a session holds it: versions by name, {layer: backend} that were
    set by hand, and the targets that are int8 beside others in float."""
    from lite_engine.model_file import Model, retarget
    from lite_engine.model_file.layers import PLACES
    from lite_engine.model_file.precision import is_quantised
    from lite_engine.runtime import host_target

    moved: dict[str, str] = {}
    kept: dict[str, dict[str, str]] = {}
    for target, layers in model.overrides.items():
        for layer, word in layers.items():
            if word in PLACES:
                moved[layer] = host_target() if word == "cpu" else word
            else:
                kept.setdefault(target, {})[layer] = word
    whole = model.but(overrides=kept)
    if not model.graphs:
        return {GIVEN if is_quantised(model.graph) else FLOAT: whole}, moved, []
    targets = [t for t in model.targets if model.precision(t) == "int8"]
    floats = retarget(whole, precision=dict.fromkeys(targets, "fp32"))
    integers: Model = retarget(whole, precision=dict.fromkeys(model.targets, "int8"))
    for made in (floats, integers):
        made.path = model.path
    return {FLOAT: floats, INT8: integers}, moved, targets


def to_ship(session: Session, int8: Collection[str]) -> Any:
    """The chosen version with the layers that were moved by hand; targets in `int8` take the int8
    version beside it. A CPU target runs without OpenCL, so nothing of it is moved there.

    Raises UsageError without an int8 version.
    """
    from lite_engine.model_file import with_int8, with_layers

    model, versions = session.model, session.versions
    if int8 and session.version != INT8:
        if INT8 not in versions:
            raise UsageError(
                "there is no int8 version yet", fix="session.quantize(images) comes first"
            )
        model = with_int8(model, versions[INT8].graph, list(int8))
    for target in model.targets:
        version = INT8 if target in int8 else session.version
        moved = {
            layer: backend
            for layer, backend in session.by_hand.moved(version).items()
            if (backend in PRECISIONS and model.precision(target) in HALVES)
            or backend == "reference"
            or (target == "opencl" and backend not in (target, *PRECISIONS))
        }
        model = with_layers(model, {target: moved})
    return model


def requantize(session: Session, base: str, precisions: Mapping[str, str]) -> tuple[Any, Any]:
    """(Model, Verdict) of the version `base` with these layers otherwise.

    Uses the calibration of `session.quantize`. Raises UsageError where there is none, or where a
    layer cannot compute in integers; CalibrationError when the outputs fall short.
    """
    from lite_engine.quantize import integer_nodes, judge, quantize_static

    from .quantizing import FastRun, model_of

    if session.quantization is None:
        raise UsageError("nothing is calibrated yet", fix="session.quantize(images) comes first")
    made, home = session.quantization.made, session.base_model.graph
    parent, scheme = made.parent, made.options.scheme

    def nodes(precision: str) -> set[str]:
        layers = [k for k, v in precisions.items() if v == precision]
        return set(counterparts(layers, home, parent))

    wanted = nodes("int8")
    if base == session.base:
        kept = {n.name for n in parent.nodes} - wanted
    else:
        own = session.quantization.kept
        kept = (set(counterparts(own, parent, parent)) | nodes("fp32")) - wanted
    chosen, why = integer_nodes(parent, frozenset(kept))
    for layer in [k for k, v in precisions.items() if v == "int8"]:
        own = counterparts([layer], home, parent)
        if not chosen.intersection(own):
            reason = next((why[n] for n in own if n in why), "it has no node of its own")
            raise UsageError(f"{layer} cannot compute in int8: {reason}")
    scheme = replace(scheme, keep_float=frozenset(kept))
    graph = quantize_static(parent, made.ranges, scheme, biases=made.biases)
    verdict = judge(
        parent, graph, made.held[:4], run=FastRun(), threshold_db=made.options.threshold_db,
        keep_float=scheme.keep_float,
    )  # fmt: skip
    verdict.require()
    return model_of(graph, session.base_model), verdict
