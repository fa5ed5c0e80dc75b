"""Real frozen graphs against recorded outputs of TensorFlow."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.importers import load
from lite_engine.passes import optimize_graph

from tests.importers.golden_runs import Golden, relative_error, run_graph

pytestmark = pytest.mark.models

IMAGES = ["bird.bmp", "burger.jpg", "cat.bmp", "grace_hopper.bmp", "hot_dog.jpg", "tabby_cat.jpg"]


@pytest.mark.parametrize("image", IMAGES)
def test_mobilenet_with_unfused_batch_norm(models_dir, image):
    path = models_dir / f"goldens/tf/mobilenet_v1_0.25_224_frozen_graph.pb__{image}.npz"
    golden = Golden(models_dir, path)
    graph = load(models_dir / golden.meta["model"])
    for model in (graph, optimize_graph(graph)):
        found = run_graph(model, {"input": golden.feed()})
        assert relative_error(found["MobilenetV1/Predictions/Reshape_1"], golden.wanted(0)) < 1e-4


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


def test_deeplab_preprocessing_and_segmentation(models_dir):
    """Open image size, padding computed from shapes, aligned corners, dilated convolutions."""
    path = models_dir / "goldens/deeplab_dm05_person/frozen_inference_graph.pb__human.jpg.npz"
    golden = Golden(models_dir, path)
    graph = load(models_dir / golden.meta["model"], shapes={"ImageTensor": (1, 513, 513, 3)})
    assert not any(n.op == "SpaceToBatchND" for n in graph.nodes)
    assert sum(n.op == "Conv" and "dilations" in n.attrs for n in graph.nodes) == 10
    feeds = {"ImageTensor": golden.feed().astype(np.uint8)}
    for model in (graph, optimize_graph(graph)):
        np.testing.assert_array_equal(
            run_graph(model, feeds)["SemanticPredictions"], golden.wanted(0)
        )


@pytest.mark.parametrize(("word", "index", "score"), [("yes", 2, 0.9998), ("no", 3, 0.993)])
def test_keyword_from_the_bytes_of_a_wav_file(models_dir, word, index, score):
    golden = Golden(models_dir, models_dir / f"goldens/tf/DS_CNN_S.pb__{word}_1000ms.wav.npz")
    graph = load(models_dir / "tf/DS_CNN_S.pb")
    wav = np.fromfile(models_dir / f"audio/{word}_1000ms.wav", np.uint8)
    found = run_graph(graph, {"wav_data": wav})["labels_softmax"]
    assert relative_error(found, golden.wanted(0)) < 1e-4
    assert found[0].argmax() == index and found[0, index] > score - 5e-4
