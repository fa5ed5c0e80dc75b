"""Predictor: a model on a backend. Plans per input shapes, runs, taps."""

from __future__ import annotations

import threading
import warnings
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np
from lite_messages import tr

from .. import settings
from .._deprecated import deprecated_name
from ..errors import BackendUnavailableError, LiteWarning, ShapeError, UsageError
from ..mapped import FileState, maps
from ..model_file import Model, open_model
from ..model_file.layers import layer_called, of_graph, words_of
from ..model_file.precision import CPU_TARGETS, PRECISIONS, told
from .choice import Decision, choose, held_on, host_target, is_plugin, precision_on, usability
from .device_names import device_of
from .feeds import checked_feeds
from .forks import watch
from .kernel_check import run_checks
from .overlap import Occupied
from .stored import StoredProgram

if TYPE_CHECKING:  # a stored program runs without these
    from ..backends import LayersRefused
    from ..devices import Device, DeviceBackend
    from ..ir import Graph
    from ..plan import Plan
    from .execute import Execution
    from .shares import Share

T = TypeVar("T")
PLANS_KEPT = 4


class Predictor:
    """Runs a model: a `.lite` path, a Model, or a Graph.

    `backend` is auto, x86, arm, wasm, opencl, reference or one of an installed package;
    LITE_BACKEND and then the file's preference decide when it is auto. `overrides` (layer → backend
    or precision) and `tuning` (layer → kernel) go before what the file says of its target; `faults`
    spoils layers on purpose (plan/faults.py), `device` (or its name, as `--device` takes it) runs
    CPU and OpenCL elsewhere. `mmap=False` (default: LITE_MMAP) reads a file into memory; one that
    is mapped may not be overwritten in place. A new set of input shapes makes (and caches) a new
    plan. Threads may share one: their runs take turns.
    Raises ModelFormatError, TargetMismatchError, BackendUnavailableError, ShapeError, UsageError.
    """

    def __init__(
        self,
        model: str | Path | Model | Graph,
        backend: str = "auto",
        *,
        threads: int | None = None,
        precision: str | None = None,
        overrides: Mapping[str, str] | None = None,
        tuning: Mapping[str, str] | None = None,
        faults: Mapping[str, str] | None = None,
        device: Device | str | None = None,
        mmap: bool | None = None,
    ) -> None:
        self.model = open_model(model, mmap=mmap)
        self.device = device_of(device)
        self.decision: Decision = choose(self.model, backend, precision, self.device)
        self._may_leave = backend == "auto" and settings.get("LITE_BACKEND") == "auto"
        self.backend = self.decision.backend
        self.precision = self.decision.precision
        self.threads = settings.threads(threads)
        self._turn = threading.RLock()
        watch(self._turn)
        self._given = words_of(overrides), dict(tuning or {})
        for layer in {**self._given[0], **self._given[1], **(faults or {})}:
            layer_called(self.graph, layer)
        self._choose_layers()
        self.faults = _checked_faults(faults or {})
        #: Layers that the device has no way left to run, and why.
        self.refused: dict[str, str] = {}
        self._executions: OrderedDict[tuple[Any, ...], Execution] = OrderedDict()
        self._stored: StoredProgram | None = None
        self._files: list[FileState] = []  # of the graph that the plans are made of
        if self._may_use_stored() and (maps() if mmap is None else mmap):
            self._stored = StoredProgram.open(self.model, threads=self.threads)

    def _may_use_stored(self) -> bool:
        """The file's own program is what planning here would give."""
        asked = any(self._given) or self.faults or self.device
        own, _ = precision_on(self.model, self.backend, None)
        here = self.backend == host_target() and self.precision == own
        return here and not asked and not self.model.is_read

    def _choose_layers(self) -> None:
        """What the file says of single layers of this target, and what the caller says."""
        overrides, tuning = self._given
        self.overrides = {
            name: held_on(self.backend, word, name in overrides, self.device)[0]
            if word in PRECISIONS and not is_plugin(self.backend)
            else word
            for name, word in {**self.model.overrides.get(self.backend, {}), **overrides}.items()
        }
        self.tuning = {**self.model.tuning.get(self.backend, {}), **tuning}
        self.decision.layers = {**self.tuning, **self.overrides}

    def __getstate__(self) -> NoReturn:
        """Memory of the native runtime belongs to one process. Raises UsageError."""
        fix = tr("send the model's path, and open a Predictor in the other process")
        raise UsageError(tr("a Predictor cannot be copied or pickled"), fix=fix)

    # ---- what the model is

    def __repr__(self) -> str:
        inputs, outputs = self.input_names, self.output_names
        return f"<Predictor on {self.backend} {self.precision}: {inputs} -> {outputs}>"

    @property
    def graph(self) -> Graph:
        """The optimised graph, in the precision that it runs in."""
        return self.model.graph_in(self.precision)

    @property
    def display_precision(self) -> str:
        """What people read of it: int8 for a model whose integers came with its file, too."""
        return told(self.graph, self.precision)

    told_precision = deprecated_name("told_precision", "display_precision")

    @property
    def input_names(self) -> list[str]:
        if self._stored:
            return self._stored.input_names
        return [v.name for v in self.graph.inputs]

    @property
    def output_names(self) -> list[str]:
        if self._stored:
            return self._stored.output_names
        return [v.name for v in self.graph.outputs]

    def explain(self) -> str:
        """Why this backend: each candidate with its reason."""
        return self.decision.text(self.display_precision)

    # ---- running

    def run(
        self, feeds: Mapping[str, Any] | None = None, /, *, taps: Iterable[str] = (), **named: Any
    ) -> dict[str, np.ndarray]:
        """Input name → array gives output name → array; `taps` adds inner values under their names,
        or the (first) output of layers under theirs. Arrays have the input's type and shape; lists
        and numbers are converted where their values fit. bf16 is held as its bits in uint16; a bf16
        input also takes float32 and ml_dtypes.bfloat16.

        An OpenCL device that fails while it was chosen automatically is left with a warning, and
        the CPU runs instead. Raises ShapeError for a missing, unknown or misfitting input,
        BackendUnavailableError when the device fails, LiteError when LITE_CHECK=1 finds a kernel
        that is wrong.
        """
        if feeds is not None and not isinstance(feeds, Mapping):
            raise UsageError(
                tr("inputs are a {kind}, not a mapping", kind=type(feeds).__name__),
                fix=tr("give them by name, like run({{{input_names!r}: array}})",
                       input_names=self.input_names[0]),
            )  # fmt: skip
        with self._turn:
            asked = [taps] if isinstance(taps, str) else list(taps)
            return self._in_turn({**(feeds or {}), **named}, asked)

    def _in_turn(self, given: Mapping[str, Any], wanted: list[str]) -> dict[str, np.ndarray]:
        checked = settings.get("LITE_CHECK") and self.backend != "reference"
        if self._stored and not wanted and not checked and self._stored.fits(given):
            return self._stored.run(given)
        self._check_files()
        arrays = self.check_feeds(given)
        outputs = self.or_on_the_cpu(lambda: self._run(arrays, wanted))
        if checked:  # afterwards: an OpenCL device has given up by now what is wrong on it
            run_checks(self, arrays)
        return outputs

    def or_on_the_cpu(self, work: Callable[[], T]) -> T:
        """`work`, and again with single layers on the CPU where a device cannot run them, or all of
        it when an OpenCL device fails that was chosen automatically. Raises
        BackendUnavailableError when it was asked for."""
        from ..backends import LayersRefused

        while True:
            try:
                return work()
            except LayersRefused as error:
                self._refuse(error)
            except BackendUnavailableError as error:
                if not (self._may_leave and self.backend == "opencl"):
                    raise
                self._leave_device(error)

    def _refuse(self, error: LayersRefused) -> None:
        """From here on another backend runs these layers. Raises the error where one does."""
        if error.layers.keys() <= self.refused.keys():
            raise error
        self.refused.update(error.layers)
        self.decision.refused = self.refused
        self.forget_plans()

    def _leave_device(self, error: BackendUnavailableError) -> None:
        """From here on the CPU runs this model."""
        cpu = self.device.target() if self.device else host_target()
        self.backend = cpu if self.device or usability(cpu).usable else "reference"
        self.precision = self.model.precision(self.backend)
        self.decision.backend, self.decision.precision = self.backend, self.precision
        self.decision.placement = ""
        self.refused.clear()
        self._choose_layers()
        self.decision.reasons.append(
            ("opencl", False, tr("failed while running: {error}", error=error))
        )
        self.forget_plans()
        said = tr("{error}; {backend} runs the model instead", error=error, backend=self.backend)
        warnings.warn(said, LiteWarning, stacklevel=4)

    def _run(self, arrays: Mapping[str, np.ndarray], wanted: list[str]) -> dict[str, np.ndarray]:
        execution = self.execution({n: a.shape for n, a in arrays.items()})
        values = {name: self._value_of(name, execution.plan) for name in wanted}
        execution.tap(list(dict.fromkeys(values.values())))
        ordered = [arrays[n] for n in self.input_names]
        outputs = execution.run(ordered)
        result = dict(zip(self.output_names, outputs, strict=True))
        given = dict(zip(execution.plan.inputs, ordered, strict=True))
        occupied = Occupied()
        for array in (*ordered, *outputs):
            occupied.add(array)
        for name, value in values.items():
            array = execution.tapped(value, given)
            result[name] = array.copy("K") if occupied.add(array) else array
        return result

    def _value_of(self, name: str, plan: Plan) -> str:
        """A value's name, or the first value that a layer of that name makes."""
        if name in plan.tensor_of:
            return name
        made = {n.name: n.outputs[0].name for n in self.graph.nodes}
        if made.get(name) in plan.tensor_of:
            return made[name]
        import difflib

        known = [*plan.tensor_of, *made]
        inside = [n.name for n in self.graph.nodes if name in n.sources]
        close = inside or difflib.get_close_matches(str(name), known, 3)
        hint = tr("it is part of {inside}; ", inside=inside[0]) if inside else ""
        hint += "" if inside or not close else tr("close: {names}; ", names=", ".join(close))
        raise ShapeError(
            tr("there is no value or layer {name!r}", name=name),
            fix=tr("{hint}`lite info MODEL --layers --optimized` lists the layers", hint=hint),
        )

    def _check_files(self) -> None:
        for file in self._files:
            file.check()

    def check_feeds(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Arrays of the right type and rank by input name. Raises ShapeError."""
        return checked_feeds(self.graph.inputs, feeds)

    def execution(self, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Execution:
        """The compiled plan for these input shapes (the model's own when None)."""
        if shapes is None:
            shapes = {v.name: v.shape for v in self.graph.inputs}  # type: ignore[misc]
        key = tuple(sorted(shapes.items()))
        with self._turn:
            if key not in self._executions:
                self._stored = None  # one program in memory is enough
                self._executions[key] = self._compiled(shapes)
                while len(self._executions) > PLANS_KEPT:
                    self._executions.popitem(last=False)
            self._executions.move_to_end(key)
            return self._executions[key]

    def _compiled(self, shapes: Mapping[str, tuple[int, ...]]) -> Execution:
        """Plans until the device takes every layer that is left to it."""
        from ..backends import LayersRefused
        from ..plan import make_plan
        from .accelerators import accelerators, own_backend
        from .execute import Execution

        self._files = self.graph.files()
        self._check_files()
        while True:
            plan = make_plan(
                self.graph,
                own_backend(self.backend),
                shapes,
                precision=self.precision,
                overrides=self.overrides,
                tuning=self.tuning,
                faults=self.faults,
                refused=self.refused,
                accelerators=accelerators(self.backend, self.overrides),
                accelerate=is_plugin(self.backend),
            )
            if self.backend == "opencl" and self.device is None:
                self._before_opencl(plan)
            try:
                return Execution(plan, threads=self.threads, instead=self._elsewhere())
            except LayersRefused as error:
                self._refuse(error)

    def _before_opencl(self, plan: Plan) -> None:
        """The device learns the file's measured ways; what to expect of the plan is noted."""
        from ..backends import Offload, Tunable, get_backend
        from .unmeasured import unmeasured

        backend = get_backend("opencl")
        if isinstance(backend, Tunable):
            path = self.model.path
            backend.learn(self.model.tuning, path.parent if path else None)
        if not self.decision.placement and isinstance(backend, Offload):
            self.decision.placement = unmeasured(plan, backend.device_kind(), self.threads)

    @property
    def _foreign(self) -> bool:
        return self.backend in CPU_TARGETS and self.backend != host_target()

    @property
    def emulated(self) -> bool:
        """Whether it runs under an emulator, where durations mean nothing."""
        if self.device is None:
            return self._foreign and self.backend == "arm"
        return not self.device.times_meaningful

    def _elsewhere(self) -> DeviceBackend | None:
        """What runs the steps: the device, the emulator for another machine's CPU, the engine for
        WebAssembly, or None for here."""
        if self.device is None and not self._foreign:
            return None
        from ..devices import DeviceBackend, EmulatedDevice, WasmDevice

        if self.device is None:
            self.device = WasmDevice() if self.backend == "wasm" else EmulatedDevice()
        return DeviceBackend(self.device)

    def like(self, graph: Graph) -> Predictor:
        """A predictor of another graph with this one's backend, threads and precision, and what was
        chosen for its layers."""
        placed: dict[str, str] = {}
        if is_plugin(self.backend):  # alone a layer may not be worth its copies
            steps = [s for e in self._executions.values() for s in e.plan.steps]
            placed = {s.name: s.backend for s in steps if s.node is not None}
        return Predictor(
            Model(graph, metadata=dict(self.model.metadata)),
            self.backend,
            threads=self.threads,
            precision=self.precision,
            overrides=of_graph({**placed, **self.overrides}, graph),
            tuning=of_graph(self.tuning, graph),
            faults=of_graph(self.faults, graph),
            device=self.device,
        )

    def send(self, layers: Mapping[str, str]) -> None:
        """From here on these layers run on these backends. Raises UsageError."""
        with self._turn:
            self._given[0].update(words_of(layers))
            self._choose_layers()
            self.forget_plans()

    def forget_plans(self) -> None:
        """The next run plans and compiles again."""
        with self._turn:
            self._stored = None
            self._executions.clear()

    def plan(self, shapes: Mapping[str, tuple[int, ...]] | None = None) -> Plan:
        return self.execution(shapes).plan

    def idle_layers(self, shapes: Mapping[str, tuple[int, ...]] | None = None) -> int:
        """How many layers had no step in the last run at these shapes: views of what is there."""
        from .shares import layer_times

        return len({n.name for n in self.graph.nodes} - layer_times(self.execution(shapes)).keys())

    def shares(self, shapes: Mapping[str, tuple[int, ...]] | None = None) -> dict[str, Share]:
        """Backend → its share of the layers and of their time in the last run at these shapes."""
        from .shares import layer_times, shares

        if self._stored:
            return self._stored.shares()
        found = layer_times(self.execution(shapes)).values()
        return shares(found, timed=not self.emulated)


def _checked_faults(faults: Mapping[str, str]) -> dict[str, str]:
    if not faults:
        return {}
    from ..plan.faults import check_kind

    return {layer: check_kind(kind) for layer, kind in faults.items()}
