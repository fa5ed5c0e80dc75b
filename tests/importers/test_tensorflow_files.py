"""TensorFlow: SavedModels, and files that lie."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import LiteError, ModelFormatError, UnsupportedOperatorError
from lite_engine.importers import format_of, load
from lite_engine.importers.tensorflow.bundle import Bundle
from lite_engine.importers.tensorflow.slices import extents, slice_key

from tests.importers.tensorflow_runs import W, X, run, same_conv
from tests.importers.tiny_tensorflow import (
    KERNEL,
    const,
    graph_def,
    node,
    placeholder,
    restoring,
    saved_model,
    small_saved_model,
    write_bundle,
)
from tests.importers.wire import field, message


def test_saved_model(tmp_path):
    small_saved_model(tmp_path / "m")
    assert format_of(tmp_path / "m") == "tensorflow"
    for path in (tmp_path / "m", tmp_path / "m" / "saved_model.pb"):
        graph = load(path)
        assert [v.name for v in graph.inputs] == ["image"]
        found = run(graph, image=X)["feature"]
        np.testing.assert_allclose(found, same_conv(X, KERNEL, 1) + np.arange(4), atol=1e-4)


def test_only_weights_are_dead_weights(tmp_path):
    """Names and steps of the restoring part are no weights."""
    small_saved_model(tmp_path / "m")
    assert load(tmp_path / "m").metadata["unused_weights"] == []
    nodes = [placeholder("x", (1, 3)), node("y", "Relu", "x"),
             const("left", np.ones(3, np.float32)), const("step", np.float32(1))]  # fmt: skip
    (tmp_path / "graph.pb").write_bytes(graph_def(nodes))
    graph = load(tmp_path / "graph.pb", outputs=["y"])
    assert graph.metadata["unused_weights"] == ["left"]


def test_unknown_signature_names_those_there_are(tmp_path):
    small_saved_model(tmp_path / "m")
    with pytest.raises(ModelFormatError, match="there are: serving_default"):
        load(tmp_path / "m", signature="predict")


def test_variable_without_value(tmp_path):
    small_saved_model(tmp_path / "m", w="layer/kernel")
    with pytest.raises(ModelFormatError, match="variable b has no value"):
        load(tmp_path / "m")


def test_variable_that_cannot_be_read_says_why(tmp_path):
    small_saved_model(tmp_path / "m")
    shard = tmp_path / "m/variables/variables.data-00000-of-00001"
    shard.write_bytes(shard.read_bytes()[:-8])
    with pytest.raises(ModelFormatError, match=r"b cannot be read.*outside its shard"):
        load(tmp_path / "m")


def test_bundle(tmp_path):
    arrays = {f"layer{i}/kernel": np.arange(i, dtype=np.int64) for i in range(40)}
    write_bundle(tmp_path, arrays)
    bundle = Bundle(tmp_path / "variables")
    assert sorted(bundle.keys()) == sorted(arrays)
    for key, array in arrays.items():
        np.testing.assert_array_equal(bundle.read(key)[0], array)
    with pytest.raises(ModelFormatError, match="no variable"):
        bundle.read("missing")


@pytest.mark.parametrize("name, part, key", [
    ("a/w", "7 2 5,2:-", b"\0a/w\0\1\1\2\x85\x82\x80\x7f"),
    ("a/w", "7 2 5,2:0,2", b"\0a/w\0\1\1\2\x85\x82\x80\x82"),
    ("a/long", "300 2 200,100:0,2", b"\0a/long\0\1\1\2\xc0\xc8\xc0d\x80\x82"),
    ("a/longer", "60000 1 20000,20000:0,1", b"\0a/longer\0\1\1\2\xe0N \xe0N \x80\x81"),
    ("a/huge", "2500000 1666667,833333", b"\0a/huge\0\1\1\1\xf0\x19nk\xec\xb75"),
])  # fmt: skip
def test_keys_of_parts_are_those_that_tensorflow_wrote(name, part, key):
    assert slice_key(name, extents(part)) == key


def partitioned(folder, parts):
    """A dense layer as TensorFlow 1 saves it: its 5x2 weight is two variables by reference."""
    weight = np.arange(10, dtype=np.float32).reshape(5, 2)
    graph = graph_def([
        placeholder("x", (None, 5)), node("w/part_0", "VariableV2"), node("w/part_1", "VariableV2"),
        const("axis", np.int32(0)), node("w", "ConcatV2", "w/part_0", "w/part_1", "axis"),
        node("y", "MatMul", "x", "w"),
        *restoring({"w/part_0": "w", "w/part_1": "w"}, parts, "Assign"),
    ])  # fmt: skip
    keys = [b"\0w\0\1\1\2\x80\x83\x80\x82", b"\0w\0\1\1\2\x83\x82\x80\x82"]
    names = [key.decode("utf-8", "surrogateescape") for key in keys]
    stored = dict(zip(names, (weight[:3], weight[3:])))
    saved_model(folder, graph, {"x": "x:0"}, {"y": "y:0"}, stored)
    return weight


def test_partitioned_variables(tmp_path):
    weight = partitioned(tmp_path, ["5 2 0,3:0,2", "5 2 3,2:0,2"])
    x = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    np.testing.assert_allclose(run(load(tmp_path), x=x)["y"], x @ weight, rtol=1e-5)


def test_a_part_of_what_is_stored_whole(tmp_path):
    """TensorFlow stores all of a variable as one, however it is asked for."""
    w = np.arange(12, dtype=np.float32).reshape(4, 3)
    write_bundle(tmp_path, {"w": w})
    bundle = Bundle(tmp_path / "variables")
    for part, wanted in (("4 3 -:-", w), ("4 3 1,2:-", w[1:3]), ("4 3 4,0:0,1", w[4:, :1])):
        np.testing.assert_array_equal(bundle.read("w", part)[0], wanted)
    for part in ("4 3 -", "4 3 4,1:-", "4 3 -1,2:-"):
        with pytest.raises(ModelFormatError, match=f"no variable 'w {part}'"):
            bundle.read("w", part)


@pytest.mark.parametrize("part, said", [
    ("5 2 0,2:0,2", "no variable 'w 5 2 0,2:0,2'"),
    ("5 2 0:3", "does not say which part of 'w' it is"),
    (" ", "does not say which part of 'w' it is"),
])  # fmt: skip
def test_parts_that_are_not_there(part, said, tmp_path):
    partitioned(tmp_path, [part, "5 2 3,2:0,2"])
    with pytest.raises(ModelFormatError, match=said):
        load(tmp_path)


def tensor(dims, *values, dtype=1):
    shape = message(*((2, message((1, d))) for d in dims))
    return message((8, message((1, dtype), (2, shape), *values)))


LIES = {
    "cycle": [node("a", "Neg", "b"), node("b", "Neg", "a"), node("y", "Neg", "b")],
    "missing node": [node("y", "Neg", "nowhere")],
    "missing output": [placeholder("x", (2,)), node("a", "Neg", "x"), node("y", "Neg", "a:7")],
    "same name": [placeholder("x", (2,)), node("x", "Neg", "x"), node("y", "Neg", "x")],
    "only constants": [const("c", np.float32(1))],
    "no value": [node("c", "Const"), node("y", "Neg", "c")],
    "huge constant": [node("c", "Const", value=tensor([1 << 40, 1 << 20], (5, 1.0))),
                      node("y", "Neg", "c")],
    "open constant": [node("c", "Const", value=tensor([-1], (5, 1.0))), node("y", "Neg", "c")],
    "content size": [node("c", "Const", value=tensor([5], (4, b"123"))), node("y", "Neg", "c")],
    "many axes": [node("c", "Const", value=tensor([1] * 50, (5, 1.0))), node("y", "Neg", "c")],
    "strides": [placeholder("x", (1, 4, 4, 3)), const("w", W),
                node("y", "Conv2D", "x", "w", strides=[1, 0, 0, 1], padding="SAME")],
    "padding": [placeholder("x", (1, 4, 4, 3)), const("w", W),
                node("y", "Conv2D", "x", "w", strides=[1, 1, 1, 1], padding="SOME")],
    "range": [placeholder("x", (2,)), node("y", "FakeQuantWithMinMaxArgs", "x", min=2.0, max=1.0)],
    "blocks": [placeholder("x", (1, 4)), const("b", np.int32([0])), const("p", np.int32([[0, 0]])),
               node("y", "SpaceToBatchND", "x", "b", "p")],
}  # fmt: skip


@pytest.mark.parametrize("name", LIES)
def test_lies(tensorflow_imported, name):
    with pytest.raises(ModelFormatError):
        tensorflow_imported(LIES[name])


def test_training_graph_says_what_to_do(tensorflow_imported):
    four = [const(n, np.ones(3, np.float32)) for n in "abcd"]
    bn = node("y", "FusedBatchNormV3", "x", "a", "b", "c", "d", is_training=True)
    with pytest.raises(UnsupportedOperatorError, match="export it for inference"):
        tensorflow_imported([placeholder("x", (1, 2, 2, 3)), *four, bn])
    switch = node("s", "Switch", "x", "p")
    with pytest.raises(UnsupportedOperatorError, match="control flow"):
        tensorflow_imported([placeholder("x", (1,)), placeholder("p", (), np.bool_), switch])


@pytest.mark.parametrize("op", ["Conv2D", "DepthwiseConv2dNative"])
@pytest.mark.parametrize("image, weight", [((3,), (3, 3, 3, 4)), ((1, 6, 7, 3), (3,))])
def test_a_convolution_of_a_vector(op: str, image, weight, tensorflow_imported):
    nodes = [placeholder("x", image), const("w", np.ones(weight, np.float32)),
             node("y", op, "x", "w", strides=[1, 1, 1, 1], padding="SAME")]  # fmt: skip
    with pytest.raises(ModelFormatError, match=r"y: .*(axes|the rank of)"):
        tensorflow_imported(nodes)


def test_deep_nesting(tmp_path):
    data = b""
    for _ in range(500):
        data = field(2, field(1, data))
    path = tmp_path / "graph.pb"
    path.write_bytes(field(1, message((1, "x"), (2, "Op"))) + data)
    with pytest.raises(LiteError):
        load(path)
