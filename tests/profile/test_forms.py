"""`lite tune --backend cpu`: sparse or dense kernels, as measured on this machine."""

from __future__ import annotations

import json

import numpy as np
import pytest
from lite_engine import Predictor, settings
from lite_engine.errors import UsageError
from lite_engine.ir import Graph
from lite_engine.model_file import Model
from lite_engine.ops._sparse import sparse_and_dense
from lite_engine.profile import forms
from lite_engine.runtime import host_target
from lite_workbench.cli import main

from tests.native.isa.test_sparse_int8 import pointwise as int8_pointwise
from tests.plan.test_sparse import weights
from tests.small_models import pointwise

pytestmark = pytest.mark.cpu


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other are slow where workers of pytest share the processors."""
    with settings.override(LITE_THREADS="1"):
        yield


@pytest.fixture
def seconds(monkeypatch):
    """What is measured, by the end of the kernel's name."""
    told = {"sparse": 1.0, "dense": 1.0, "gemm": 1.0}

    def times(predictor, feeds, found):
        return {(k, name): told[k.rpartition("_")[2]] for name, ks in found.items() for k in ks}

    monkeypatch.setattr(forms, "_times", times)
    return told


def model_of(graph: Graph) -> Model:
    return Model(graph, targets=[host_target()])


CASES = {
    # graph, kernel without a measurement, its sparse form, its dense form
    "float": (pointwise(weights(64, 48, 0.9)), "f32_conv_sparse", "f32_conv_sparse",
              "f32_conv2d_gemm"),
    "few zeros": (pointwise(weights(64, 48, 0.6)), "f32_conv2d_gemm", "f32_conv_sparse",
                  "f32_conv2d_gemm"),
    "int8": (int8_pointwise(0.1, 4, 9, 640), "i8_conv2d_gemm", "i8_conv_sparse", "i8_conv_dense"),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("faster", ["sparse", "dense"])
def test_a_file_keeps_the_faster_form(case, faster, seconds, tmp_path, capsys):
    graph, usual, sparse, dense = CASES[case]
    feeds = {"x": np.random.default_rng(0).standard_normal(graph.inputs[0].shape).astype("f4")}
    path = model_of(graph).save(tmp_path / "m.lite")
    want = Predictor(path).run(feeds)[graph.outputs[0].name]
    seconds.update({k: 0.5 for k in seconds if (k == "sparse") == (faster == "sparse")})
    out = tmp_path / "tuned.lite"
    command = ["tune", str(path), "--backend", "cpu", "-o", str(out), "--json", "-"]
    assert main(command) == 0
    (row,) = json.loads(capsys.readouterr().out)["measured"]
    way = sparse if faster == "sparse" else dense
    assert (row["layer"], row["way"]) == ("c", way)
    assert row["seconds"] == {sparse: 0.5 if faster == "sparse" else 1.0,
                              dense: 1.0 if faster == "sparse" else 0.5}  # fmt: skip
    tuned = Predictor(out)
    (step,) = [s for s in tuned.plan().steps if s.name == "c"]
    assert step.kernel == (way if row["before"] != way else usual)
    np.testing.assert_allclose(tuned.run(feeds)[graph.outputs[0].name], want, rtol=1e-4, atol=1e-4)


def test_a_difference_within_the_noise_changes_nothing(seconds):
    seconds["sparse"] = 0.99
    predictor = Predictor(model_of(pointwise(weights(64, 48, 0.6))), host_target())
    (found,) = forms.tune_forms(predictor)
    assert found.way == found.before == "f32_conv2d_gemm" and not predictor.model.tuning


def test_both_forms_are_measured():
    predictor = Predictor(model_of(pointwise(weights(64, 48, 0.8))), host_target(), threads=1)
    (found,) = forms.tune_forms(predictor)
    assert set(found.seconds) == {"f32_conv_sparse", "f32_conv2d_gemm"}
    assert all(0 < s < 10 for s in found.seconds.values())


def test_layers_without_a_choice_are_left():
    predictor = Predictor(model_of(pointwise(weights(64, 48, 0.1))), host_target())
    assert forms.tune_forms(predictor) == []
    assert sparse_and_dense(["f32_conv2d_gemm"]) is None
    with pytest.raises(UsageError, match="this machine's CPU"):
        forms.tune_forms(Predictor(pointwise(weights(64, 48, 0.8)), "reference"))


def test_what_is_measured_has_to_go_somewhere(tmp_path, capsys):
    path = model_of(pointwise(weights(64, 48, 0.9))).save(tmp_path / "m.lite")
    assert main(["tune", str(path), "--backend", "cpu"]) == 2
    assert "-o FILE" in capsys.readouterr().err
