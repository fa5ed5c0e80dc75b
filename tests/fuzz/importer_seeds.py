"""Seeds for the importers' fuzz targets beside the models of tests/importers/fuzz.py: older forms
of a format, the fields that those models leave out, and files with one thing wrong that a mutant
rarely gets wrong alone. Paddle's are in paddle_seeds.py."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.importers import tiny_caffe
from tests.importers import tiny_tensorflow as tf
from tests.importers.tflite_lstm import both, forward
from tests.importers.tiny_tflite import TinyModel
from tests.importers.wire import Num, Table, field, leveldb_table, message

#: Writes a folder and answers what to read and which files of it to damage.
Seed = Callable[[Path], tuple[Path, list[str]]]


def _bytes(name: str, data: Callable[[], bytes]) -> Seed:
    def make(folder: Path) -> tuple[Path, list[str]]:
        (folder / name).write_bytes(data())
        return folder / name, [name]

    return make


# ---- Caffe

_POOL = (
    'layer { name: "p" type: "Pooling" bottom: "data" top: "p" pooling_param { kernel_size: 2 } }'
)
_OLD_NET = """name: "old" input: "data" input_dim: 1 input_dim: 2 input_dim: 5 input_dim: 5
layers { name: "c" type: CONVOLUTION bottom: "data" top: "c" convolution_param {
  num_output: 3 kernel_size: 3 bias_term: true } }
layers { name: "r" type: 18 bottom: "c" top: "c" }
layers { name: "f" type: INNER_PRODUCT bottom: "c" top: "f" inner_product_param < num_output: 2 > }
"""
_RULES = """name: "rules"
layer { name: "x" type: "Input" top: "data" top: "more" transform_param { scale: 0.1 mean_value: 1 }
  input_param { shape { dim: 1 dim: 2 dim: 4 dim: 4 } } }
layer { name: "t" type: "Data" top: "data" include { phase: TRAIN } }
layer { name: "s" type: "Data" top: "data" include { stage: "s" } include { min_level: 2 } }
layer { name: "e" type: "ReLU" bottom: "data" top: "e" exclude { phase: TRAIN } }
layer { name: "l" type: "LRN" bottom: "e" top: "l" lrn_param { local_size: [3] alpha: 1e-4f } }
layer { name: "n" type: "Scale" bottom: "l" top: "n" scale_param { bias_term: f axis: 0 } }
layer { name: "a" type: "Accuracy" bottom: "e" bottom: "l" }
layer { name: "g" type: "Pooling" bottom: "e" top: "g" pooling_param {
  global_pooling: t pool: AVE } };
"""
#: What a training net, a solver or a slip of the pen holds.
_NETS = {
    "rules": _RULES,
    "training": 'layer { name: "d" type: "Data" top: "data" }' + _POOL,
    "memory": 'layer { name: "d" type: 29 top: "data" transform_param < scale: 1 > }' + _POOL,
    "oldest": 'layers { layer { name: "d" type: "relu" } }',
    "no_layers": tiny_caffe.INPUT + _RULES.split("\n")[3],
    "no_input": _POOL,
    "shape": _POOL + 'input: "data" input_shape { dim: 0 }',
    "value": _POOL + "layer: 5",
    "message": tiny_caffe.INPUT + "layer { name { x: 1 } }",
    "number": tiny_caffe.INPUT + _POOL.replace("2", "two"),
    "range": tiny_caffe.INPUT + _POOL.replace("2", "1e30"),
    "flag": tiny_caffe.INPUT + _RULES.split("\n")[6].replace("f axis", "maybe axis"),
    "flag_pool": tiny_caffe.INPUT + _POOL.replace("kernel_size: 2", "global_pooling: maybe"),
    "deep": "layer " + "{ a " * 40 + "}" * 40,
}


def _caffe(text: str) -> Seed:
    def make(folder: Path) -> tuple[Path, list[str]]:
        path = tiny_caffe.save(folder)
        path.write_text(text)
        return path, ["net.prototxt"]

    return make


def _old_caffe(folder: Path) -> tuple[Path, list[str]]:
    """Layers of the first version, their weights in float64 and in the old form of a blob."""
    double = message((7, message((1, 3), (1, 2), (1, 3), (1, 3))),
                     (8, np.ones((3, 2, 3, 3)).tobytes()))  # fmt: skip
    blobs = {"c": [double, message((8, np.ones(3).tobytes()))],
             "f": [tiny_caffe.blob(np.ones((1, 1, 2, 27)), old=True),
                   tiny_caffe.blob(np.ones((1, 1, 1, 2)), old=True)],
             "gone": [tiny_caffe.blob([1.0])]}  # fmt: skip
    layers = (message((4, n), *((6, b) for b in given)) for n, given in blobs.items())
    (folder / "net.prototxt").write_text(_OLD_NET)
    (folder / "net.caffemodel").write_bytes(b"".join(field(2, layer) for layer in layers))
    return folder / "net.prototxt", ["net.prototxt", "net.caffemodel"]


def _empty_caffe(folder: Path) -> tuple[Path, list[str]]:
    tiny_caffe.save(folder)
    (folder / "net.caffemodel").write_bytes(message((1, "a net without layers")))
    return folder / "net.prototxt", ["net.caffemodel"]


# ---- TensorFlow


def _tf_function(output: str = "r") -> bytes:
    """`output` is the name in the signature, where "r" is returned."""
    body = [tf.node("n", "Relu", "a"), tf.node("m", "Identity", "n:activations:0", "^n")]
    made = tf.function("inner", ["a"], {"r": "m:output:0"}, body)
    return made.replace(message((1, "r"), (3, 1)), message((1, output), (3, 1)))


def _tf_calls(functions: list[bytes]) -> bytes:
    called = message((10, message((1, "inner"))))
    return tf.graph_def(
        [tf.placeholder("x", (1, 4)), tf.node("c", "PartitionedCall", "x", f=called)], functions
    )


def _tf_attributes() -> bytes:
    """Numbers, truths and lists as attributes; numbers of a constant in the field of its type."""
    shape, half = tf.shape_proto((2,)), 0x3C00
    single, double = np.ones(2, np.float32).tobytes(), np.ones(2).tobytes()
    typed = {"float": (1, (5, single)), "double": (2, (6, double)), "int": (3, (7, 5)),
             "long": (9, (10, 5)), "truth": (10, (11, True)), "half": (19, (13, half)),
             "bfloat": (14, (13, half)), "none": (22, None)}  # fmt: skip
    nodes = [
        tf.node(name, "Const", dtype=message((6, code)), value=message((8, message(
            (1, code), (2, shape), *([value] if value else [])))))
        for name, (code, value) in typed.items()
    ]  # fmt: skip
    nodes += [
        tf.placeholder("x", (None, 4, 4, 2)),
        *(tf.const(f"s{i}", np.ones(2, np.float32)) for i in range(4)),
        tf.node("b", "FusedBatchNormV3", "x", "s0", "s1", "s2", "s3", epsilon=1e-3,
                is_training=False, data_format="NHWC"),
        tf.node("r", "LeakyRelu", "b", "^x", alpha=0.5),
        tf.node("m", "Mean", "r", "axes", keep_dims=True), tf.const("axes", np.int32([1, 2])),
        tf.node("p", "MaxPool", "r", ksize=[1, 2, 2, 1], strides=[1, 2, 2, 1], padding="VALID"),
        tf.node("u", "Placeholder", shape=message((7, message((3, True)))), dtype=np.float32),
    ]  # fmt: skip
    return tf.graph_def(nodes)


def _tf_lists() -> bytes:
    """What lists of shapes an iterator has, and a shape of too many axes."""
    shapes = message((1, message(*((7, tf.shape_proto(s)) for s in ((1, 2), (None,))))))
    many = message((7, tf.shape_proto((1,) * 9)))
    return tf.graph_def([
        tf.node("i", "IteratorGetNext", output_shapes=shapes),
        tf.node("x", "Placeholder", shape=many, dtype=np.float32), tf.node("y", "Relu", "x"),
    ])  # fmt: skip


def _tf_odd_const(count: int, values: int) -> Callable[[], bytes]:
    def made() -> bytes:
        tensor = message((1, 1), (2, tf.shape_proto((count,))),
                         (5, np.ones(values, np.float32).tobytes()))  # fmt: skip
        const = tf.node("c", "Const", dtype=np.float32, value=message((8, tensor)))
        return tf.graph_def([const, tf.node("y", "Relu", "c")])

    return made


def _bundle(change: Callable[[dict[bytes, bytes]], None]) -> Seed:
    """A SavedModel whose index of variables has something rare in it."""

    def make(folder: Path) -> tuple[Path, list[str]]:
        tf.small_saved_model(folder)
        size, shape = tf.KERNEL.nbytes, tf.shape_proto(tf.KERNEL.shape)
        entries = {b"": message((1, 1)),
                   b"layer/bias": message((1, 1), (2, tf.shape_proto((4,))), (4, size), (5, 16)),
                   b"layer/kernel": message((1, 1), (2, shape), (5, size))}  # fmt: skip
        change(entries)
        index = folder / "variables" / "variables.index"
        index.write_bytes(leveldb_table(entries))
        return folder, ["saved_model.pb", "variables/variables.index"]

    return make


def _set(key: bytes, *fields: tuple[int, Any]) -> Seed:
    def change(entries: dict[bytes, bytes]) -> None:
        entries[key] = entries.get(key, b"") + message(*fields)

    return _bundle(change)


# ---- ONNX, TFLite


def _bare_onnx() -> bytes:
    from tests.importers.tiny_onnx import small_model  # needs the onnx package

    return small_model()


def _int4() -> bytes:
    """Two weights in a byte."""
    made = TinyModel()
    x, y = made.tensor("x", "float32", (1, 4)), made.tensor("y", "float32", (1, 3))
    w = made.tensor("w", "int8", (3, 4), [0] * 6, scale=0.1)
    made.tensors[w].slots[1] = Num("b", 17)
    made.op(9, [x, w, -1], [y], Table())
    return made.bytes([x], [y])


SEEDS: dict[str, Seed] = {
    "caffe_old": _old_caffe,
    "caffe_empty": _empty_caffe,
    **{f"caffe_{name}": _caffe(text) for name, text in _NETS.items()},
    "tf_function": _bytes("m.pb", lambda: _tf_calls([_tf_function()])),
    "tf_no_signature": _bytes("m.pb", lambda: _tf_calls([message((3, tf.node("n", "Relu", "a")))])),
    "tf_not_returned": _bytes("m.pb", lambda: _tf_calls([
        _tf_function("s")])),
    "tf_attributes": _bytes("m.pb", _tf_attributes),
    "tf_lists": _bytes("m.pb", _tf_lists),
    "tf_splat": _bytes("m.pb", _tf_odd_const(9, 2)),
    "tf_too_many": _bytes("m.pb", _tf_odd_const(2, 9)),
    "bundle_shards": _set(b"", (1, 5000)),
    "bundle_big_endian": _set(b"", (2, 1)),
    "bundle_slices": _set(b"layer/bias", (7, b"")),
    "bundle_strings": _set(b"layer/bias", (1, 7)),
    "bundle_size": _set(b"layer/bias", (5, 17)),
    "bundle_shard": _set(b"layer/bias", (3, 9)),
    "tflite_int4": _bytes("m.tflite", _int4),
    "tflite_lstm": _bytes("m.tflite", lambda: forward(projection=True, norms=True)[0]),
    "tflite_both": _bytes("m.tflite", lambda: both(merge=True)[0]),
    "onnx_bare": _bytes("model", _bare_onnx),
}  # fmt: skip
