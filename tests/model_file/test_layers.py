"""Single layers set by hand: stored with a target, honoured at load, shown, refused when wrong."""

from __future__ import annotations

import json
import subprocess

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine._native import runner_path
from lite_engine.errors import ModelFormatError, UsageError
from lite_engine.model_file import parse_layers, read_model, retarget, with_layers
from lite_engine.model_file._container import read_container, write_container
from lite_engine.runtime import host_target
from lite_workbench.cli import main

from tests.small_models import classifier, image

HERE = host_target()
TARGETS = ["opencl", "x86", "arm"]


def placed(predictor: Predictor) -> dict[str, tuple[str, str]]:
    return {s.name: (s.backend, s.kernel) for s in predictor.plan().steps}


@pytest.fixture
def model():
    return optimize(classifier(), targets=TARGETS, precision="opencl=fp16")


@pytest.mark.cpu
def test_a_kernel_is_stored_and_used(model, tmp_path):
    usual = placed(Predictor(model, HERE))["wide"]
    other = "f32_conv2d_gemm" if usual[1] != "f32_conv2d_gemm" else "f32_conv2d_winograd23"
    path = with_layers(model, {HERE: {"wide": other}}).save(tmp_path / "m.lite")
    predictor = Predictor(path, HERE)
    assert placed(predictor)["wide"] == ("cpu", other)
    (step,) = (s for s in predictor.plan().steps if s.name == "wide")
    assert step.why == "chosen for this layer"
    assert f"layer wide: set to {other}" in predictor.explain()
    feeds = image(model.graph)
    want = Predictor(model, "reference").run(feeds)["prob"]
    np.testing.assert_allclose(predictor.run(feeds)["prob"], want, atol=1e-5)
    profile = tmp_path / "p.json"
    run = subprocess.run([runner_path(), path, "--profile", profile], capture_output=True)
    assert run.returncode == 0
    steps = {s["name"]: s["kernel"] for s in json.loads(profile.read_text())["steps"]}
    assert steps["wide"] == other


@pytest.mark.opencl
def test_places_and_precisions_are_stored_and_used(model, tmp_path):
    made = with_layers(model, {"opencl": {"pw": "x86", "fc": "reference", "wide": "fp32"}})
    path = made.save(tmp_path / "m.lite")
    assert read_model(path).overrides == {"opencl": {"pw": "cpu", "fc": "reference",
                                                     "wide": "fp32"}}  # fmt: skip
    predictor, feeds = Predictor(path, "opencl"), image(model.graph)
    steps = {s.name: s for s in predictor.plan().steps}
    tensors = predictor.plan().tensors
    assert steps["pw"].backend == "cpu" and steps["fc"].backend == "reference"
    assert steps["wide"].backend == steps["stem"].backend == "opencl"
    dtypes = [str(tensors[steps[n].outputs[0]].dtype) for n in ("wide", "stem")]
    assert dtypes == ["f32", "f16"]
    assert all(steps[n].why.startswith("overridden; ") for n in ("pw", "fc", "wide"))
    want = Predictor(model, "reference").run(feeds)["prob"]
    np.testing.assert_allclose(predictor.run(feeds)["prob"], want, atol=1e-2)
    if HERE in TARGETS:  # other targets are as they were
        assert not Predictor(path, HERE).overrides
    back = Predictor(path, "opencl", overrides={"wide": "cpu"})  # the caller goes first
    assert {s.name: s.backend for s in back.plan().steps}["wide"] == "cpu"


def test_what_the_runner_cannot_do_is_said(model, tmp_path):
    made = with_layers(model, {"x86": {"pw": "opencl"}, "arm": {"prob": "reference"}})
    path = made.save(tmp_path / "m.lite")
    notes = read_model(path).metadata["notes"]
    assert "pw on opencl" in notes["x86"] and "Softmax" in notes["arm"]
    assert not {t for t in read_container(path) if t.startswith("PROG")}


def test_precision_of_a_layer_has_a_program_of_its_own(model, tmp_path):
    made = with_layers(model, {"x86": {"wide": "bf16"}})
    sections = read_container(made.save(tmp_path / "m.lite"))
    assert sections["HALF.x86"] != sections["PROG.x86"] and "HALF.arm" not in sections


def test_kept_and_taken_back(model):
    made = with_layers(model, {t: {"pw": "reference"} for t in TARGETS})
    assert retarget(made, targets=["arm"]).overrides == {"arm": {"pw": "reference"}}
    back = with_layers(made, {"arm": {"pw": "plan"}, "x86": {"pw": "fp32"}})
    assert back.overrides == {"opencl": {"pw": "reference"}, "x86": {"pw": "fp32"}}
    assert made.overrides["arm"] == {"pw": "reference"}


def test_refusals(model):
    for choices, said in (
        ({"x86": {"wid": "cpu"}}, "there is no layer 'wid'; did you mean wide"),
        ({"x86": {"wide": "gpu"}}, "'gpu' is not one of cpu, opencl, reference, fp32"),
        ({"x86": {"wide": "int8"}}, "'int8' is not one of"),
    ):
        with pytest.raises(UsageError, match=said):
            with_layers(model, choices)
    with pytest.raises(UsageError, match="not among x86"):
        with_layers(optimize(classifier(), targets="x86"), {"arm": {"wide": "cpu"}})
    for text in ("wide", "=cpu", "wide=", "x86:=cpu"):
        with pytest.raises(UsageError, match="is not of the form"):
            parse_layers([text], TARGETS)
    assert parse_layers(["a:0=cpu", "arm:b=c=fp32"], ["x86"]) == {
        "x86": {"a:0": "cpu"}, "arm": {"b=c": "fp32"},
    }  # fmt: skip


def test_damaged_choices(model, tmp_path):
    path = with_layers(model, {"arm": {"pw": "reference"}}).save(tmp_path / "m.lite")
    sections = {t: [bytes(d)] for t, d in read_container(path).items()}
    meta = json.loads(sections["META"][0])
    for bad in ({"arm": {"pw": "a" * 65}}, {"arm": ["pw"]}, ["arm"], {"arm": {"pw": 1}}):
        sections["META"] = [json.dumps({**meta, "overrides": bad}).encode()]
        write_container(path, sections)
        with pytest.raises(ModelFormatError):
            read_model(path)


def test_a_backend_that_is_not_installed_is_read_and_the_cpu_runs_its_layers(model, tmp_path):
    path = model.but(overrides={HERE: {"pw": "acme"}}).save(tmp_path / "m.lite")
    step = next(s for s in Predictor(path, HERE).plan().steps if s.name == "pw")
    assert step.backend == "cpu" and "the backend acme cannot be used here" in step.why


def test_the_command(model, tmp_path, capsys):
    source, out = str(model.save(tmp_path / "m.lite")), str(tmp_path / "n.lite")
    layers = ["--layer", "opencl:wide=fp32", "--layer", "pw=reference"]
    assert main(["convert", source, "-o", out, *layers]) == 0
    assert main(["info", out]) == 0
    told = capsys.readouterr().out
    assert "target  opencl: fp16, 8 layers; pw overridden: reference; wide overridden: fp32" in told
    assert main(["run", out, "--backend", "reference", "-v"]) == 0
    if HERE == "x86":
        capsys.readouterr()
        assert main(["run", out, "--backend", HERE, "-v"]) == 0
        assert "layer pw: set to reference" in capsys.readouterr().out
    assert main(["convert", source, "-o", out, "--layer", "wide=gpu"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
