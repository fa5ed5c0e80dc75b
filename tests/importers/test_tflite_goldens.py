"""Real TFLite models against recorded outputs of LiteRT."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.importers import load
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan

from tests.importers.golden_runs import Golden, run_graph

pytestmark = pytest.mark.models

QUANTISED = [
    *(
        f"tflite/mobilenet_v1_0.25_224_quant.tflite__{image}"
        for image in ("bird.bmp", "burger.jpg", "cat.bmp", "grace_hopper.bmp", "hot_dog.jpg",
                      "tabby_cat.jpg")
    ),
    "tflite/vww_96_int8.tflite__cat.bmp",
    "tflite/vww_96_int8.tflite__grace_hopper.bmp",
    "tflite/micro_speech_int8.tflite__random",
]  # fmt: skip
SSD = ["dog.jpg", "cats_and_dogs.jpg"]


def _golden(models_dir, name: str) -> Golden:
    return Golden(models_dir, models_dir / "goldens" / f"{name}.npz")


def _run(golden: Golden, graph) -> list[np.ndarray]:
    outputs = run_graph(graph, {graph.inputs[0].name: golden.feed()})
    return [outputs[name] for name in golden.names] if golden.names else list(outputs.values())


@pytest.mark.parametrize("name", QUANTISED)
def test_integer_path_equals_default_kernels(models_dir, name):
    """Requantisation is float32(acc)·scale rounded half to even, as in LiteRT's default kernels
    (XNNPACK): every integer is equal.

    LiteRT's reference kernels round twice, first to the multiplier's 31 bits and then away from
    zero
    when shifting. Layer by layer (given equal inputs) that moves 0-10 % of the elements by one
    step;
    after 28 layers and a softmax it is up to 11 steps, as between LiteRT's own two sets of kernels.
    """
    golden = _golden(models_dir, name)
    graph = optimize_graph(load(models_dir / golden.meta["model"]))
    assert not any(n.op == "Conv" for n in graph.nodes)
    (found,) = _run(golden, graph)
    np.testing.assert_array_equal(found, golden.data["out0"])


@pytest.mark.parametrize("name", QUANTISED)
def test_float_qdq_form_stays_near(models_dir, name):
    golden = _golden(models_dir, name)
    graph = load(models_dir / golden.meta["model"])
    (found,) = _run(golden, graph)
    for prefix in ("", "ref_"):
        steps = np.abs(found.astype(int) - golden.wanted(0, prefix).astype(int))
        assert steps.mean() < 1.01 and steps.max() <= 11


@pytest.mark.parametrize("image", SSD)
def test_ssd(models_dir, image):
    golden = _golden(models_dir, f"tflite/ssd_mobilenet_v1_coco_quant.tflite__{image}")
    graph = load(models_dir / golden.meta["model"])
    for index, found in enumerate(_run(golden, optimize_graph(graph))):
        np.testing.assert_allclose(found, golden.data[f"out{index}"], atol=2e-6)
    assert len(graph.metadata["labels"]) == 90
    assert graph.metadata["labels"][0] == "person"


def test_ssd_known_result(models_dir):
    """dog.jpg: bicycle .738, car .668, cat (sic) .633, person .523 come first."""
    golden = _golden(models_dir, "tflite/ssd_mobilenet_v1_coco_quant.tflite__dog.jpg")
    graph = load(models_dir / golden.meta["model"])
    _, classes, scores, _ = _run(golden, optimize_graph(graph))
    found = [graph.metadata["labels"][int(c)] for c in classes[0]]
    assert found[:4] == ["bicycle", "car", "cat", "person"]
    plan = make_plan(optimize_graph(graph), "cpu")
    assert {s.backend for s in plan.steps} == {"cpu"}  # a device runs it to the end
    np.testing.assert_allclose(scores[0, :4], [0.738, 0.668, 0.633, 0.523], atol=1e-3)


def test_metadata_of_quantised_classifier(models_dir):
    graph = load(models_dir / "tflite/mobilenet_v1_0.25_224_quant.tflite")
    assert len(graph.metadata["labels"]) == 1001
    assert graph.metadata["labels"][0] == "background"
    preprocess = graph.metadata["preprocess"]
    assert preprocess["mean"] == [127.5] and preprocess["std"] == [127.5]
    assert preprocess["colour"] == "rgb" and preprocess["layout"] == "nhwc"
    quant = graph.inputs[0].quant
    assert quant is not None and float(quant.scale) == 0.0078125 and int(quant.zero_point) == 128


@pytest.mark.parametrize(
    ("image", "person"), [("tflm_person_96", True), ("tflm_no_person_96", False)]
)
def test_bad_quantized_dimension_is_a_warning(models_dir, image, person):
    """The file names axis 3 of one-dimensional biases; TFLite Micro accepts it."""
    from PIL import Image

    graph = load(models_dir / "tflite/person_detect_int8.tflite")
    (warning,) = graph.metadata["warnings"]
    assert "quantized_dimension" in warning and "A newer TFLite converter" in warning
    pixels = np.asarray(Image.open(models_dir / f"images/{image}.bmp").convert("L"))
    x = pixels.view(np.int8).reshape(1, 96, 96, 1)  # the bytes as they are, as TFLite Micro feeds
    for model in (graph, optimize_graph(graph)):
        (scores,) = run_graph(model, {"input": x}).values()
        assert (scores[0, 1] > scores[0, 0]) == person


@pytest.mark.parametrize(
    ("name", "transposes"),
    [("tflite/mobilenet_v1_0.25_224_float", 1), ("tflite/mobilenet_v1_0.25_224_quant", 1),
     ("tflite/vww_96_int8", 1), ("deeplab_dm05_person/deeplab_aiseg513_dm05_float", 2)],
)  # fmt: skip
def test_no_forest_of_transposes(models_dir, name, transposes):
    """One at the entry, one at the exit of a network whose output is an image."""
    graph = optimize_graph(load(models_dir / f"{name}.tflite"))
    assert sum(n.op == "Transpose" for n in graph.nodes) == transposes
