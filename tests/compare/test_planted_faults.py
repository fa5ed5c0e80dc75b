"""Every planted fault is named: which layer, by itself and not its victims, on every backend.

Twice: with the product's own faults (plan/faults.py, on the layer's result), and with faults in the
kernels' own run (kernel_faults.py)."""

from __future__ import annotations

import functools
import zlib

import pytest
from lite_engine import Predictor, optimize
from lite_engine.compare import Side, bisect, compare
from lite_engine.model_file import Model
from lite_engine.plan.faults import KINDS
from lite_engine.runtime import host_target
from lite_engine.runtime.inputs import random_feeds

from tests.compare.kernel_faults import plant_in_plan, plant_in_source
from tests.small_models import classifier, image

FUSED = ("stem", "dw", "wide")
UNFUSED = ("pw", "swish")
CASES = [
    *((layer, kind, True) for layer in FUSED for kind in KINDS),
    *((layer, kind, False) for layer in UNFUSED for kind in KINDS),
]
#: In the kernels: layers with weights. A border of one column needs padding to spare.
IN_KERNELS = [
    *((layer, kind, True) for layer in FUSED for kind in KINDS),
    *(("pw", kind, False) for kind in KINDS if kind != "read_past_edge"),
]
IN_PLANS = [c for c in IN_KERNELS if c[1] != "drop_last_column" or c[0] in ("dw", "wide")]
#: A run under the emulator takes a second: one layer of each sort.
FEW = [case for case in CASES if case[0] in ("dw", "pw")]
#: The runner writes taps in the size of the step's own tensor: a narrow one does not fit.
FEW_PLANS = [c for c in IN_PLANS if c[0] in ("dw", "pw") and c[1] != "drop_last_column"]


@functools.cache
def model(fused: bool) -> Model:
    graph = classifier()
    return optimize(graph) if fused else Model(graph)


@functools.cache
def trusted(fused: bool) -> Side:
    return Side(Predictor(model(fused), "reference"))


def name_of(layer: str, fused: bool) -> str:
    graph = model(fused).graph
    return next(n.name for n in graph.nodes if layer in n.sources or n.name == layer)


def found(backend: str, layer: str, kind: str, fused: bool) -> None:
    """With the product's own faults."""
    name = name_of(layer, fused)
    named(Side(Predictor(model(fused), backend, threads=1, faults={name: kind})), name, kind, fused)


def named(b: Side, name: str, kind: str, fused: bool) -> None:
    """Compare says that this layer and no other is wrong."""
    a = trusted(fused)
    # Another image in every case: what a kernel does not write holds what lay in its memory, which
    # must not be the right numbers, left there by an earlier case.
    result = compare(a, b, random_feeds(a.graph, zlib.crc32(f"{name} {kind}".encode())))
    assert not result.agrees
    assert result.first_divergence["name"] == name
    assert result.first_divergence["wrong_side"] == f"{b.label} is the one that is wrong"
    assert [x.name for x in result.layers if not x.within] == [name]
    detail = result.first_divergence["detail"]
    assert detail["kind"] == "isolated"
    if kind == "drop_last_column" and len(detail["shape"]) == 4:
        columns = detail["per_column"]
        assert columns[-1] == max(columns) > 100 * max(columns[:-1])


@pytest.mark.cpu
@pytest.mark.parametrize(("layer", "kind", "fused"), CASES)
def test_on_this_cpu(layer, kind, fused) -> None:
    found(host_target(), layer, kind, fused)


@pytest.mark.opencl
@pytest.mark.parametrize(("layer", "kind", "fused"), CASES)
def test_on_opencl(layer, kind, fused) -> None:
    found("opencl", layer, kind, fused)


@pytest.mark.arm
@pytest.mark.parametrize(("layer", "kind", "fused"), FEW)
def test_on_emulated_arm(layer, kind, fused) -> None:
    found("arm", layer, kind, fused)


@pytest.mark.cpu
@pytest.mark.parametrize(("layer", "kind", "fused"), IN_PLANS)
def test_in_a_kernel_of_this_cpu(layer, kind, fused, monkeypatch) -> None:
    plant_in_plan(monkeypatch, name_of(layer, fused), kind)
    b = Side(Predictor(model(fused), host_target(), threads=1))
    named(b, name_of(layer, fused), kind, fused)


@pytest.mark.opencl
@pytest.mark.parametrize("precision", ["fp32", pytest.param("fp16", marks=pytest.mark.hours)])
@pytest.mark.parametrize(("layer", "kind", "fused"), IN_KERNELS)
def test_in_an_opencl_kernel(layer, kind, fused, precision, monkeypatch) -> None:
    plant_in_source(monkeypatch, name_of(layer, fused), kind)
    b = Side(Predictor(model(fused), "opencl", precision=precision))
    named(b, name_of(layer, fused), kind, fused)


@pytest.mark.arm
@pytest.mark.parametrize(("layer", "kind", "fused"), FEW_PLANS)
def test_in_a_kernel_of_emulated_arm(layer, kind, fused, monkeypatch) -> None:
    plant_in_plan(monkeypatch, name_of(layer, fused), kind)
    named(Side(Predictor(model(fused), "arm", threads=1)), name_of(layer, fused), kind, fused)


def test_there_are_enough() -> None:
    in_kernels = len(IN_PLANS) + 2 * len(IN_KERNELS) + len(FEW_PLANS)
    assert in_kernels >= 40 and 2 * len(CASES) + len(FEW) >= 40


@pytest.mark.cpu
@pytest.mark.parametrize("kind", KINDS)
def test_bisect_needs_few_runs(kind) -> None:
    a = trusted(True)
    b = Side(Predictor(model(True), host_target(), threads=1, faults={"wide": kind}))
    result = bisect(a, b, image(a.graph))
    assert result.first_divergence["name"] == "wide"
    assert result.runs == 4  # one window: each side, the layers alone, and A to say who is right


@pytest.mark.cpu
def test_bisect_without_a_fault() -> None:
    b = Side(Predictor(model(True), host_target(), threads=1))
    assert bisect(trusted(True), b, image(b.graph)).agrees
