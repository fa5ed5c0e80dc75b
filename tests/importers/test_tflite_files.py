"""TensorFlow Lite: the readers of its buffers, metadata, and files that lie."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from lite_engine import Predictor, load
from lite_engine.errors import ModelFormatError, ShapeError, UnsupportedOperatorError
from lite_engine.importers import format_of
from lite_engine.importers._flatbuffers import root
from lite_engine.importers.tflite._flexbuffers import read_map

from tests.importers.tiny_tflite import TinyModel, conv_model, metadata_model
from tests.importers.wire import Num, Table, flatbuffer, flexbuffer_map


def test_flatbuffer_fields():
    table = Table(_0=Num("b", -3), _1="naïve", _2=np.array([1, 2], np.int64), _4=Num("f", 0.5),
                  _6=[Table(_0=Num("I", 7)), Table()], _7=["a", "bc"], _8=b"raw")  # fmt: skip
    t = root(memoryview(flatbuffer(table, b"TEST")))
    assert t.number(0, "b") == -3 and t.number(4, "f") == 0.5
    assert t.number(3, "i", 42) == 42 and t.number(99, "i", 1) == 1
    assert t.text(1) == "naïve" and t.texts(7) == ["a", "bc"] and bytes(t.bytes(8)) == b"raw"
    assert t.array(2, "i8").tolist() == [1, 2] and t.array(5, "i8") is None
    assert [e.number(0, "I") for e in t.tables(6)] == [7, 0]


@pytest.mark.parametrize("cut", [0, 3, 7, 9, 20])
def test_flatbuffer_cut_off(cut):
    data = flatbuffer(Table(_1="x" * 50), b"TEST")
    with pytest.raises(ModelFormatError):
        root(memoryview(data[:cut])).text(1)


def test_flatbuffer_vector_longer_than_the_file():
    data = bytearray(flatbuffer(Table(_0=np.arange(4, dtype=np.int32)), b"TEST"))
    at = data.index(struct.pack("<5i", 4, 0, 1, 2, 3))
    struct.pack_into("<I", data, at, 0xFFFFFFFF)
    with pytest.raises(ModelFormatError, match="4294967295 elements"):
        root(memoryview(bytes(data))).array(0, "i4")


def test_flexbuffer_map():
    values = {"max_detections": 10, "y_scale": 2.5, "use_regular_nms": True, "neg": -7}
    assert read_map(flexbuffer_map(values)) == values


@pytest.mark.parametrize("data", [b"\x00\x01\x02", b"\xff" * 12, flexbuffer_map({"a": 1})[4:]])
def test_flexbuffer_damage(data):
    with pytest.raises(ModelFormatError):
        read_map(data)


def test_metadata(tflite_imported):
    graph = tflite_imported(metadata_model(b"cat\ndog\n"))
    assert graph.metadata["name"] == "tiny classifier"
    assert graph.metadata["labels"] == ["cat", "dog"]
    assert graph.metadata["preprocess"] == {
        "colour": "rgb", "layout": "nhwc", "size": [4, 6], "mean": [127.5], "std": [128.0],
    }  # fmt: skip


def test_labels_as_editors_write_them(tflite_imported):
    graph = tflite_imported(metadata_model("\ufeffcat\r\n\u2028\r\ndog\r\n".encode()))
    assert graph.metadata["labels"] == ["cat", "\u2028", "dog"]


def test_damaged_label_archive_does_not_stop_the_import(tflite_imported):
    graph = tflite_imported(metadata_model(b"cat\n" * 100, damage=True))
    assert "preprocess" in graph.metadata


@pytest.mark.parametrize("code", [3, 4], ids=["convolution", "depthwise"])
@pytest.mark.parametrize("image, weight", [((), (3, 3, 3, 2)), ((1, 5, 5, 2), ())])
def test_a_convolution_of_a_single_number(code: int, image, weight, tflite_imported):
    m = TinyModel()
    x, y = m.tensor("x", "float32", image), m.tensor("y", "float32", (1, 3, 3, 3))
    w = m.tensor("w", "float32", weight, np.ones(weight))
    m.op(code, [x, w], [y], Table(_1=Num("i", 1), _2=Num("i", 1)))
    with pytest.raises(ModelFormatError, match="y: expected an image and a weight of 4 axes"):
        tflite_imported(m.bytes([x], [y]))


def test_label_bomb(tflite_imported):
    with pytest.raises(ModelFormatError, match="too large"):
        tflite_imported(metadata_model(b"\0" * (1 << 23)))


def test_unsupported_operators_are_named_together(tflite_imported):
    m = TinyModel()
    x, y, z = (m.tensor(n, "float32", (2,)) for n in "xyz")
    m.op(30, [x], [y])
    m.op("FlexErf", [y], [z])
    with pytest.raises(UnsupportedOperatorError, match="SKIP_GRAM, FlexErf; convert without") as e:
        tflite_imported(m.bytes([x], [z]))
    assert e.value.nodes == ("SKIP_GRAM:0", "FlexErf:1")


def _lie(change) -> bytes:
    m = TinyModel()
    x = m.tensor("x", "float32", (1, 4))
    y = m.tensor("y", "float32", (1, 4))
    inputs, outputs, version = [x], [y], 3
    if change == "tensor index":
        m.op(19, [99], [y])
    elif change == "negative output":
        m.op(19, [x], [-1])
    elif change == "reads its own output":
        m.op(0, [x, y], [y])
    elif change == "made twice":
        m.op(19, [x], [y])
        m.op(19, [x], [y])
    elif change == "graph input index":
        m.op(19, [x], [y])
        inputs = [7]
    elif change == "version":
        m.op(19, [x], [y])
        version = 2
    elif change == "constant size":
        w = m.tensor("w", "float32", (1000, 1000), np.zeros(4))
        m.op(0, [x, w], [y])
    elif change == "huge shape":
        w = m.tensor("w", "int8", (0x7FFFFFFF, 0x7FFFFFFF, 0x7FFFFFFF), np.zeros(4))
        m.op(0, [x, w], [y])
    elif change == "scales":
        w = m.tensor("w", "int8", (1, 4), np.zeros((1, 4)), scale=[1, 2, 3])
        m.op(0, [x, w], [y])
    elif change == "zero point":
        w = m.tensor("w", "int8", (1, 4), np.zeros((1, 4)), scale=1, zero=1000)
        m.op(0, [x, w], [y])
    elif change == "stride":
        w = m.tensor("w", "float32", (1, 1, 1, 4), np.zeros((1, 1, 1, 4)))
        big = m.tensor("big", "float32", (1, 2, 2, 4))
        m.op(3, [big, w], [y], Table(_1=Num("i", 0), _2=Num("i", -1)))
        inputs = [big]
    elif change == "axis":
        m.op(2, [x, x], [y], Table(_0=Num("i", 50)))
    return m.bytes(inputs, outputs, version)


@pytest.mark.parametrize(
    "change",
    ["tensor index", "negative output", "reads its own output", "made twice", "graph input index",
     "version", "constant size", "huge shape", "scales", "zero point", "stride"],
)  # fmt: skip
def test_lies(tflite_imported, change):
    with pytest.raises(ModelFormatError):
        tflite_imported(_lie(change))


def test_recognised_by_its_identifier(tmp_path):
    path = tmp_path / "anything.bin"
    path.write_bytes(conv_model())
    assert format_of(path) == "tflite"


def test_input_of_texts_is_refused(tflite_imported):
    m = TinyModel()
    x = m.tensor("x", "string", (1,))
    y = m.tensor("y", "int32", (1,))
    m.op(77, [x], [y])  # SHAPE
    with pytest.raises(ModelFormatError, match="input x does not have a numeric element type"):
        tflite_imported(m.bytes([x], [y]))


@pytest.mark.parametrize("batch", [1, 3])
def test_an_open_batch_is_given(batch, tmp_path):
    """The file has a 1 for the sizes that it leaves open; LiteRT resizes its input."""
    interpreters = pytest.importorskip("ai_edge_litert.interpreter")
    path = tmp_path / "conv.tflite"
    path.write_bytes(conv_model())
    x = np.random.default_rng(1).standard_normal((batch, 5, 5, 2)).astype(np.float32)
    theirs = interpreters.Interpreter(model_path=str(path))
    theirs.resize_tensor_input(0, x.shape)
    theirs.allocate_tensors()
    theirs.set_tensor(0, x)
    theirs.invoke()
    wanted = theirs.get_tensor(theirs.get_output_details()[0]["index"])
    graph = load(path, shapes={"x": x.shape})
    np.testing.assert_allclose(Predictor(graph).run({"x": x})["y"], wanted, rtol=1e-5, atol=1e-5)
    assert load(path).inputs[0].shape == (1, 5, 5, 2)
    with pytest.raises(ShapeError, match=r"is f32\[\d×5×5×2\], got shape"):
        load(path, shapes={"x": (batch, 6, 5, 2)})
