"""Quantized networks through TensorFlow's converter, for `python -m lite_engine.testing.tflite`.

    python -m tests.importers.make_tflite_zoo FOLDER [NAME …]

needs `pip install tensorflow`. Weights and calibration data are random and seeded. The converter
of TensorFlow 2.21 ends the process at int8 LSTMs; that of 2.15 makes them, and the LSTM operator.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf  # type: ignore[import-not-found,unused-ignore]

K = tf.keras
L, ops = K.layers, getattr(K, "ops", None)  # Keras 2 has no ops; LSTMs do without
IMAGE = (32, 32, 3)
SERIES = (12, 16)
#: name → (network, how it is quantized)
ZOO: dict[str, tuple[Callable[[], Any], str]] = {}


def zoo(**variants: str) -> Callable[[Callable[[], Any]], Callable[[], Any]]:
    """Registers a network under each name with the way in which that one is quantized."""

    def register(build: Callable[[], Any]) -> Callable[[], Any]:
        ZOO.update({name: (build, how) for name, how in variants.items()})
        return build

    return register


def _model(shape: tuple[int, ...], body: Callable[[Any], Any]) -> Any:
    x = K.Input(shape, batch_size=1)
    return K.Model(x, body(x))


@zoo(
    residual_int8="int8", residual_float_io="float io", residual_uint8_io="uint8 io",
    residual_per_tensor="per tensor", residual_int16="int16", residual_dynamic="dynamic",
)  # fmt: skip
def residual() -> Any:
    """Convolutions, depthwise ones, residual ADDs, MEAN, FULLY_CONNECTED, SOFTMAX."""

    def body(x: Any) -> Any:
        x = L.Conv2D(16, 3, 2, "same", activation="relu")(x)
        for _ in range(3):
            y = L.Conv2D(32, 1, activation="relu6")(x)
            y = L.DepthwiseConv2D(3, 1, "same", activation="relu6")(y)
            x = L.Add()([x, L.Conv2D(16, 1)(y)])
        x = L.ReLU()(L.Add()([x, L.Conv2D(16, 3, 1, "same")(x)]))
        return L.Dense(10, "softmax")(L.GlobalAveragePooling2D()(x))

    return _model(IMAGE, body)


@zoo(arithmetic_int8="int8", arithmetic_int16="int16")
def arithmetic() -> Any:
    """ADD, SUB, MUL, MAXIMUM, MINIMUM and CONCATENATION of two branches, and of constants."""

    def body(x: Any) -> Any:
        a, b = L.Conv2D(8, 3, padding="same")(x), L.Conv2D(8, 5, padding="same")(x)
        row = np.linspace(-1, 2, 8).astype(np.float32)
        parts = [
            *(a + b, a - b, a * b, ops.maximum(a, b), ops.minimum(a, b)),
            *(a + row, ops.subtract(row, b), a * row, a + 0.3, 0.7 - b),
            *(ops.relu(a - b), ops.relu6(3 * a + b)),
        ]
        return L.Conv2D(4, 1)(L.Concatenate()(parts))

    return _model(IMAGE, body)


@zoo(shapes_int8="int8", shapes_int16="int16")
def shapes() -> Any:
    """RESIZE, PAD, MIRROR_PAD, pooling, TRANSPOSE_CONV, SPLIT, slices."""

    def body(x: Any) -> Any:
        x = L.Conv2D(8, 3, padding="same")(x)
        x = ops.pad(x, [[0, 0], [1, 1], [2, 2], [0, 0]])
        x = ops.pad(x, [[0, 0], [1, 1], [1, 1], [0, 0]], "reflect")
        small = L.AveragePooling2D(3, 2, "same")(x)
        small = L.Concatenate()([small, L.MaxPooling2D(2, 2)(x)[:, : small.shape[1]]])
        up = ops.image.resize(small, (35, 39))
        near = ops.image.resize(small, (35, 39), "nearest")
        grown = L.Conv2DTranspose(8, 3, 2, "same")(small)
        left, right = ops.split(up - near, 2, -1)
        y = L.Concatenate()([left[:, :30, :30], right[:, 5:, 9:][:, :30, :30]])
        return ops.mean(y, [1, 2]), ops.mean(grown, 3), ops.sum(near, 1)

    return _model(IMAGE, body)


@zoo(decoder_dynamic="dynamic")
def decoder() -> Any:
    """Grouped convolutions, TRANSPOSE_CONV of two sizes."""

    def body(x: Any) -> Any:
        x = L.Conv2D(32, 3, 2, "same", activation="relu")(x)
        x = x + L.Conv2D(32, 3, padding="same", groups=4, activation="relu6")(x)
        x = L.Conv2D(32, 1, groups=2)(x)
        x = L.Conv2DTranspose(24, 3, 2, "same", activation="relu")(x)
        return L.Conv2DTranspose(12, 4, 2, "same")(x)

    return _model(IMAGE, body)


@zoo(functions_int8="int8")
def functions() -> Any:
    """Functions of one number: most are tables in any engine."""

    def body(x: Any) -> Any:
        prelu = L.PReLU(shared_axes=[1, 2], alpha_initializer="random_normal")
        fns = [
            *(ops.leaky_relu, ops.tanh, ops.sigmoid, ops.elu, ops.relu6, ops.gelu, ops.abs),
            *(ops.exp, ops.softmax, ops.square, ops.log_softmax, prelu),
            *(lambda v: ops.rsqrt(ops.abs(v) + 0.1), lambda v: v * ops.relu6(v + 3) / 6),
        ]
        return L.Concatenate()([fn(L.Conv2D(4, 3)(x)) for fn in fns])

    return _model((16, 16, 3), body)


@zoo(squeeze_excite_int8="int8")
def squeeze_excite() -> Any:
    """HARD_SWISH, MEAN with kept axes, MUL that broadcasts."""

    def body(x: Any) -> Any:
        x = L.Conv2D(24, 3, 2, "same", activation="hard_silu")(x)
        for _ in range(2):
            s = ops.mean(x, [1, 2], keepdims=True)
            s = L.Conv2D(24, 1, activation="hard_sigmoid")(L.Conv2D(8, 1, activation="relu")(s))
            x = L.DepthwiseConv2D(5, 1, "same")(x) * s
            x = L.Activation("hard_silu")(x)
        return L.Dense(12)(L.Flatten()(L.AveragePooling2D(4)(x)))

    return _model(IMAGE, body)


@zoo(gates_int8="int8", gates_int16="int16")
def gates() -> Any:
    """LOGISTIC, TANH, LEAKY_RELU, BATCH_MATMUL, SOFTMAX, MUL that broadcasts."""

    def body(x: Any) -> Any:
        x = L.Dense(24)(x)
        for _ in range(2):
            gate = ops.sigmoid(L.Dense(24)(x)) * ops.tanh(L.Dense(24)(x))
            w = ops.softmax(ops.matmul(gate, ops.transpose(x, (0, 2, 1))))
            x = x + ops.leaky_relu(ops.matmul(w, gate))
            x = x * ops.mean(gate, 1, keepdims=True)
        return L.Dense(5)(ops.mean(x, 1))

    return _model(SERIES, body)


@zoo(lstm_int8="int8", lstm_int16="int16", lstm_dynamic="dynamic")
def lstm() -> Any:
    return _model(SERIES, lambda x: L.Dense(6)(L.LSTM(20)(L.LSTM(24, return_sequences=True)(x))))


@zoo(lstm_both_int8="int8")
def lstm_both() -> Any:
    """A series read in both directions."""
    return _model(SERIES, lambda x: L.Dense(6)(L.Bidirectional(L.LSTM(20))(x)))


@zoo(lstm_wide_dynamic="dynamic")
def lstm_wide() -> Any:
    """Weights of more than 1024 numbers, which the converter stores as bytes."""

    def body(x: Any) -> Any:
        return L.Dense(6)(L.LSTM(48)(L.LSTM(40, return_sequences=True)(L.Dense(32)(x))))

    return _model(SERIES, body)


@zoo(gru_int8="int8", gru_dynamic="dynamic")
def gru() -> Any:
    return _model(SERIES, lambda x: L.Dense(6)(L.GRU(20, unroll=True)(x)))


@zoo(attention_int8="int8", attention_dynamic="dynamic")
def attention() -> Any:
    """BATCH_MATMUL, SOFTMAX, layer norms."""

    def body(x: Any) -> Any:
        for _ in range(2):
            n = L.LayerNormalization()(x)
            q, k, v = (L.Dense(16)(n) for _ in range(3))
            w = ops.softmax(ops.matmul(q, ops.transpose(k, (0, 2, 1))) / 4.0)
            x = x + L.Dense(16)(ops.matmul(w, v))
            x = x + L.Dense(16)(L.Dense(32, "gelu")(L.LayerNormalization()(x)))
        return L.Dense(5)(ops.mean(x, 1))

    return _model(SERIES, body)


@zoo(dense_int8="int8", dense_int16="int16", dense_dynamic="dynamic")
def dense() -> Any:
    return _model(
        (40,), lambda x: L.Dense(7, "softmax")(L.Dense(64, "tanh")(L.Dense(64, "relu")(x)))
    )


def _vary(model: Any) -> None:
    """Biases, scales and shifts that are not zero or one."""
    rng = np.random.default_rng(1)
    for w in model.weights:
        if w.shape.rank == 1 if hasattr(w.shape, "rank") else len(w.shape) == 1:
            w.assign(w.numpy() + rng.normal(0, 0.2, w.shape))


def convert(name: str) -> bytes:
    build, how = ZOO[name]
    K.utils.set_random_seed(0)
    model = build()
    _vary(model)
    made = tf.lite.TFLiteConverter.from_keras_model(model)
    made.optimizations = [tf.lite.Optimize.DEFAULT]
    if how == "dynamic":
        return bytes(made.convert())
    rng, shape = np.random.default_rng(0), (1, *model.input_shape[1:])

    def samples() -> Iterator[list[np.ndarray]]:
        for _ in range(30):
            yield [rng.uniform(-1, 1, shape).astype(np.float32)]

    made.representative_dataset = samples
    ops = tf.lite.OpsSet.TFLITE_BUILTINS_INT8
    if how == "int16":
        sixteen = tf.lite.OpsSet
        ops = sixteen.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
    made.target_spec.supported_ops = [ops]
    types = {"int8": tf.int8, "per tensor": tf.int8, "uint8 io": tf.uint8, "int16": tf.int16}
    if how in types:
        made.inference_input_type = made.inference_output_type = types[how]
    made._experimental_disable_per_channel = how == "per tensor"
    return bytes(made.convert())


def main() -> None:
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or ZOO:
        with contextlib.redirect_stdout(io.StringIO()):  # Keras tells what it saves
            content = convert(name)
        (folder / f"{name}.tflite").write_bytes(content)
        print(name, flush=True)


if __name__ == "__main__":
    main()
