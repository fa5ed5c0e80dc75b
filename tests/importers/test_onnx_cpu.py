"""The ONNX backend cases on the CPU backend: each case whose operator has a native kernel agrees.

Axes, shapes and the like, which the cases give as inputs, become constants here, as they are in
models: only then is there something to plan. Cases are run whole on this machine's own kernels and
on emulated AArch64.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="pip install onnx")
from lite_engine.devices import EmulatedDevice
from lite_engine.errors import LiteError
from lite_engine.importers import onnx as importer
from lite_engine.ir import Graph
from lite_engine.ops import find_op
from lite_engine.runtime import Predictor

from tests.importers import onnx_cases
from tests.importers.batch import Batch, BatchPredictor, run_all

#: Cases that the references do not pass either.
LISTED = {line.split(": ", 1)[0] for line in onnx_cases.unsupported()}
_WEIGHTS = ("w", "scale", "zero_point", "mean", "var")


@dataclass
class Tally:
    """Cases that passed by what ran them, and what went wrong."""

    passed: Counter[str] = field(default_factory=Counter)
    operators: set[str] = field(default_factory=set)
    broken: list[str] = field(default_factory=list)

    def report(self, kind: str, target: str, record: Callable[[str, str], None]) -> None:
        native, other = self.passed["native"], self.passed["reference"]
        record(
            "summary",
            f"ONNX {kind} tests on {target}: {native + other} of"
            f" {native + other + len(self.broken)} pass, {native} of them with native kernels"
            f" ({len(self.operators)} operators)",
        )
        assert not self.broken, "\n".join(self.broken)


@pytest.mark.cpu
@pytest.mark.slow
@pytest.mark.parametrize("kind", onnx_cases.KINDS)
def test_x86(kind: str, root: Path, record_property: Callable[[str, str], None]) -> None:
    tally = Tally()
    for case in _wanted(kind):
        _attempt(case, lambda graph: Predictor(graph, "x86", threads=1), tally)()
    tally.report(kind, "x86", record_property)
    native, all_ = tally.passed["native"], tally.passed.total()
    words = (
        f"repeats the {all_} node cases outside the families left out on x86 and on emulated arm"
    )
    stated = f"{words}: all pass, on x86 {native} with native kernels"
    assert kind != "node" or onnx_cases.is_stated(root, stated)


@pytest.mark.arm
@pytest.mark.sweep
@pytest.mark.parametrize("kind", onnx_cases.KINDS)
def test_arm(kind: str, record_property: Callable[[str, str], None]) -> None:
    tally, batch = Tally(), Batch(EmulatedDevice())
    make = lambda graph: BatchPredictor(graph, batch)  # noqa: E731
    run_all([_attempt(case, make, tally) for case in _wanted(kind)], batch)
    tally.report(kind, "arm", record_property)
    assert 0 < batch.processes < 60, "cases share the processes of the emulator"


def _wanted(kind: str) -> Iterator[Any]:
    for case in onnx_cases.cases(kind):
        if case.name not in LISTED and not onnx_cases.scope(case):
            yield case


def _attempt(case: Any, make: Callable[[Graph], Predictor], tally: Tally) -> Callable[[], None]:
    """A call that runs the case on a predictor and counts how it went; it may be called again
    while the predictor says that it is pending."""
    graph = importer.read_bytes(onnx_cases.model_bytes(case))
    inputs, wanted = next(onnx_cases.data_sets(case))
    feeds = {v.name: onnx_cases.plain(a) for v, a in zip(graph.inputs, inputs, strict=False)}
    dtypes = [str(v.dtype) for v in graph.outputs]
    names = [v.name for v in graph.outputs]
    _freeze(graph, feeds)
    made: list[Predictor] = []

    def attempt() -> None:
        try:
            if not made:
                made.append(make(graph))
            outputs = made[0].run(feeds)
            onnx_cases.compare(case, [np.asarray(outputs[n]) for n in names], wanted, dtypes)
            steps = made[0].plan({n: a.shape for n, a in feeds.items()}).steps
        except (LiteError, AssertionError, KeyError, TypeError, ValueError) as error:
            lines = " ".join(s.strip() for s in str(error).splitlines()[:8])
            tally.broken.append(f"{case.name}: {type(error).__name__}: {lines}")
            return
        native = {s.op for s in steps if s.backend == "cpu"}
        tally.passed["native" if native else "reference"] += 1
        tally.operators |= native

    return attempt


def _freeze(graph: Graph, feeds: dict[str, np.ndarray]) -> None:
    """Inputs that kernels want as attributes, and quantisation parameters, become constants."""
    for value in list(graph.inputs):
        wanted = all(
            (op := find_op(n.op)) is not None
            and op.input_name(n.inputs.index(value)) in (*op.attr_inputs, *_WEIGHTS)
            for n in value.readers
        )
        if value.readers and wanted and value.name in feeds:
            value.const = feeds.pop(value.name)
            value.shape = value.const.shape
            graph.inputs.remove(value)
