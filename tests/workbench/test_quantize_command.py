"""`lite quantize` on a small network and a folder of pictures."""

from __future__ import annotations

import json
import shlex
import signal
import struct
from pathlib import Path

import numpy as np
import pytest
from lite_engine.ir import from_text
from lite_engine.model_file import optimize, read_model
from lite_engine.ops import infer_types
from lite_engine.quantize import Calibration
from lite_workbench import quantizing
from lite_workbench.cli import main
from lite_workbench.quantizing import FastRun

Image = pytest.importorskip("PIL.Image", reason="pictures are written with Pillow")

NETWORK = """graph "small" {
  input x: f32[1,3,16,16]
  const w: f32[8,3,3,3] = @0
  "conv": y = Conv(x, w) {pads=[1, 1, 1, 1]}
  output y
}"""


pytestmark = pytest.mark.cpu


@pytest.fixture
def files(tmp_path):
    """A model, six pictures, and the words that every command begins with."""
    rng = np.random.default_rng(0)
    photos = tmp_path / "photos"
    photos.mkdir()
    for i in range(6):
        pixels = rng.integers(0, 256, (16, 16, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(photos / f"{i}.png")
    graph = from_text(NETWORK, [rng.standard_normal((8, 3, 3, 3)).astype(np.float32)])
    infer_types(graph)
    optimize(graph).save(tmp_path / "small.lite")
    return [
        "quantize",
        str(tmp_path / "small.lite"),
        "--calibration",
        str(photos),
        "--preprocess",
        "mean=100,std=50",
        "-o",
        str(tmp_path / "int8.lite"),
    ]


def made_by(words):
    assert main(words) == 0
    return read_model(Path(words[words.index("-o") + 1]))


def test_calibration_sees_the_pictures_as_the_model_will(files):
    made = made_by([*files, "--method", "minmax"])
    assert made.metadata["preprocess"]["mean"] in ([100.0], (100.0,))
    quantize = next(n for n in made.graph.nodes if n.op == "QuantizeLinear")
    low, high = (0 - 100) / 50, (255 - 100) / 50
    assert float(quantize.inputs[1].const) == pytest.approx((high - low) / 255, rel=0.05)


def test_the_type_of_activations(files):
    made = made_by([*files, "--method", "minmax", "--activations", "i8", "--symmetric"])
    quantize = next(n for n in made.graph.nodes if n.op == "QuantizeLinear")
    zero = quantize.inputs[2].const
    assert zero.dtype == np.int8 and zero == 0


def test_the_file_names_the_command_that_repeats_it(files, tmp_path):
    made = made_by([*files, "--method", "minmax", "--no-equalize", "--keep-float", "conv"])
    first = made.path.read_bytes()
    words = shlex.split(made.metadata["quantized_by"])
    again = made_by([*words[1:], "-o", str(tmp_path / "again.lite")])
    assert again.path.read_bytes() == first
    integers = made_by([*words[1:], "--keep-float", "", "-o", str(tmp_path / "whole.lite")])
    assert not any(n.op == "QLinearConv" for n in again.graph.nodes)
    assert any(n.op == "QLinearConv" for n in integers.graph.nodes)


def test_a_point_of_the_curve_is_repeated(files, tmp_path, capsys):
    curve = tmp_path / "curve.json"
    made_by([*files, "--trade-off", str(curve)])
    assert [p["float_layers"] for p in json.loads(curve.read_text())["points"]] == [0, 1]
    floats = made_by([*files, "--repeat", f"{curve}:1"])
    assert not any(n.op == "QLinearConv" for n in floats.graph.nodes)
    assert main([*files, "--repeat", f"{curve}:2"]) == 2
    assert "has 2 points, counted from 0" in capsys.readouterr().err


@pytest.mark.opencl
def test_the_slowdown_is_measured_where_it_is_asked_for(files, tmp_path, monkeypatch, capsys):
    """Every version runs on OpenCL, and its time is what the curve has as its cost."""
    ran = []

    class Noted(quantizing.Predictor):
        def __init__(self, model, backend="auto", **more):
            super().__init__(model, backend, **more)
            if backend == "opencl":
                ran.append(self)

    monkeypatch.setattr(quantizing, "Predictor", Noted)
    curve = tmp_path / "curve.json"
    made_by([*files, "--method", "minmax", "--trade-off", str(curve), "--measure", "opencl"])
    points = json.loads(curve.read_text())["points"]
    assert [p["options"]["measure"] for p in points] == ["opencl"] * 2
    integers, floats = (
        {s.op for s in p.plan().steps if s.backend == "opencl"}
        for p in ran[1:]  # after the parent
    )
    assert "QLinearConv" in integers and "Conv" in floats and "QLinearConv" not in floats
    assert all(0 < p["cost"] < 1e4 for p in points)  # milliseconds, not multiply-adds
    assert main([*files, "--method", "minmax", "--trade-off", str(curve)]) == 2
    assert "other options" in capsys.readouterr().err
    made_by([*files, "--repeat", f"{curve}:1"])
    assert len(ran) == 3, "a point that is repeated measures nothing"


def test_measuring_needs_a_search(files, capsys):
    assert main([*files, "--measure", "x86"]) == 2
    assert "--target-db" in capsys.readouterr().err


def test_an_interrupted_calibration_goes_on(files, tmp_path, monkeypatch, capsys):
    state = tmp_path / "state.npz"
    calls = []

    def press(self, graph, feeds, taps=(), run=FastRun.__call__):
        calls.append(graph)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return run(self, graph, feeds, taps)

    monkeypatch.setattr(FastRun, "__call__", press)
    words = [*files, "--method", "minmax", "--resume", str(state)]
    assert main(words) == 130
    assert f"stopped after 3 samples; run the same command again to continue from {state}" in (
        capsys.readouterr().err
    )
    made = made_by(words)
    assert len(calls) == 3 + 2 + 2  # the two samples that were left; two graphs are compared on one
    whole = made_by([*files, "--method", "minmax"])
    assert len(calls) == 7 + 5 + 2
    for a, b in zip(made.graph.constants(), whole.graph.constants(), strict=True):
        assert np.array_equal(a.const, b.const)


def test_ctrl_c_after_the_calibration_ends_at_once_and_keeps_it(files, tmp_path, monkeypatch):
    state, calls = tmp_path / "state.npz", []

    def press(self, graph, feeds, taps=(), run=FastRun.__call__):
        calls.append(graph)
        if len(calls) == 6:  # five samples were seen, the sixth is held back for the judgement
            signal.raise_signal(signal.SIGINT)
        return run(self, graph, feeds, taps)

    monkeypatch.setattr(FastRun, "__call__", press)
    assert main([*files, "--method", "minmax", "--resume", str(state)]) == 130
    assert len(calls) == 6 and not (tmp_path / "int8.lite").exists()
    assert Calibration.load(state).samples == 5


def test_the_parts_of_the_file_are_said(files, capsys):
    """What the table of sections in docs/lite_format.md adds up to; programs of other targets go
    with --targets."""
    sizes = {}
    for targets in ("x86,arm,opencl", "x86"):
        assert main([*files, "--targets", targets, "--json", "-"]) == 0
        told = json.loads(capsys.readouterr().out)
        rows = spec_sections(Path(told["file"]).read_bytes())
        opencl = sum({at: size for tag, at, size in rows if tag.startswith("OCL.")}.values())
        cpus = sum({at: size for tag, at, size in rows if tag.startswith("PROG.")}.values())
        assert (told["parts"]["opencl_programs"], told["parts"]["cpu_programs"]) == (opencl, cpus)
        assert sum(told["parts"].values()) == told["bytes"]
        sizes[targets] = told["parts"]
    assert sizes["x86"]["opencl_programs"] == 0 < sizes["x86,arm,opencl"]["opencl_programs"]
    assert main(files) == 0
    said = capsys.readouterr().out
    assert "programs for opencl" in said and "--targets chooses which programs it has" in said
    assert main([*files, "--targets", "x86"]) == 0
    assert "--targets" not in capsys.readouterr().out


def spec_sections(data: bytes) -> list[tuple[str, int, int]]:
    """Name, offset and size of each section, as the format's page says."""
    (count,) = struct.unpack_from("<I", data, 12)
    rows = [struct.unpack_from("<8sQQ", data, 16 + 32 * i) for i in range(count)]
    return [(name.rstrip(b"\0").decode(), at, size) for name, at, size in rows]
