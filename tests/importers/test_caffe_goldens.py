"""Real Caffe models against recorded outputs of OpenCV, and against the same net elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.importers import load
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan

from tests.importers.golden_runs import Golden, run_graph

pytestmark = pytest.mark.models


def test_priors_fold_away(models_dir):
    graph = optimize_graph(load(models_dir / "caffe/yufacedetectnet-open-v1.prototxt"))
    ops = {n.op for n in graph.nodes}
    assert "DetectionOutput" in ops and not {"PriorBox", "Shape"} & ops
    assert {s.backend for s in make_plan(graph, "cpu").steps} == {"cpu"}


def test_ultraface_agrees_with_onnx_and_tflite(models_dir):
    """One network in three formats (max abs 9e-7 to ONNX's raw boxes before decoding, 3e-4 to
    TFLite)."""
    folder = models_dir / "ultraface_rfb320"
    golden = Golden(
        models_dir, models_dir / "goldens/ultraface_rfb320/RFB-320.caffemodel__face.jpg.npz"
    )
    x = golden.feed()
    caffe = load(folder / "RFB-320.caffemodel")
    tflite = load(folder / "version-RFB-320_without_postprocessing.tflite")
    onnx = load(folder / "version-RFB-320.onnx")
    a = run_graph(caffe, {caffe.inputs[0].name: x})
    b = run_graph(tflite, {tflite.inputs[0].name: np.ascontiguousarray(x.transpose(0, 2, 3, 1))})
    c = run_graph(onnx, {onnx.inputs[0].name: x})
    assert np.abs(a["boxes"] - b["Identity"]).max() < 1e-2
    assert np.abs(a["scores"] - b["Identity_1"]).max() < 1e-3
    assert np.abs(a["scores"] - c["scores"]).max() < 1e-5
    assert (c["scores"][0, :, 1] > 0.7).sum() > 0
