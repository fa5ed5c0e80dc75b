"""Every planted fault is named: which layer, by itself and not its victims, on every backend."""

from __future__ import annotations

import functools

import pytest
from lite_engine import Predictor, optimize
from lite_engine.model_file import Model
from lite_engine.plan.faults import KINDS
from lite_engine.runtime import host_target, usability
from lite_engine.runtime.compare import Side, bisect, compare

from tests.small_models import classifier, image

FUSED = ("stem", "dw", "wide")
UNFUSED = ("pw", "swish")
CASES = [
    *((layer, kind, True) for layer in FUSED for kind in KINDS),
    *((layer, kind, False) for layer in UNFUSED for kind in KINDS),
]
#: A run under the emulator takes a second: one layer of each sort.
FEW = [case for case in CASES if case[0] in ("dw", "pw")]


@functools.cache
def model(fused: bool) -> Model:
    graph = classifier()
    return optimize(graph) if fused else Model(graph)


@functools.cache
def trusted(fused: bool) -> Side:
    return Side(Predictor(model(fused), "reference"))


def found(backend: str, layer: str, kind: str, fused: bool) -> None:
    if backend != "x86" and not usability(backend).usable:
        pytest.skip(usability(backend).reason)
    a = trusted(fused)
    name = next(n.name for n in a.graph.nodes if layer in n.sources or n.name == layer)
    b = Side(Predictor(model(fused), backend, threads=1, faults={name: kind}), backend)
    result = compare(a, b, image(a.graph))
    assert not result.agrees
    assert result.first_divergence["name"] == name
    assert result.first_divergence["wrong_side"] == f"{backend} is the wrong side"
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


def test_there_are_enough() -> None:
    assert 2 * len(CASES) + len(FEW) >= 40


@pytest.mark.cpu
@pytest.mark.parametrize("kind", KINDS)
def test_bisect_needs_few_runs(kind) -> None:
    a = trusted(True)
    b = Side(Predictor(model(True), host_target(), threads=1, faults={"wide": kind}))
    result = bisect(a, b, image(a.graph))
    assert result.first_divergence["name"] == "wide"
    assert result.runs <= 2 * 6 + 4  # halving 10 layers, then the suspects alone


@pytest.mark.cpu
def test_bisect_without_a_fault() -> None:
    b = Side(Predictor(model(True), host_target(), threads=1))
    assert bisect(trusted(True), b, image(b.graph)).agrees
