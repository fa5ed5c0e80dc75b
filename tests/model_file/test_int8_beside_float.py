"""int8 for one target beside float for another, in one file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine._native import runner_path
from lite_engine.errors import ModelFormatError, UsageError
from lite_engine.ir import Graph, to_text
from lite_engine.model_file import Model, read_model, retarget, with_int8
from lite_engine.model_file._container import read_container
from lite_engine.model_file.precision import computes_in_integers, is_quantised
from lite_engine.passes import optimize_graph
from lite_engine.profile import profile
from lite_engine.quantize import Groups, quantize, quantize_weights, quantize_weights_int4
from lite_engine.runtime import host_target
from lite_workbench.cli import main
from lite_workbench.names import GIVEN

from tests.small_models import attention, classifier, image

HERE = host_target()
OTHER = "arm" if HERE == "x86" else "x86"
TARGETS = [OTHER, HERE, "opencl"]


@pytest.fixture(scope="module")
def quantised():
    """The classifier in int8, from a few samples."""
    rng = np.random.default_rng(3)
    shape = image(classifier())["x"].shape
    samples = [rng.standard_normal(shape).astype(np.float32) for _ in range(4)]
    return optimize_graph(quantize(optimize(classifier()).graph, samples).graph)


@pytest.fixture
def mixed(quantised) -> Model:
    model = optimize(classifier(), targets=TARGETS, precision="opencl=fp16")
    return with_int8(model, quantised, [HERE])


@pytest.mark.cpu
def test_each_target_runs_its_own_graph(mixed, quantised, tmp_path):
    """The int8 target gives the numbers of the quantised model alone, bit for bit, the float ones
    those of the float model; the runner without Python as well."""
    path = mixed.save(tmp_path / "m.lite")
    model, feeds = read_model(path), image(classifier())
    assert model.precisions == {"opencl": "fp16", HERE: "int8"}
    assert not is_quantised(model.graph) and is_quantised(model.graph_in("int8"))
    alone = Predictor(quantised, HERE).run(feeds)["prob"]
    exact = Predictor(classifier(), "reference").run(feeds)["prob"]
    predictor = Predictor(path, HERE)
    assert predictor.precision == "int8" and f"runs on {HERE} (int8)" in predictor.explain()
    np.testing.assert_array_equal(predictor.run(feeds)["prob"], alone)
    float_here = Predictor(path, HERE, precision="fp32").run(feeds)["prob"]
    np.testing.assert_allclose(float_here, exact, atol=1e-5)
    assert np.abs(alone - exact).max() > 1e-5
    np.testing.assert_array_equal(Predictor(path, "reference").run(feeds)["prob"], exact)
    np.save(tmp_path / "x.npy", feeds["x"])
    command = [runner_path(), path, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "prob.npy"), alone)


def test_weights_are_kept_once(mixed, quantised, tmp_path):
    """The file grows by the integers, not by a second copy; a float target beside them costs its
    program only; the same model gives the same bytes."""
    both = mixed.save(tmp_path / "m.lite")
    apart = [
        len(read_container(optimize(g, targets=[HERE]).save(tmp_path / "x.lite"))["WEIGHTS"])
        for g in (classifier(), quantised)
    ]
    together = read_container(both)
    assert len(together["WEIGHTS"]) <= sum(apart)
    fewer = read_container(retarget(mixed, targets=[HERE, "opencl"]).save(tmp_path / "few.lite"))
    assert len(together["WEIGHTS"]) <= 1.03 * len(fewer["WEIGHTS"])
    assert set(together) - set(fewer) == {f"PROG.{OTHER}"}
    again = tmp_path / "again" / "m.lite"
    again.parent.mkdir()
    parent = optimize(classifier(), targets=TARGETS, precision="opencl=fp16")
    with_int8(parent, quantised, [HERE]).save(again)
    assert again.read_bytes() == both.read_bytes()


def test_other_targets_drop_idle_graphs(mixed, quantised):
    everything = with_int8(optimize(classifier(), targets=TARGETS), quantised, TARGETS)
    assert everything.graphs == {} and everything.graph is quantised
    assert retarget(mixed, targets=[HERE]).graph is quantised
    floats = retarget(mixed, precision={HERE: "fp32"})
    assert floats.graphs == {} and floats.graph is mixed.graph
    further = retarget(mixed, precision={OTHER: "int8"})
    assert further.precision(HERE) == further.precision(OTHER) == "int8" and further.graphs


def test_refusals(mixed, quantised):
    with pytest.raises(UsageError, match="not among arm"):
        with_int8(optimize(classifier(), targets="arm"), quantised, "x86")
    with pytest.raises(UsageError, match="needs ranges"):
        with_int8(mixed, classifier(), [HERE])
    other = quantised.copy()
    other.inputs[0].name = "pixels"
    with pytest.raises(UsageError, match=r"of another model: its inputs are pixels: .*, not x: "):
        with_int8(mixed, other, [HERE])


def light_graph(bits: int) -> Graph:
    """The classifier with weights alone in integers."""
    graph = optimize(classifier()).graph
    return quantize_weights(graph) if bits == 8 else quantize_weights_int4(graph, Groups(16)).graph


@pytest.mark.parametrize("bits", [4, 8])
def test_integers_that_are_weights_alone_are_no_int8(bits, tmp_path, capsys):
    light = optimize(light_graph(bits), targets=[HERE])
    assert is_quantised(light.graph) and not computes_in_integers(light.graph)
    with pytest.raises(UsageError, match="needs ranges"):
        retarget(light, precision="int8")
    with pytest.raises(UsageError, match="needs ranges"):
        optimize(light.graph, targets=[HERE], precision="int8")
    with pytest.raises(UsageError, match="needs ranges"):
        with_int8(optimize(classifier(), targets=[HERE]), light.graph, [HERE])
    path = light.but(precisions={HERE: "int8"}).save(tmp_path / "written_before.lite")
    assert read_model(path).display_precision(HERE) == "fp32"
    words = ["convert", str(path), "-o", str(tmp_path / "m.lite"), "--precision", f"{HERE}=int8"]
    assert main(words) == 2
    assert "quantize the float model" in capsys.readouterr().err


@pytest.mark.parametrize("bits", [4, 8])
def test_samples_do_not_help_weights_in_integers(bits, tmp_path, capsys):
    """As `lite quantize` says: what the integers have lost does not come back."""
    path = optimize(light_graph(bits), targets=[HERE]).save(tmp_path / "light.lite")
    samples = tmp_path / "samples.npz"
    np.savez(samples, x=np.random.default_rng(0).standard_normal((4, 3, 20, 20), np.float32))
    words = ["convert", str(path), "-o", str(tmp_path / "m.lite"), "--precision", f"{HERE}=int8"]
    assert main([*words, "--calibration", str(samples)]) == 2
    assert "holds no float version" in capsys.readouterr().err


def test_a_session_tells_weights_in_integers_from_float(quantised, tmp_path):
    light = optimize(light_graph(4), targets=[HERE, OTHER])
    session = lw.Session(with_int8(light, quantised, [HERE]).save(tmp_path / "both.lite"))
    assert list(session.versions) == [GIVEN, "int8"]


def test_equal_weights_of_float_and_integers_stay_apart(tmp_path):
    """A float weight whose values integers also give is not taken out of the file."""
    model = optimize(classifier(), targets=[HERE, OTHER])
    for value in model.graph.constants():
        if value.const.ndim == 4:
            value.const = np.zeros_like(value.const)
    small = quantize_weights(model.graph, 8)
    both = model.but(precisions={OTHER: "int8"}, graphs={"int8": small})
    path = both.save(tmp_path / "m.lite")
    assert to_text(read_model(path).graph) == to_text(model.graph)


def test_a_missing_graph_is_an_error(mixed, tmp_path):
    path = mixed.save(tmp_path / "m.lite")
    data = path.read_bytes()
    path.write_bytes(data.replace(b"GRAPH.1\0", b"GRAPH.2\0"))
    with pytest.raises(ModelFormatError, match="graph for 'int8' is missing"):
        read_model(path)


@pytest.mark.cpu
def test_the_command(root: Path, tmp_path, capsys):
    source = str(root / "notebooks" / "models" / "digits.onnx")
    samples = source.replace(".onnx", "_held_back.npz")
    precision = ["--targets", ",".join(TARGETS), "--precision", f"opencl=fp16,{HERE}=int8"]
    out, quantised = str(tmp_path / "m.lite"), str(tmp_path / "q.lite")
    assert main(["convert", source, "-o", out, *precision]) == 2
    told = capsys.readouterr().err
    assert "--calibration DIR" in told and "--quantized FILE" in told and told.count("\n") == 1
    assert main(["convert", source, "-o", out, *precision, "--calibration", samples]) == 0
    assert f"{HERE} int8, opencl fp16" in capsys.readouterr().out
    one = Path(out).read_bytes()
    assert main(["quantize", source, "-o", quantised, "--calibration", samples]) == 0
    assert main(["convert", source, "-o", out, *precision, "--quantized", quantised]) == 0
    assert Path(out).read_bytes() == one
    assert main(["convert", source, "-o", out, "--calibration", samples]) == 2
    for option in (["run", out], ["compare", out, "--backends", f"{HERE},reference"],
                   ["run", out, "--precision", "fp32"]):  # fmt: skip
        assert main(option) in (0, 1)
    capsys.readouterr()
    assert main(["doctor", out]) == 0
    assert f"target {HERE}: int8: " in capsys.readouterr().out
    assert main(["run", source, "--precision", "int8"]) == 2


@pytest.mark.cpu
def test_integers_that_came_with_the_file_are_told(quantised, tmp_path, capsys):
    """A quantised file converted in fp32 is an int8 model wherever a person reads of it; one whose
    weights alone are integers is not."""
    targets = [HERE, "opencl"]
    path = optimize(quantised, targets=targets, precision="opencl=fp16").save(tmp_path / "q.lite")
    model, feeds = read_model(path), image(classifier())
    assert model.precisions == {"opencl": "fp16"}, "what the rest is stored in"
    assert [t["precision"] for t in model.describe()] == ["int8", "int8 and fp16"]
    predictor = Predictor(path, HERE)
    assert predictor.explain().startswith(f"runs on {HERE} (int8)\n")
    assert profile(predictor, feeds, runs=1).precision == "int8"
    np.savez(tmp_path / "x.npz", **feeds)
    given = ["--input", str(tmp_path / "x.npz"), "--backend", HERE]
    assert main(["run", str(path), "-v", *given]) == 0
    assert f"runs on {HERE} (int8)" in "".join(capsys.readouterr())
    light = optimize(quantize_weights(optimize(attention()).graph), targets=[HERE])
    assert is_quantised(light.graph) and light.display_precision(HERE) == "fp32"
