"""Outputs of quantized models: real numbers, with the integers beside them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from lite_engine.importers import load
from lite_engine.ir import from_text, to_text
from lite_workbench.cli import main

from tests.importers.tiny_tflite import TinyModel


@pytest.fixture
def classifier(tmp_path):
    """Three scores of scale 1/256 and zero point -128, as they come in."""
    m = TinyModel()
    x = m.tensor("x", "int8", (1, 3), scale=1 / 256, zero=-128)
    y = m.tensor("y", "int8", (1, 3), scale=1 / 256, zero=-128)
    m.op(19, [x], [y])  # RELU, which changes none of them
    path = tmp_path / "scores.tflite"
    path.write_bytes(m.bytes([x], [y]))
    np.save(tmp_path / "x.npy", np.array([[-120, 113, -121]], np.int8))
    return path


@pytest.mark.parametrize("converted", [False, True])
def test_run_shows_both(classifier, converted, capsys):
    model = classifier
    if converted:
        model = classifier.with_suffix(".lite")
        assert main(["convert", str(classifier), "-o", str(model)]) == 0
    feed = classifier.parent / "x.npy"
    capsys.readouterr()
    assert main(["run", str(model), "--input", str(feed)]) == 0
    text = capsys.readouterr().out
    assert "0.9414" in text and " 113" in text  # (113 + 128) / 256
    assert "-121 … 113" in text
    out = classifier.parent / "answer.json"
    assert main(["run", str(model), "--input", str(feed), "--json", str(out)]) == 0
    said = json.loads(out.read_text())
    assert said["outputs"]["y"]["max"] == 113
    assert (said["outputs"]["y"]["scale"], said["outputs"]["y"]["zero_point"]) == (1 / 256, -128)
    best = said["answer"]["items"][0]
    assert (best["index"], best["raw"], best["score"]) == (1, 113, 241 / 256)


def test_graph_text_keeps_scales(classifier):
    graph = load(classifier)
    again = from_text(to_text(graph))
    for value in (*again.inputs, *again.outputs):
        assert value.quant is not None
        assert (float(value.quant.scale), int(value.quant.zero_point)) == (1 / 256, -128)
    assert to_text(again) == to_text(graph)


@pytest.mark.parametrize(
    "said",
    ['{"scale": 0, "zero_point": 0}', '{"scale": 1, "zero_point": 128}', '{"scale": 1}', "[1]"],
)
def test_damaged_scales_are_refused(said):
    from lite_engine.errors import ModelFormatError

    with pytest.raises(ModelFormatError, match="line 2"):
        from_text(f'graph "g" {{\n  input x: i8[3] quant {said}\n  output x\n}}')
