"""Advice: each rule speaks where it should, with evidence and a command, and not elsewhere."""

from __future__ import annotations

import pytest
from lite_engine import Predictor
from lite_engine.ir import Journal
from lite_engine.plan import Plan
from lite_engine.runtime import host_target
from lite_engine.runtime.advice import advise
from lite_engine.runtime.profile import profile

from tests.runtime.profiles import layer, made_up, of_layers
from tests.small_models import classifier, image


def rules(profile_, plan=None) -> set[str]:
    return {a.rule for a in advise(profile_, plan or Plan("cpu"), model="m.onnx")}


def test_a_layer_far_below_its_roof() -> None:
    slow = layer(0, 5.0, roof_fraction=0.1, bound_by="arithmetic")
    found = advise(of_layers([slow, layer(1, 5.0, roof_fraction=0.8)]), Plan("cpu"), model="m.onnx")
    assert [a.layers for a in found] == [["conv0"]]
    assert found[0].gain_ms == pytest.approx(5.0 * (1 - 0.1 / 0.5))
    assert "10 % of its arithmetic roof" in found[0].evidence
    assert found[0].command == "lite profile m.onnx --backend opencl"


def test_a_layer_that_is_only_noise_gets_no_advice() -> None:
    noisy = layer(0, 5.0, roof_fraction=0.1, ci_ms=4.0)
    assert rules(of_layers([noisy])) == set()


def test_a_fallback_between_device_layers() -> None:
    rows = [
        layer(0, 1.0, backend="opencl"),
        layer(1, 0.3, name="Copy a", op="Copy", sources=[], overhead=True, backend="opencl"),
        layer(2, 0.1, name="nms", op="NonMaxSuppression", why="no kernel"),
        layer(3, 0.3, name="Copy b", op="Copy", sources=[], overhead=True, backend="opencl"),
        layer(4, 1.0, backend="opencl"),
    ]
    found = advise(of_layers(rows, backend="opencl"), Plan("opencl"))
    fallback = next(a for a in found if a.rule == "fallback")
    assert fallback.layers == ["nms"] and "no kernel" in fallback.evidence
    assert fallback.gain_ms == pytest.approx(0.6)


def test_channels_that_do_not_fill_a_tile() -> None:
    row = layer(0, 1.0, output_shapes=[[1, 17, 8, 8]])
    found = advise(of_layers([row]), Plan("cpu"))
    assert found[0].rule == "channels-and-tile" and "17 output channels" in found[0].evidence
    assert rules(of_layers([layer(0, 1.0, output_shapes=[[1, 32, 8, 8]])])) == set()


def test_the_first_layer_on_a_gpu() -> None:
    first = layer(0, 1.0, backend="opencl", input_shapes=[[1, 3, 8, 8]])
    rest = layer(1, 1.0, backend="opencl")
    assert "first-layer" in rules(of_layers([first, rest], backend="opencl"))


def test_an_island_of_integers() -> None:
    edges = [layer(i, 0.5, op=op, kernel="f32_q") for i, op in
             enumerate(("QuantizeLinear", "DequantizeLinear"))]  # fmt: skip
    assert "int8-island" in rules(of_layers([*edges, layer(2, 1.0, dtype="u8", kernel="q")]))


def test_emulated_times_give_no_advice() -> None:
    assert advise(made_up([1.0], times_meaningful=False), Plan("cpu")) == []


@pytest.mark.cpu
def test_an_activation_that_was_not_fused_says_why() -> None:
    """`classifier` as it is: HardSwish after a convolution, no pass has run."""
    graph = classifier()
    predictor = Predictor(_raw(graph), host_target(), threads=1)
    made = profile(predictor, image(graph), runs=7, roof=False)
    for row in made.layers:
        row.share = 0.5
    journal = Journal()
    journal.refused("fuse-activation", ("dw",), "another layer reads the convolution")
    found = [a for a in advise(made, predictor.plan(), journal) if a.rule == "unfused-activation"]
    assert found[0].layers == ["swish"]
    assert "another layer reads the convolution" in found[0].evidence


def _raw(graph):
    from lite_engine.model_file import Model

    return Model(graph)
