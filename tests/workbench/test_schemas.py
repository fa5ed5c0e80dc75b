"""What every verb writes with `--json` fits the published schema."""

from __future__ import annotations

import copy
import json
import shutil

import numpy as np
import pytest
from lite_engine import optimize
from lite_engine.runtime import host_target
from lite_workbench import schemas, shipped
from lite_workbench.cli import main
from lite_workbench.commands import available, get_command

from tests.small_models import classifier

jsonschema = pytest.importorskip("jsonschema", reason="pip install jsonschema")
pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> dict[str, str]:
    """A model, samples, and a folder to write to."""
    folder = tmp_path_factory.mktemp("schemas")
    model = optimize(classifier(), targets=[host_target(), "opencl"]).save(folder / "m.lite")
    rng = np.random.default_rng(0)
    value = classifier().inputs[0]
    samples = rng.standard_normal((6, *value.shape)).astype(np.float32)
    np.savez(folder / "samples.npz", **{value.name: samples})
    np.save(folder / "input.npy", samples[0])
    frames = folder / "frames"
    frames.mkdir()
    for name in ("first.png", "second.png"):
        shutil.copyfile(shipped("digits.png"), frames / name)
    np.savez(folder / "labeled.npz", images=samples, labels=np.arange(len(samples)))
    with np.load(shipped("digits_held_back.npz")) as held:
        some = {name: held[name][:20] for name in ("images", "labels")}
    np.savez(folder / "digits.npz", **some)
    return {"M": str(model), "OUT": str(folder), "NPZ": str(folder / "samples.npz"),
            "NPY": str(folder / "input.npy"), "DATA": str(folder / "labeled.npz"),
            "DIGITS": str(shipped("digits.onnx")),
            "NPZ_OF_DIGITS": str(shipped("digits_held_back.npz")),
            "DATA_OF_DIGITS": str(folder / "digits.npz"), "IMAGE": str(shipped("digits.png")),
            "FRAMES": str(frames),
            "HERE": host_target()}  # fmt: skip


@pytest.fixture
def document(files, tmp_path, monkeypatch, capsys):
    """Runs a verb with `--json -`; {names} stand for what `files` has."""
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))

    def run(line: str, code: int = 0) -> dict:
        words = line.format_map(files).split()
        assert main([*words, "--json", "-"]) == code
        return json.loads(capsys.readouterr().out)

    return run


def check(verb: str, data: dict) -> None:
    jsonschema.Draft202012Validator(schemas.schema(verb)).validate(data)


LINES = [
    "doctor",
    "doctor {M}",
    "info {M}",
    "convert {M} -o {OUT}/c.lite",
    "convert {M} -o {OUT}/c.lite --targets opencl --precision fp16 --layer pw=cpu",
    "quantize {M} -o {OUT}/q.lite --weights-only int8",
    "quantize {M} -o {OUT}/q.lite --weights-only int4",
    "quantize {M} -o {OUT}/q.lite --weights-only int4 --calibration {NPZ} --group 64 --asymmetric",
    "quantize {M} -o {OUT}/q.lite --calibration {NPZ} --force",
    "prune {DIGITS} -o {OUT}/p.lite --calibration {NPZ_OF_DIGITS} --samples 4 --channels 0.2 "
    "--force --no-measure",
    "prune {DIGITS} -o {OUT}/p.lite --data {DATA_OF_DIGITS} --channels 0.2 --also 0.4 --force",
    "run {M} --backend {HERE} --input {NPY} --tap pw",
    "run {M} --backend reference",
    "profile {M} --backend {HERE} --runs 6",
    "profile {M} --backend reference --runs 1 --no-history",
    "compare {M} --backends reference,{HERE} --detail pw",
    "compare {M} --backends reference,{HERE} --no-isolated --layers pw",
    "compare {M} --backends reference,{HERE} --data {NPZ}",
    "evaluate {M} --data {DATA} --backend {HERE},reference",
    "sweep {M} --backends {HERE},reference --batch 1,2 --rounds 1",
    "devices",
    "devices test local",
    "diff {M} {M}",
    "edit {M} -o {OUT}/e.onnx --batch 2 --append Softmax:1",
    "pipeline {DIGITS} -o {OUT}/p.lite",
    "pipeline {DIGITS} --image {IMAGE} --compare reference",
    "pipeline {DIGITS} --image {IMAGE} --profile --backend {HERE}",
    "pipeline {DIGITS} --stream {FRAMES}",
    "pipeline {DIGITS} --quantize {FRAMES}",
    "export {M} -o {OUT}/exported --target {HERE} --no-report",
    "runs",
    "get",
]


@pytest.mark.parametrize("line", LINES)
def test_real_documents_fit(document, line):
    verb = line.split()[0]
    data = document(line)
    assert data["schema"] == schemas.schema_name(verb)
    check(verb, data)


def test_saved_runs_fit(document):
    for _ in range(2):
        document("profile {M} --backend {HERE} --runs 6")
    for line in ("runs list", "runs show 1", "runs diff 1 2"):
        check("runs", document(line))


def test_a_comparison_that_finds_a_difference_fits(document):
    data = document("compare {M} --backends reference,{HERE} --tolerance 0", code=1)
    assert data["first_divergence"]["name"] == data["finding"]["layer"]
    check("compare", data)


@pytest.mark.hours
def test_a_recommendation_fits(document):
    line = "recommend {DIGITS} --data {DATA_OF_DIGITS} --max-drop 20% --backends {HERE}"
    check("recommend", document(line + " -o {OUT}/r.lite"))


@pytest.mark.opencl
def test_tuned_layers_fit(document):
    check("tune", document("tune {M} --effort rapid"))


#: Verbs that miss an option before they miss the file.
USAGE = ("quantize", "prune", "evaluate", "recommend", "edit", "export", "devices", "runs", "get")


@pytest.mark.parametrize("verb", schemas.VERSIONS)
def test_an_error_fits_and_another_key_does_not(verb, document):
    line = {"devices": "devices test nowhere", "diff": "diff no.lite no.lite",
            "runs": "runs show 99",
            "doctor": "doctor no.lite"}.get(verb, f"{verb} no.lite")  # fmt: skip
    error = document(line, 2 if verb in USAGE else 1)
    check(verb, error)
    for change in ({"more": 1}, {"error": {}}, {"schema": "lite/other/1"}):
        changed = {**copy.deepcopy(error), **change}
        with pytest.raises(jsonschema.ValidationError):
            check(verb, changed)


def test_a_document_with_a_renamed_key_does_not_fit(document):
    data = document("compare {M} --backends reference,{HERE}")
    data["magnified"] = data.pop("ill_conditioned")
    with pytest.raises(jsonschema.ValidationError):
        check("compare", data)


def test_every_verb_with_json_has_a_valid_schema():
    assert set(schemas.VERSIONS) == {v for v in available() if get_command(v).data is not None}
    for verb in schemas.VERSIONS:
        jsonschema.Draft202012Validator.check_schema(schemas.schema(verb))
