"""100 MB files of every format with weights of their own: read in under 2 s, with at most 1.2 times
their size beside the mapped file."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lite_engine.importers import load
from lite_engine.model_file.naive_buffer import write_nb

from tests.importers import tiny_tensorflow as tf
from tests.importers.paddle_files import PaddleProgram
from tests.importers.tiny_tflite import TinyModel
from tests.importers.wire import Num, Table, field, message

LAYERS, SIDE = 25, 1024


def _weight(index: int) -> np.ndarray:
    return np.random.default_rng(index).random((SIDE, SIDE), np.float32)


def _paddle(folder: Path) -> Path:
    p = PaddleProgram()
    last = p.feed("x", (1, SIDE))
    for i in range(LAYERS):
        p.op("matmul_v2", {"X": last, "Y": p.weight(f"w{i}", _weight(i))}, {"Out": f"h{i}"},
             trans_x=False, trans_y=False)  # fmt: skip
        last = f"h{i}"
    p.fetch(last)
    return p.save(folder)


def _caffe(folder: Path) -> Path:
    text = f'input: "x" input_shape {{ dim: 1 dim: {SIDE} }}\n'
    binary = b""
    last = "x"
    for i in range(LAYERS):
        text += (
            f'layer {{ name: "f{i}" type: "InnerProduct" bottom: "{last}" top: "f{i}" '
            f"inner_product_param {{ num_output: {SIDE} bias_term: false }} }}\n"
        )
        dims = message((1, SIDE), (1, SIDE))
        blob = message((7, dims), (5, _weight(i).tobytes()))
        binary += field(100, message((1, f"f{i}"), (7, blob)))
        last = f"f{i}"
    (folder / "net.prototxt").write_text(text)
    (folder / "net.caffemodel").write_bytes(binary)
    return folder / "net.caffemodel"


def _tensorflow(folder: Path) -> Path:
    nodes = [tf.placeholder("x", (1, SIDE))]
    last = "x"
    for i in range(LAYERS):
        nodes += [tf.const(f"w{i}", _weight(i)), tf.node(f"h{i}", "MatMul", last, f"w{i}")]
        last = f"h{i}"
    path = folder / "frozen.pb"
    path.write_bytes(tf.graph_def(nodes))
    return path


def _tflite(folder: Path) -> Path:
    m = TinyModel()
    first = last = m.tensor("x", "float32", (1, SIDE))
    for i in range(LAYERS):
        w = m.tensor(f"w{i}", "float32", (SIDE, SIDE), _weight(i))
        y = m.tensor(f"h{i}", "float32", (1, SIDE))
        m.op(9, [last, w, -1], [y], Table(_0=Num("b", 0)))  # FULLY_CONNECTED
        last = y
    path = folder / "large.tflite"
    path.write_bytes(m.bytes([first], [last]))
    return path


def _saved_model(folder: Path) -> Path:
    names = [f"w{i}" for i in range(LAYERS)]
    nodes = [tf.placeholder("x", (1, SIDE))]
    last = "x"
    for i, name in enumerate(names):
        nodes += [
            tf.node(name, "VarHandleOp", shared_name=name),
            tf.node(f"read{i}", "ReadVariableOp", name),
            tf.node(f"h{i}", "MatMul", last, f"read{i}"),
        ]
        last = f"h{i}"
    graph = tf.graph_def([*nodes, *tf.restoring({n: n for n in names})])
    weights = {n: _weight(i) for i, n in enumerate(names)}
    tf.saved_model(folder / "m", graph, {"x": "x:0"}, {"y": f"{last}:0"}, weights)
    return folder / "m"


def _naive_buffer(folder: Path) -> Path:
    (folder / "paddle").mkdir()
    return write_nb(load(_paddle(folder / "paddle")), folder / "large.nb")


def _onnx(folder: Path) -> Path:
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    helper = onnx.helper
    weights = [onnx.numpy_helper.from_array(_weight(i), f"w{i}") for i in range(LAYERS)]
    nodes = [helper.make_node("MatMul", [f"h{i}", f"w{i}"], [f"h{i + 1}"]) for i in range(LAYERS)]
    ends = [helper.make_tensor_value_info(f"h{i}", 1, [1, SIDE]) for i in (0, LAYERS)]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], weights)
    path = folder / "large.onnx"
    path.write_bytes(helper.make_model(graph).SerializeToString())
    return path


FORMATS = (_paddle, _caffe, _tensorflow, _saved_model, _tflite, _naive_buffer, _onnx)


@pytest.mark.slow
@pytest.mark.parametrize("make", FORMATS, ids=lambda f: f.__name__[1:])
def test_fast_and_lean(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    path = make(tmp_path)
    size = LAYERS * SIDE * SIDE * 4
    load(path)  # loads the importer itself
    start = time.process_time()  # this process's own time: neighbours do not count
    graph = load(path)
    seconds = time.process_time() - start
    assert sum(v.const.nbytes for v in graph.constants()) >= size
    del graph
    tracemalloc.start()
    load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    print(f"{make.__name__}: {seconds:.2f} s, {peak / size:.2f} of the file's size")
    assert seconds < 2
    assert peak <= 1.2 * size
