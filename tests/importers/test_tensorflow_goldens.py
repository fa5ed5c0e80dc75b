"""Real frozen graphs against recorded outputs of TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.importers import load
from lite_engine.passes import optimize_graph

from tests.importers.golden_runs import Golden, run_graph

pytestmark = pytest.mark.models


def test_agrees_with_the_onnx_form_of_the_same_network(models_dir):
    """Class scores before the softmax spreads them: 2e-6 between the two formats."""
    path = models_dir / "goldens/tf/mobilenet_v1_0.25_224_frozen_graph.pb__cat.bmp.npz"
    x = Golden(models_dir, path).feed()
    graph = load(models_dir / "tf/mobilenet_v1_0.25_224_frozen_graph.pb")
    other = load(models_dir / "onnx/DERIVED_mobilenet_v1_0.25_224_tf2onnx.onnx")
    a = run_graph(graph, {"input": x})["MobilenetV1/Predictions/Reshape_1"]
    nchw = np.ascontiguousarray(x.transpose(0, 3, 1, 2))
    (b,) = run_graph(other, {other.inputs[0].name: nchw}).values()
    assert np.abs(a - b).max() < 1e-5


def test_unfused_batch_norm_folds_into_convolutions(models_dir):
    graph = optimize_graph(load(models_dir / "tf/mobilenet_v1_0.25_224_frozen_graph.pb"))
    ops = [n.op for n in graph.nodes]
    assert ops.count("Conv") == 28 and ops.count("Transpose") == 1
    assert not {"Mul", "Add", "Clip"} & set(ops)


def test_deeplab_dilates_without_space_to_batch(models_dir):
    """Open image size, padding computed from shapes, aligned corners, dilated convolutions."""
    path = models_dir / "deeplab_dm05_person/frozen_inference_graph.pb"
    graph = load(path, shapes={"ImageTensor": (1, 513, 513, 3)})
    assert not any(n.op == "SpaceToBatchND" for n in graph.nodes)
    assert sum(n.op == "Conv" and "dilations" in n.attrs for n in graph.nodes) == 10
