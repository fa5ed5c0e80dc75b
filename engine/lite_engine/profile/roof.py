"""The roofs of a roofline, measured: how fast this device multiplies and moves at best.

A large matrix product and a convolution of one by one give the arithmetic roof, convolutions of
bytes that of integers, a copy-like operator on an array larger than any cache the memory roof, the
same on one that fits a core's cache the cache roof. They run as ordinary programs of the backend,
so that the roofs are what a layer of ours could reach, and are kept per machine.
"""

from __future__ import annotations

import contextlib
import json
from dataclasses import asdict, dataclass, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr, trn

from .. import settings
from .._version import __version__
from ..devices import Device, DeviceBackend, usable_opencl
from ..documents import parse
from ..errors import LiteError, ModelFormatError
from ..files import write_file
from ..ir import DType, Graph, Value
from ..plan import cut
from ..runtime.choice import usability
from ..runtime.execute import Execution
from ..runtime.predictor import Predictor
from .environment import cpu_name

PRODUCT_SIDE = 512
CONV = (256, 28, 28, 256)  # channels, height, width, filters
MEMORY_ELEMS = 16 << 20
PAGE_ELEMS = 4 << 20  # a page's memory is smaller
CACHE_ELEMS = 64 << 10
RUNS = 7
#: How many profiles measure the roof anew, in case the machine was busy the first time.
MEASURED = 3


@dataclass(frozen=True)
class Roof:
    """Measured limits of one backend. `cache_gbytes_per_s` holds for layers that move at most
    `cache_bytes`; `integer_gops` for products of bytes, 0 where the backend has none."""

    gflops: float
    gbytes_per_s: float
    cache_gbytes_per_s: float
    what: str
    cache_bytes: int = 8 * CACHE_ELEMS
    measured: int = 1
    integer_gops: float = 0.0
    date: str = ""  # of the newest measurement, as in 2026-11-24

    def better(self, other: Roof) -> Roof:
        """The higher of two measurements: what disturbs one can only lower it."""
        return replace(
            self,
            gflops=max(self.gflops, other.gflops),
            gbytes_per_s=max(self.gbytes_per_s, other.gbytes_per_s),
            cache_gbytes_per_s=max(self.cache_gbytes_per_s, other.cache_gbytes_per_s),
            measured=self.measured + other.measured,
            integer_gops=max(self.integer_gops, other.integer_gops),
            date=max(self.date, other.date),
        )

    def fraction(self, flops: int, nbytes: int, ms: float, integer: bool = False) -> float | None:
        """The share of the attainable performance that a layer reaches; None when it does nothing.
        Its compute and its memory traffic set the shortest possible time. Above 1 the roof is
        wrong: the machine was busy when it was measured."""
        least_ms = max(self._times(flops, nbytes, integer))
        return least_ms / ms if least_ms and ms > 0 else None

    def bound_by(self, flops: int, nbytes: int, integer: bool = False) -> str:
        """ "compute" or "memory": what limits a layer."""
        arithmetic, memory = self._times(flops, nbytes, integer)
        return "compute" if arithmetic >= memory else "memory"

    def _times(self, flops: int, nbytes: int, integer: bool) -> tuple[float, float]:
        """ms that the arithmetic and the bytes take at least."""
        rate = self.cache_gbytes_per_s if nbytes <= self.cache_bytes else self.gbytes_per_s
        arithmetic = (self.integer_gops or self.gflops) if integer else self.gflops
        return flops / arithmetic / 1e6, nbytes / rate / 1e6

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def forget_roofs() -> None:
    """The next profiles measure the roofs of this machine anew."""
    with contextlib.suppress(OSError):
        (settings.cache_dir() / "roofs.json").unlink()


def measured_roof(predictor: Predictor) -> Roof | None:
    """The roof of this predictor's backend, threads and precision; kept per machine.

    None where times mean nothing (emulated) or nobody asks (the NumPy reference).
    """
    if predictor.backend == "reference" or predictor.emulated:
        return None
    key = " | ".join(
        [*_machine(predictor), predictor.backend, f"{predictor.threads} threads",
         predictor.precision, __version__]
    )  # fmt: skip
    path = settings.cache_dir() / "roofs.json"
    known = _read(path)
    old = Roof(**known[key]) if key in known else None
    if old is not None and old.measured >= MEASURED:
        return old
    try:
        new = _measure(predictor)
    except LiteError:
        return old  # a backend without these operators has no roof that we could measure
    best = new if old is None else old.better(new)
    _write(path, {**known, key: best.to_dict()})
    return best


def _machine(predictor: Predictor) -> list[str]:
    """What names the machine whose roofs they are."""
    device = predictor.device
    if device is None:
        return [cpu_name(), usability(predictor.backend).reason]
    own = [usable_opencl(device).text()] if predictor.backend == "opencl" else []
    return [device.name, *own]


def _measure(like: Predictor) -> Roof:
    arithmetic = max(_rate(like, _product(), "flops"), _rate(like, _conv(), "flops"))
    integers = 0.0
    with contextlib.suppress(LiteError):  # a backend without such kernels
        integers = max(_rate(like, _integer_conv(side), "flops") for side in (1, 3))
    memory = _rate(like, _mover(MEMORY_ELEMS), "bytes")
    cache = _rate(like, _mover(CACHE_ELEMS), "bytes", runs=10 * RUNS)
    what = f"{like.backend} {like.precision}"
    if like.backend != "opencl":
        what = trn("{n} thread, {what}", "{n} threads, {what}", like.threads, what=what)
    today = date.today().isoformat()
    return Roof(arithmetic, memory, max(cache, memory), what, integer_gops=integers, date=today)


def _rate(like: Predictor, graph: Graph, what: str, runs: int = RUNS) -> float:
    """Best Gflop/s or GB/s of the graph's one operator."""
    predictor = like.like(graph)
    predictor.tuning, predictor.overrides, predictor.faults = {}, {}, {}
    execution = predictor.execution()
    step = next(s for s in execution.plan.steps if s.name == "measured")
    if step.backend != execution.plan.backend:
        raise LiteError(tr("{backend} has no kernel for it", backend=like.backend))
    if predictor.device is None:
        fastest = _fastest_here(execution, graph, step.index, runs)
    else:
        fastest = _fastest_there(predictor.device, execution, step.index, runs)
    if not fastest:
        raise LiteError(tr("{backend} gives no times", backend=like.backend))
    return float(getattr(step, what)) / fastest


def _fastest_here(execution: Execution, graph: Graph, row: int, runs: int) -> int:
    """ns of a step in the fastest of several runs, 0 where none took any time."""
    rng = np.random.default_rng(0)
    feeds = [
        (99 * rng.random([int(d) for d in v.shape or ()], np.float32)).astype(v.dtype.np)  # type: ignore[arg-type,union-attr]
        for v in graph.inputs
    ]
    taken = []
    for _ in range(runs):
        execution.run(feeds)
        time = execution.times()[row]
        taken.append(time.end_ns - time.start_ns)
    return min((ns for ns in taken if ns > 0), default=0)


def _fastest_there(device: Device, execution: Execution, row: int, runs: int) -> int:
    """The same on a device, which repeats the run by itself; its large arrays stay there."""
    backend = DeviceBackend(device)
    (segment,) = cut(execution.plan, backend.runs)
    samples = backend.compile(segment, threads=execution.threads).measure(runs, 1)
    return int(min((ns for ns in samples.steps_ns[:, row] if ns > 0), default=0))


def page_graphs() -> dict[str, Graph]:
    """What a page measures the roofs of its browser with; each has a step "measured"."""
    return {"compute": _conv(), "memory": _mover(PAGE_ELEMS)}


def _product() -> Graph:
    graph = Graph("product")
    side = PRODUCT_SIDE
    x = Value("x", DType.F32, (side, side))
    graph.inputs = [x]
    weight = graph.constant(np.random.default_rng(1).random((side, side), np.float32))
    graph.outputs = [graph.add("MatMul", [x, weight], {}, name="measured").output]
    return graph


def _conv() -> Graph:
    channels, height, width, filters = CONV
    graph = Graph("conv")
    x = Value("x", DType.F32, (1, channels, height, width))
    graph.inputs = [x]
    weight = graph.constant(np.random.default_rng(1).random((filters, channels, 1, 1), np.float32))
    graph.outputs = [graph.add("Conv", [x, weight], {}, name="measured").output]
    return graph


def _integer_conv(side: int) -> Graph:
    """u8 activations, i8 weights."""
    channels, height, width, filters = CONV
    graph = Graph("integer conv")
    x = Value("x", DType.U8, (1, channels, height, width))
    graph.inputs = [x]
    rng = np.random.default_rng(1)
    weight = rng.integers(-127, 128, (filters, channels, side, side)).astype(np.int8)
    scale = np.array(2.0**-8, np.float32)
    middle, none = np.array(128, np.uint8), np.array(0, np.int8)
    constants = [scale, middle, weight, scale, none, scale * channels, middle]
    inputs = [x, *(graph.constant(np.asarray(c)) for c in constants)]
    pads = {"pads": [side // 2] * 4}
    graph.outputs = [graph.add("QLinearConv", inputs, pads, name="measured").output]
    return graph


def _mover(elems: int) -> Graph:
    """y = max(x, 0): reads and writes every byte once, and computes next to nothing."""
    graph = Graph("mover")
    x = Value("x", DType.F32, (elems,))
    graph.inputs = [x]
    graph.outputs = [graph.add("Relu", [x], {}, name="measured").output]
    return graph


def _read(path: Path) -> dict[str, Any]:
    """Known roofs; a damaged file is as good as none."""
    try:
        data = parse(path.read_bytes(), "roofs").fields()
        for part in data.values():
            part.into(Roof)
    except (OSError, ModelFormatError):
        return {}
    names = set(Roof.__dataclass_fields__)
    return {key: part.value for key, part in data.items() if set(part.value) == names}


def _write(path: Path, data: dict[str, Any]) -> None:
    with contextlib.suppress(OSError, LiteError):  # a cache that cannot be written costs time only
        path.parent.mkdir(parents=True, exist_ok=True)
        write_file(path, json.dumps(data, indent=1))
