"""Edited graphs against onnxruntime: parts of a network give the network's own values."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lite_engine import edit, load, write_onnx
from lite_engine.errors import UsageError
from lite_engine.exporters.onnx import write_bytes
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types
from lite_engine.passes._core import P
from lite_engine.preprocess import Preprocess
from lite_engine.runtime.inputs import random_feeds

from tests.small_models import Builder

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")
ort = pytest.importorskip("onnxruntime")

#: Real models → the shape of an input that the file leaves open.
REAL = {
    "onnx/mnist_8.onnx": None,
    "onnx/DERIVED_mobilenet_v1_0.25_224_tf2onnx.onnx": None,
    "lprnet_plate_ocr/DERIVED_lprnet.onnx": None,
    "tflite/vww_96_float.tflite": None,
    "tflite/mobilenet_v1_0.25_224_float.tflite": None,
    "tflite/person_detect_int8.tflite": None,
    "ultraface_rfb320/version-RFB-320_without_postprocessing.tflite": None,
    "ppocr_v2_cls/inference.pdmodel": (1, 3, 48, 192),
    "paddle/shufflenet_v2_imagenet_fluid": (1, 3, 224, 224),
    "tf/mobilenet_v1_0.25_224_frozen_graph.pb": None,
    "caffe/mtcnn/det2.caffemodel": None,
}
#: Networks that take a mean over the whole batch: so many layers refuse another one.
MIXES = {"lprnet_plate_ocr/DERIVED_lprnet.onnx": 4}


def run(graph: Graph, feeds: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(write_bytes(graph), options, providers=["CPUExecutionProvider"])
    names = [v.name for v in graph.outputs]
    return dict(zip(names, session.run(names, feeds), strict=True))


def close(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.linalg.norm(a.astype(float) - b) <= 1e-5 * max(np.linalg.norm(b), 1e-6))


@pytest.fixture(scope="module")
def network(tmp_path_factory) -> Graph:
    path = tmp_path_factory.mktemp("edit") / "m.onnx"
    path.write_bytes(zoo.build("mobilenet_v3_small").SerializeToString())
    return load(path)


@pytest.fixture(scope="module")
def values(network) -> dict[str, np.ndarray]:
    """Every value of the network at one input."""
    whole = network.copy()
    whole.outputs = [v for n in whole.nodes for v in n.outputs]
    feeds = random_feeds(network)
    return {**feeds, **run(whole, feeds)}


def test_a_part_gives_the_same_values(network, values) -> None:
    at, to = next(
        (add.output.name, conv.output.name)
        for add, conv in zip(network.nodes, network.nodes[1:])
        if add.op == "Add" and conv.op == "Conv" and len(add.output.readers) == 1
    )
    to = next(n for n in network.nodes if n.inputs[0].name == to).output.name
    part = edit.extract(network, [at], [to])
    assert [v.name for v in part.inputs] == [at] and len(part.nodes) <= 30
    assert close(run(part, {at: values[at]})[to], values[to])
    assert len(network.nodes) > 100  # the graph that was given is as it was


def test_layers_that_are_selected_become_a_model(network, values) -> None:
    names = [n.name for n in network.nodes[20:26]]
    part = edit.extract_layers(network, names)
    assert [n.name for n in part.nodes] == names
    made = run(part, {v.name: values[v.name] for v in part.inputs})
    assert made and all(close(made[name], values[name]) for name in made)


def test_an_input_that_is_missing_is_named(network) -> None:
    add = next(n for n in network.nodes if n.op == "Add" and all(v.producer for v in n.inputs))
    with pytest.raises(UsageError, match="also need"):
        edit.extract(network, [add.inputs[0].name], [add.output.name])
    with pytest.raises(UsageError, match="did you mean"):
        edit.extract(network, [], [network.nodes[3].output.name + "x"])
    with pytest.raises(UsageError, match="no layer"):
        edit.extract_layers(network, [])


def batched(graph: Graph) -> None:
    """Rows of a batch of two are those of two runs."""
    single = random_feeds(graph), random_feeds(graph)
    rng = np.random.default_rng(5)
    single[1].update({k: rng.permutation(v.ravel()).reshape(v.shape) for k, v in single[1].items()})
    made = edit.rebatch(graph, 2)
    assert made.refused == []
    both = run(made.graph, {k: np.concatenate([f[k] for f in single]) for k in single[0]})
    for i, feeds in enumerate(single):
        for name, y in run(graph, feeds).items():
            assert close(both[name][i : i + 1], y), name


def test_a_batch_of_two(network) -> None:
    batched(network)


@pytest.mark.sweep
@pytest.mark.models
@pytest.mark.parametrize("name", REAL)
def test_real_models(name: str, models_dir: Path) -> None:
    """A batch of two, and the first third of the network."""
    graph = load(models_dir / name)
    if shape := REAL[name]:
        graph = load(models_dir / name, shapes={graph.inputs[0].name: shape})
    if name in MIXES:
        assert [r.op for r in edit.rebatch(graph, 2).refused] == ["ReduceMean"] * MIXES[name]
    else:
        batched(graph)
    feeds = random_feeds(graph)
    middle = graph.nodes[len(graph.nodes) // 3].output.name
    head = edit.extract(graph, [], [middle])
    between = run(head, {v.name: feeds[v.name] for v in head.inputs})
    probe = graph.copy()
    probe.outputs = [*probe.outputs, probe.find(middle)]
    assert close(between[middle], run(probe, feeds)[middle])


def test_sizes_that_do_not_fit_are_listed(network) -> None:
    graph = Graph("flat")
    graph.inputs = [Value("x", DType.F32, (1, 3, 4, 4))]
    flat = graph.add("Reshape", [graph.inputs[0], graph.constant([1, 48])], name="flat")
    w = graph.constant(np.ones((48, 2), np.float32))
    graph.outputs = [graph.add("MatMul", [flat.output, w], name="fc").output]
    infer_types(graph)
    assert edit.rebatch(graph, 5).adapted == ["flat"]
    assert edit.rebatch(graph, 5).graph.outputs[0].shape == (5, 2)
    refused = edit.resize(graph, {"x": (1, 3, 8, 8)}).refused
    assert [(r.layer, r.op) for r in refused] == [("fc", "MatMul")]
    with pytest.raises(UsageError, match="expected 4 sizes"):
        edit.resize(graph, {"x": (1, 3)})


def test_a_size_that_moves_over_axes_of_one_follows(rng) -> None:
    """[1, 6, 4] → [6, 4] → [1, 6, 4], with fixed sizes; [1, 24] → [24, 1] mixes the batch."""
    graph = Graph("rows")
    graph.inputs = [Value("x", DType.F32, (1, 6, 4))]
    flat = graph.add("Reshape", [graph.inputs[0], graph.constant([6, 4])], name="flat").output
    back = graph.add("Reshape", [flat, graph.constant([1, 6, 4])], name="back").output
    graph.outputs = [back]
    infer_types(graph)
    made = edit.resize(graph, {"x": (1, 9, 4)})
    assert made.refused == [] and made.adapted == ["flat", "back"]
    x = rng.random((1, 9, 4)).astype(np.float32)
    np.testing.assert_array_equal(run(made.graph, {"x": x})[back.name], x)
    graph.inputs[0].shape = (1, 24)
    flat.producer.set_input(1, graph.constant([24, 1]))
    graph.outputs = [flat]
    infer_types(graph)
    assert [r.layer for r in edit.rebatch(graph, 2).refused] == ["flat"]


Head = Callable[[Builder, int, int], Value]


def yolo(anchors: int, numbers: int, *written: int) -> Head:
    """`written` are the sizes before the cells as the file has them, where other than the own."""

    def head(b: Builder, h: int, w: int) -> Value:
        y = b.add("Conv", b.x, b.weights(anchors * numbers, 4, 1, 1))
        y = b.add("Reshape", y, b.ints(1, *(written or (anchors, numbers)), h, w))
        y = b.add("Transpose", y, perm=[0, 1, 3, 4, 2])
        return b.add("Reshape", y, b.ints(1, anchors * h * w, numbers))

    return head


def ssd(*sizes: int) -> Head:
    def head(b: Builder, h: int, w: int) -> Value:
        y = b.add("Conv", b.x, b.weights(24, 4, 1, 1))
        y = b.add("Transpose", y, perm=[0, 2, 3, 1])
        return b.add("Reshape", y, b.ints(*(sizes or (1, h * w * 6, 4))))

    return head


def pixel_shuffle(b: Builder, h: int, w: int) -> Value:
    y = b.add("Reshape", b.x, b.ints(1, 1, 2, 2, h, w))
    y = b.add("Transpose", y, perm=[0, 1, 4, 2, 5, 3])
    return b.add("Reshape", y, b.ints(1, 1, 2 * h, 2 * w))


def channel_shuffle(b: Builder, h: int, w: int) -> Value:
    y = b.add("Conv", b.x, b.weights(8, 4, 1, 1))
    y = b.add("Transpose", b.add("Reshape", y, b.ints(1, 2, 4, h, w)), perm=[0, 2, 1, 3, 4])
    return b.add("Reshape", y, b.ints(1, 8, h, w))


def tokens(b: Builder, h: int, w: int) -> Value:
    """Attention over the map, with as many heads as rows of 4."""
    y = b.add("Transpose", b.add("Reshape", b.x, b.ints(1, 4, h * w)), perm=[0, 2, 1])
    y = b.add("MatMul", y, b.weights(4, 16))
    y = b.add("Transpose", b.add("Reshape", y, b.ints(1, h * w, 4, 4)), perm=[0, 2, 1, 3])
    y = b.add("Transpose", b.add("Softmax", y, axis=2), perm=[0, 2, 1, 3])
    return b.add("Reshape", y, b.ints(1, h * w, 16))


def windows_of(size: int) -> Head:
    """Swin's, of `size`·`size`; there and back."""

    def head(b: Builder, h: int, w: int) -> Value:
        y = b.add("Transpose", b.x, perm=[0, 2, 3, 1])
        y = b.add("Reshape", y, b.ints(1, h // size, size, w // size, size, 4))
        y = b.add("Transpose", y, perm=[0, 1, 3, 2, 4, 5])
        return b.add("Reshape", y, b.ints(h * w // size**2, size**2, 4))

    return head


def heads_of_the_map(b: Builder, h: int, w: int) -> Value:
    """The tokens become a map again: 16 as 4·4 does not say which 4 is which side."""
    y = b.add("Reshape", b.x, b.ints(1, 4, h * w))
    return b.add("Reshape", y, b.ints(1, -1, h, w))


def classes(b: Builder, h: int, w: int) -> Value:
    y = b.add("Reshape", b.x, b.ints(1, 4 * h * w))
    return b.add("Gemm", y, b.weights(4 * h * w, 3), b.weights(3))


def one_window_of_tokens(b: Builder, h: int, w: int) -> Value:
    y = b.add("Transpose", b.add("Reshape", b.x, b.ints(1, 4, h * w)), perm=[0, 2, 1])
    return b.add("Reshape", y, b.ints(1, h // 4, 4, w // 4, 4, 4))


#: Heads, and whether they follow another size of the map.
HEADS: dict[str, tuple[Head, bool]] = {
    "yolo, as many numbers as cells": (yolo(3, 4), True),
    "yolo, as many anchors as cells": (yolo(4, 5), True),
    "yolo, all alike": (yolo(4, 4), True),
    "yolo, with what is left": (yolo(4, 4, 4, -1), True),
    "ssd": (ssd(), True),
    "ssd, with what is left": (ssd(1, -1, 4), True),
    "ssd, rows of any sample": (ssd(-1, 4), True),
    "ssd, the sample as it has it": (ssd(0, -1, 4), True),
    "pixel shuffle": (pixel_shuffle, True),
    "channel shuffle": (channel_shuffle, True),
    "tokens": (tokens, True),
    "windows": (windows_of(2), False),
    "one window": (windows_of(4), False),
    "one window of tokens": (one_window_of_tokens, False),
    "a map of tokens": (heads_of_the_map, False),
    "classes": (classes, False),
}


@pytest.mark.parametrize("size", [(8, 8), (4, 8), (8, 4), (12, 8)], ids=str)
@pytest.mark.parametrize("name", HEADS)
def test_a_head_of_another_map_is_the_one_built_for_it(name: str, size: tuple[int, int]) -> None:
    """Where sizes are equal by chance, too; what is not certain is refused."""
    head, follows = HEADS[name]

    def built(h: int, w: int) -> Graph:
        b = Builder((1, 4, h, w), "head")
        graph = b.done(head(b, h, w))
        infer_types(graph, strict=True)
        return graph

    made = edit.resize(built(4, 4), {"x": (1, 4, *size)})
    if name == "a map of tokens" and size[1] == 4:
        follows = True  # the height alone, whose place in h·w is known
    assert (made.refused == []) is follows, made.refused
    if follows:
        x = np.random.default_rng(3).standard_normal((1, 4, *size)).astype(np.float32)
        (got,), (want,) = (run(g, {"x": x}).values() for g in (made.graph, built(*size)))
        np.testing.assert_array_equal(got, want)


def test_a_batch_that_an_axis_has_inside_is_not_taken_for_it() -> None:
    """B·heads → B, heads with B = 1, where the batch changes with the map."""
    b = Builder((1, 4, 2, 2), "inside")
    y = b.add("Softmax", b.add("Reshape", b.x, b.ints(4, 2, 2)), axis=1)
    graph = b.done(b.add("Reshape", y, b.ints(1, 4, 2, 2), name="back"))
    infer_types(graph, strict=True)
    assert [r.layer for r in edit.resize(graph, {"x": (3, 4, 6, 6)}).refused] == ["back"]
    made = edit.resize(graph, {"x": (1, 4, 6, 6)})
    assert made.refused == [] and made.graph.outputs[0].shape == (1, 4, 6, 6)


def small() -> Graph:
    graph = Graph("small")
    graph.inputs = [Value("x", DType.F32, (2, 4))]
    a = graph.add("Sigmoid", graph.inputs, name="s", outputs=["s_out"])
    b = graph.add("Mul", [graph.inputs[0], a.output], name="m", outputs=["m_out"])
    c = graph.add("Softmax", [b.output], {"axis": -1}, name="soft", outputs=["y"])
    graph.outputs = [c.output]
    infer_types(graph)
    return graph


X = np.linspace(-2, 3, 8, dtype=np.float32).reshape(2, 4)


def test_rename() -> None:
    graph = edit.rename(small(), {"x": "image", "y": "scores", "soft": "head"})
    assert [v.name for v in graph.inputs + graph.outputs] == ["image", "scores"]
    assert graph.nodes[-1].name == "head"
    assert run(graph, {"image": X})["scores"].shape == (2, 4)
    with pytest.raises(UsageError, match="taken"):
        edit.rename(small(), {"x": "y"})


def test_drop_keeps_the_outputs_name() -> None:
    graph = edit.drop(small(), ["soft"])
    np.testing.assert_allclose(run(graph, {"x": X})["y"], X / (1 + np.exp(-X)), rtol=1e-5)
    graph = edit.append(edit.drop(small(), ["soft"]), "ArgMax", attrs={"axis": 1, "keepdims": 0})
    with pytest.raises(UsageError, match="turns"):
        edit.drop(graph, [graph.nodes[-1].name])


def relu(name: str = "x") -> Graph:
    graph = Graph("by")
    graph.inputs = [Value(name, DType.F32, (2, 4))]
    graph.outputs = [graph.add("Relu", graph.inputs, name="s", outputs=["y"]).output]
    infer_types(graph)
    return graph


def test_a_region_and_a_pattern_are_replaced() -> None:
    region = edit.replace(small(), ["x"], ["m_out"], relu())
    pattern, count = edit.replace_matches(small(), P("Mul", "x", P("Sigmoid", "x")), relu())
    assert count == 1
    e = np.exp(np.maximum(X, 0))
    for graph in (region, pattern):
        assert sorted(n.op for n in graph.nodes) == ["Relu", "Softmax"]
        np.testing.assert_allclose(
            run(graph, {"x": X})["y"], e / e.sum(1, keepdims=True), rtol=1e-5
        )
    with pytest.raises(UsageError, match="expected a model with 2 inputs, found 1: x"):
        edit.replace(small(), ["x", "s_out"], ["y"], relu())
    with pytest.raises(UsageError, match="y depends on s_out"):
        edit.replace(small(), ["y"], ["s_out"], relu())


@pytest.mark.parametrize("pads", [0, 1])
def test_normalization_moves_into_the_convolution(pads: int, rng) -> None:
    graph = Graph("conv")
    graph.inputs = [Value("x", DType.F32, (1, 3, 6, 6))]
    w = graph.constant(rng.standard_normal((2, 3, 3, 3)).astype(np.float32))
    node = graph.add("Conv", [graph.inputs[0], w], {"pads": [pads] * 4}, name="c", outputs=["y"])
    graph.outputs = [node.output]
    infer_types(graph)
    pixels = rng.integers(0, 256, (1, 3, 6, 6)).astype(np.float32)
    how = Preprocess.parse("imagenet,bgr,crop", None)
    made, why = edit.normalize(graph, how)
    left = Preprocess.from_dict(made.metadata["preprocess"])
    assert (left.mean, left.std, left.colour, left.fit) == ((0,), (1,), "bgr", "crop")
    again, _ = edit.normalize(made, Preprocess.parse("mean=0,std=255", None))
    assert Preprocess.from_dict(again.metadata["preprocess"]) == left
    mean, std = (np.reshape(v, (1, 3, 1, 1)) for v in (how.mean, how.std))
    wanted = run(graph, {"x": ((pixels - mean) / std).astype(np.float32)})["y"]
    np.testing.assert_allclose(run(made, {"x": pixels})["y"], wanted, rtol=1e-4, atol=1e-4)
    assert [n.op for n in made.nodes] == (["Sub", "Conv"] if pads else ["Conv"])
    assert bool(why) == bool(pads)


def test_boxes_are_suppressed(tmp_path: Path) -> None:
    graph = Graph("boxes")
    graph.inputs = [Value("b", DType.F32, (1, 3, 4)), Value("s", DType.F32, (1, 1, 3))]
    graph.outputs = [
        graph.add("Identity", [v], outputs=[f"{v.name}_out"]).output for v in graph.inputs
    ]
    infer_types(graph)
    made = edit.append_nms(graph, "b_out", "s_out", iou=0.5, score=0.2)
    boxes = np.array([[[0, 0, 10, 10], [0, 0, 10, 9], [20, 20, 30, 30]]], np.float32)
    found = run(made, {"b": boxes, "s": np.array([[[0.9, 0.8, 0.1]]], np.float32)})["selected"]
    assert found.tolist() == [[0, 0, 0]]


def test_constants_fold(tmp_path: Path) -> None:
    graph = small()
    two = graph.add("Add", [graph.constant(np.float32(1)), graph.constant(np.float32(1))])
    graph.outputs = [graph.add("Mul", [graph.outputs[0], two.output], outputs=["z"]).output]
    infer_types(graph)
    folded = edit.fold(graph)
    assert len(folded.nodes) == len(graph.nodes) - 1
    np.testing.assert_array_equal(run(folded, {"x": X})["z"], run(graph, {"x": X})["z"])
    assert load(write_onnx(folded, tmp_path / "f.onnx")).outputs[0].name == "z"
