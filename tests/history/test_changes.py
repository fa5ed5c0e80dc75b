"""The difference of two profiles: aligned through sources, and it adds up exactly."""

from __future__ import annotations

import random

import pytest
from lite_engine import Predictor, optimize
from lite_engine.history.changes import align, changes
from lite_engine.model_file import Model
from lite_engine.profile import profile
from lite_engine.runtime import host_target

from tests.profile.profiles import layer, made_up, of_layers
from tests.small_models import classifier, image


def adds_up(result) -> bool:
    return result.before_ns + sum(c.delta_ns for c in result.changes) == result.after_ns


def test_it_adds_up_to_the_nanosecond() -> None:
    rng = random.Random(1)
    for _ in range(50):
        a = made_up([rng.random() / 7 for _ in range(30)], rest_ms=rng.random())
        b = made_up([rng.random() / 7 for _ in range(25)], rest_ms=rng.random())
        result = changes(a, b)
        assert adds_up(result)
        assert sum(d for _, d in result.waterfall(5)) == result.after_ns - result.before_ns
        sizes = [abs(c.delta_ns) for c in result.changes]
        assert sizes == sorted(sizes, reverse=True)


def test_one_kernel_against_several() -> None:
    fused = [layer(0, 3.0, name="conv+relu", sources=["conv", "bn", "relu"]),
             layer(1, 1.0, name="add", sources=["add"])]  # fmt: skip
    plain = [layer(0, 2.0, name="conv", sources=["conv"]), layer(1, 0.5, name="bn", sources=["bn"]),
             layer(2, 1.5, name="relu", sources=["relu"]),
             layer(3, 1.0, name="add", sources=["add"])]  # fmt: skip
    groups = align(fused, plain)
    assert [([x.name for x in a], [x.name for x in b]) for a, b in groups] == [
        (["conv+relu"], ["conv", "bn", "relu"]), (["add"], ["add"]),
    ]  # fmt: skip
    result = changes(of_layers(fused), of_layers(plain))
    assert adds_up(result) and result.changes[0].delta_ns == 1_000_000


def test_several_against_several() -> None:
    a = [layer(0, 1.0, name="x", sources=["p", "q"]), layer(1, 1.0, name="y", sources=["r"])]
    b = [layer(0, 1.0, name="u", sources=["p"]), layer(1, 1.0, name="v", sources=["q", "r"])]
    assert [(len(x), len(y)) for x, y in align(a, b)] == [(2, 2)]


def test_what_only_one_side_has() -> None:
    copy = layer(0, 0.2, name="Copy x", op="Copy", sources=[], overhead=True)
    result = changes(made_up([1.0]), of_layers([copy, layer(1, 1.0, name="conv0",
                                                            sources=["conv0"])]))  # fmt: skip
    assert {c.kind for c in result.changes} == {"changed", "new", "outside"}


def test_what_the_numbers_do_not_mean_is_said() -> None:
    a = made_up([1.0], environment={"cpu": "A", "engine": "1"}, rankable_us=3.0)
    b = made_up([2.0], environment={"cpu": "B", "engine": "2"}, rankable_us=7.0)
    result = changes(a, b)
    assert result.baseline == "made-up on x86 (fp32, 2 threads, A, engine 1)"
    assert result.warnings == ["changes of less than 7.0 µs in a layer may be noise"]
    assert changes(a, a).baseline == "made-up on x86 (fp32, 2 threads)"
    counted = {"instructions": {"run": 5000}, "times_meaningful": False}
    other = of_layers([layer(0, 1.0, sources=["else"], macs=7)], **counted)
    said = changes(made_up([1.0], **counted), other)
    assert "under emulation" in said.warnings[0] and "5,000 before" in said.warnings[1]
    assert "no layer in common" in said.warnings[2] and adds_up(said)


def test_quantised_names_are_the_same_node() -> None:
    a = [layer(0, 1.0, sources=["net/Relu6"])]
    b = [layer(0, 1.0, name="q", sources=["net/Relu6:0_QuantizeLinear"])]
    assert [(len(x), len(y)) for x, y in align(a, b)] == [(1, 1)]


def test_one_network_under_other_names() -> None:
    """Two formats: nothing is called the same, and one of them has a layer more."""
    sizes = [(100, 8), (200, 4), (300, 2)]
    a = [layer(i, 1.0, name=f"a{i}", sources=[f"a{i}"], macs=m, output_shapes=[[1, c, 8, 8]])
         for i, (m, c) in enumerate(sizes)]  # fmt: skip
    b = [layer(0, 0.1, name="b_pad", sources=["pad"], op="Pad", macs=0)]
    b += [layer(i + 1, 2.0, name=f"b{i}", sources=[f"b{i}"], macs=m, output_shapes=[[1, c, 8, 8]])
          for i, (m, c) in enumerate(sizes)]  # fmt: skip
    result = changes(of_layers(a), of_layers(b))
    pairs = {(*c.before, *c.after) for c in result.changes if c.kind == "changed"}
    assert pairs == {("a0", "b0"), ("a1", "b1"), ("a2", "b2")} and adds_up(result)
    other = [layer(i, 1.0, name=f"c{i}", sources=[f"c{i}"], macs=m) for i, m in enumerate((7, 9))]
    assert not any(x and y for x, y in align(a, [*other, b[1]]))  # a layer in common is no network


@pytest.mark.cpu
def test_fused_and_unfused_of_one_network() -> None:
    graph = classifier()
    plain = Predictor(Model(graph), host_target(), threads=1)
    fused = Predictor(optimize(classifier()), host_target(), threads=1)
    result = changes(*(profile(p, image(graph), runs=3, roof=False) for p in (plain, fused)))
    assert adds_up(result)
    layers = [c for c in result.changes if c.kind in ("new", "gone") and c.sources]
    assert layers == []  # every layer that comes from the model has its counterpart
