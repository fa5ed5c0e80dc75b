"""A plug-in as a backend of the engine: what it raises or gives back wrongly costs a sub-graph."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from lite_messages import tr

from ...errors import BackendUnavailableError, LiteError, UsageError
from ...extensions import BACKENDS, found
from ...ir import Graph, Node, format_shape, to_text
from ...plan import Segment
from ...plan.accelerate import LAUNCH_MS, MS_PER_BYTE
from ...plan.host_cost import host_ms
from .._base import SHARED, Backend, Executable, LayersRefused, StepTime
from .._usability import Usability
from . import blobs
from .contract import (
    BackendPlugin,
    Borders,
    Cached,
    CompiledGraph,
    Estimates,
    Portable,
    Precisions,
    Tapped,
    Timed,
)
from .probe import made, missing, usability_of
from .subgraph import Subgraph

T = TypeVar("T")
_ASSUMED_SHARE = 0.5


class PluginBackend(Backend):
    """The backend called `name`, of whatever package has it. Also the planner's `Accelerator`."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._plugin: BackendPlugin | None = None

    @property
    def origin(self) -> str:
        """The distribution and its version."""
        extension = found(BACKENDS).get(self.name)
        return extension.origin if extension else ""

    @property
    def plugin(self) -> BackendPlugin:
        """Raises BackendUnavailableError when it is not installed or cannot be made."""
        if self._plugin is None:
            state = self.usability()
            extension = found(BACKENDS).get(self.name)
            if extension is None or not state.usable:
                raise state.error(BackendUnavailableError)
            try:
                self._plugin = made(extension)
            except Exception as error:
                raise BackendUnavailableError(
                    tr("{name} raised {error!r}", name=self.name, error=error)
                ) from error
        return self._plugin

    def usability(self) -> Usability:
        return usability_of(self.name) if self.name in found(BACKENDS) else missing(self.name)

    @property
    def precisions(self) -> Sequence[str]:
        plugin = self.plugin
        return tuple(plugin.precisions) if isinstance(plugin, Precisions) else ("fp32",)

    # ---- what the planner asks

    def refusal(self, node: Node) -> str:
        try:
            return str(self.plugin.supports(node))
        except Exception as error:  # noqa: BLE001 - other people's code may raise anything
            return tr("{name} raised {error!r}", name=self.name, error=error)

    def node_ms(self, node: Node, host_ms: float) -> float:
        return self._estimate(lambda e: e.node_ms(node), _ASSUMED_SHARE * host_ms)

    def graph_ms(self, nodes: Sequence[Node], host_ms: float) -> float:
        return self._estimate(
            lambda e: e.graph_ms(nodes), self.border_cost()[0] + _ASSUMED_SHARE * host_ms
        )

    def _estimate(self, ask: Callable[[Estimates], float], assumed: float) -> float:
        if not isinstance(self.plugin, Estimates):
            return assumed
        try:
            ms = float(ask(self.plugin))
        except Exception:  # noqa: BLE001 - other people's code may raise anything
            return assumed
        return ms if ms >= 0 else assumed  # not a number compares false

    def border_cost(self) -> tuple[float, float, float]:
        if isinstance(self.plugin, Borders):
            try:
                launch, each, per_byte = map(float, self.plugin.border_cost())
            except Exception:  # noqa: BLE001 - other people's code may raise anything
                return LAUNCH_MS, 0.0, MS_PER_BYTE
            return max(0.0, launch), max(0.0, each), max(0.0, per_byte)
        return LAUNCH_MS, 0.0, MS_PER_BYTE

    def blob(self, graph: Graph) -> bytes:
        """A sub-graph for the backend's library on a device. Raises UsageError for a plug-in that
        has none, LiteError with what its code raises."""
        if not isinstance(self.plugin, Portable):
            raise UsageError(tr("{name} has no form for running without Python", name=self.name))
        try:
            return bytes(self.plugin.blob(graph))
        except Exception as error:
            raise LiteError(tr("{name} raised {error!r}", name=self.name, error=error)) from error

    # ---- what the runtime asks

    def compile(self, segment: Segment, *, threads: int) -> PluginExecutable:
        return PluginExecutable(self, segment, threads=threads)


class PluginExecutable(Executable):
    """A sub-graph on a plug-in. Raises LayersRefused with all of its layers for whatever fails."""

    def __init__(self, backend: PluginBackend, segment: Segment, *, threads: int) -> None:
        self.backend = backend
        self.plan = segment.plan
        self.threads = threads
        self.subgraph = Subgraph(segment)
        self._layers = [s.name for s in segment.plan.steps]
        self._compiled = self._guard(self._compile)
        self._wanted: list[int] = []
        self._outputs: dict[int, np.ndarray] = {}
        self._ns = 0

    def _guard(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except LayersRefused:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}".splitlines()[0][:500]
            raise self._refused(
                tr("{name} failed: {reason}", name=self.backend.name, reason=reason)
            ) from error

    def _refused(self, reason: str) -> LayersRefused:
        return LayersRefused(dict.fromkeys(self._layers, reason))

    def _compile(self) -> CompiledGraph:
        plugin, graph, precision = self.backend.plugin, self.subgraph.graph, self.plan.precision
        options: dict[str, Any] = {"threads": self.threads, "precision": precision}
        if not isinstance(plugin, Cached):
            return plugin.compile(graph, **options)
        key = _key(self.backend, plugin, self.subgraph, options)
        blob = blobs.read(key)
        if blob is not None:
            try:
                return plugin.restore(blob, graph, **options)
            except Exception:  # noqa: BLE001 - a blob that does not open is compiled again
                blobs.forget(key)
        compiled = plugin.compile(graph, **options)
        blobs.write(key, plugin.save(compiled))
        return compiled

    # ---- running

    def run(self, inputs: Sequence[Any]) -> list[Any]:
        arrays = dict(zip(self.plan.inputs, inputs, strict=True))
        given = self.subgraph.read(arrays)
        begin = time.perf_counter_ns()
        results = self._guard(lambda: [np.asarray(a) for a in self._compiled.run(given)])
        self._ns = time.perf_counter_ns() - begin
        expected = self.subgraph.graph.outputs
        if len(results) != len(expected):
            raise self._refused(
                tr(
                    "{name} gave {count} outputs, expected {expected}",
                    name=self.backend.name,
                    count=len(results),
                    expected=len(expected),
                )
            )
        for value, array in zip(expected, results):
            if array.shape != value.shape or array.dtype != value.type.dtype.np:
                raise self._refused(
                    tr(
                        "{name} gave {got} for {value}, expected {expected}",
                        name=self.backend.name,
                        got=f"{array.dtype} {format_shape(array.shape)}",
                        value=value.name,
                        expected=value.type,
                    )
                )
        by_value = {id(v): a for v, a in zip(expected, results)}
        self._outputs = {
            tensor: np.ascontiguousarray(by_value[id(value)])
            for tensor, value in self.subgraph.made.items()
            if id(value) in by_value
        }
        return [self._outputs[i] for i in self.plan.outputs]

    def times(self) -> list[StepTime]:
        """Of the compiled graph, where it knows them; otherwise the layers' shares of its time by
        their estimates."""
        found: Mapping[str, tuple[int, int]] = {}
        if isinstance(self._compiled, Timed):
            found = self._guard(lambda: dict(self._compiled.times()))  # type: ignore[attr-defined]
        name = self.backend.name
        if found:
            return [
                StepTime(
                    *found.get(s.name, (0, 0)), f"{name}" if s.name in found else f"{name} (fused)"
                )
                for s in self.plan.steps
            ]
        weights = [host_ms(s.node) if s.node is not None else 0.0 for s in self.plan.steps]
        scale = self._ns / (sum(weights) or 1.0)
        out, at = [], 0.0
        for weight in weights:
            ended = at + weight * scale
            out.append(StepTime(round(at), round(ended), f"{name} {SHARED}"))
            at = ended
        return out

    # ---- looking inside

    def tap(self, tensors: Sequence[int]) -> None:
        wanted = [i for i in tensors if i in self.subgraph.made]
        if wanted == self._wanted:
            return
        self._wanted = wanted
        values = [self.subgraph.made[i] for i in wanted]
        if isinstance(self._compiled, Tapped):
            tapping = self._compiled
            self._guard(lambda: tapping.tap([v.name for v in values]))
            return
        outputs = self.subgraph.outputs
        self.subgraph.graph.outputs = outputs + [
            v for v in dict.fromkeys(values) if not any(v is o for o in outputs)
        ]
        self._compiled = self._guard(self._compile)

    def tapped(self, tensor: int) -> np.ndarray:
        if tensor in self._outputs:
            return self._outputs[tensor]
        assert isinstance(self._compiled, Tapped)
        compiled, name = self._compiled, self.subgraph.made[tensor].name
        return self._guard(lambda: np.ascontiguousarray(compiled.tapped(name)))

    def memory(self) -> dict[str, int]:
        return {}


def _key(
    backend: PluginBackend, plugin: Cached, subgraph: Subgraph, options: Mapping[str, Any]
) -> str:
    """Names a compiled graph: by the plug-in, its library, the graph and its weights."""
    arrays: list[np.ndarray] = []
    text = to_text(subgraph.graph, arrays)
    digest = hashlib.blake2b(digest_size=20)
    for part in (
        backend.name,
        backend.origin,
        plugin.version(),
        repr(sorted(options.items())),
        text,
    ):
        digest.update(part.encode() + b"\0")
    for array in arrays:
        digest.update(np.ascontiguousarray(array).tobytes())
    return f"{backend.name}-{digest.hexdigest()}"
