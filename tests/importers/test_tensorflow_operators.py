"""Operators that only TensorFlow has, by their definitions: sound, and crops of images."""

from __future__ import annotations

import struct
import wave
from io import BytesIO

import numpy as np
import pytest
from lite_engine.backends.reference import run_graph
from lite_engine.errors import ModelFormatError
from lite_engine.importers._emit import Emitter
from lite_engine.importers._tf_ops import one_hot
from lite_engine.importers._tf_pieces import gather
from lite_engine.importers._tf_tables import compute
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import get_op


def wav_bytes(samples: np.ndarray, rate: int) -> np.ndarray:
    out = BytesIO()
    with wave.open(out, "wb") as file:
        file.setnchannels(samples.shape[1])
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(samples.astype("<i2").tobytes())
    return np.frombuffer(out.getvalue(), np.uint8)


def test_decode_wav():
    samples = np.array([[0, 100], [-32768, 32767], [5, 6]], np.int16)
    op = get_op("DecodeWav")._reference
    audio, rate = op(wav_bytes(samples, 8000), desired_channels=-1, desired_samples=-1)
    np.testing.assert_array_equal(audio, samples / np.float32(32768))
    assert rate == 8000
    audio, _ = op(wav_bytes(samples, 8000), desired_channels=1, desired_samples=5)
    np.testing.assert_allclose(audio[:, 0] * 32768, [0, -32768, 5, 0, 0])


@pytest.mark.parametrize(
    "data", [b"", b"RIFF", b"RIFF\0\0\0\0WAVE", b"RIFF\0\0\0\0WAVEdata\x04\0\0\0abcd"]
)
def test_decode_wav_of_something_else(data):
    with pytest.raises(ModelFormatError):
        get_op("DecodeWav")._reference(
            np.frombuffer(data, np.uint8), desired_channels=-1, desired_samples=-1
        )


def test_spectrogram_of_a_sine():
    """1 kHz at 8 kHz sampling falls into bin 64 of 512; a Hann window halves its amplitude."""
    t = np.arange(1024) / 8000
    samples = np.sin(2 * np.pi * 1000 * t)[:, None].astype(np.float32)
    op = get_op("AudioSpectrogram")._reference
    found = op(samples, window_size=512, stride=256, magnitude_squared=False)
    assert found.shape == (1, 3, 257) and (found.argmax(-1) == 64).all()
    np.testing.assert_allclose(found[0, :, 64], 512 / 4, rtol=1e-4)


def test_crop_and_resize():
    """Corners of a ramp, points outside, and the middle when one point is asked for."""
    image = np.add.outer(10.0 * np.arange(3), np.arange(4.0))[None, :, :, None].astype(np.float32)
    op = get_op("CropAndResize")._reference
    boxes = np.float32([[0, 0, 1, 1], [0.5, -0.5, 1.5, 0.5]])
    args = (image, boxes, np.int32([0, 0]))
    two = op(*args, np.int32([2, 2]), method="bilinear", extrapolation_value=-1.0)
    assert two[0, :, :, 0].tolist() == [[0, 3], [20, 23]]
    assert two[1, :, :, 0].tolist() == [[-1, 11.5], [-1, -1]]
    one = op(*args, np.int32([1, 1]), method="bilinear", extrapolation_value=0.0)
    assert one[0, 0, 0, 0] == 11.5


def test_wav_with_extra_chunks():
    data = wav_bytes(np.array([[7]], np.int16), 16000).tobytes()
    chunk = b"LIST" + struct.pack("<I", 3) + b"abc\0"
    mixed = np.frombuffer(data[:12] + chunk + data[12:], np.uint8)
    audio, _ = get_op("DecodeWav")._reference(mixed, desired_channels=1, desired_samples=1)
    assert audio[0, 0] * 32768 == 7


def computed(name: str, *inputs: np.ndarray) -> np.ndarray:
    """What an operator's nodes give; the first input is no constant."""
    graph = Graph("op")
    emit = Emitter(graph)
    graph.inputs = [Value("x", DType.of(inputs[0]), inputs[0].shape)]
    made = compute(emit, name, [graph.inputs[0], *map(emit.const, inputs[1:])])
    graph.outputs = [made]
    return run_graph(graph, [inputs[0]])[0]


@pytest.mark.parametrize("lower", [-1, 0, 2])
@pytest.mark.parametrize("upper", [-1, 0, 1])
def test_matrix_band_part(lower, upper):
    """TensorFlow's definition, element by element."""
    x = np.arange(1, 31, dtype=np.float32).reshape(1, 5, 6)
    i, j = np.indices((5, 6))
    kept = ((lower < 0) | (i - j <= lower)) & ((upper < 0) | (j - i <= upper))
    got = computed("MatrixBandPart", x, np.int64(lower), np.int64(upper))
    np.testing.assert_array_equal(got, np.where(kept, x, 0))


@pytest.mark.parametrize(
    "a, b", [([3, 1, 5], [3, 4, 1]), ([5], [2, 3, 1]), ([2, 3, 1], [5]), ([1, 0], [4, 1])]
)
def test_broadcast_args(a, b):
    got = computed("BroadcastArgs", np.array(a, np.int32), np.array(b, np.int32))
    assert tuple(got) == np.broadcast_shapes(tuple(a), tuple(b))


def test_is_finite():
    x = np.array([0, -np.inf, np.nan, 3e38], np.float32)
    np.testing.assert_array_equal(computed("IsFinite", x), np.isfinite(x))


WHOLE = np.array([-7, 7, -1, -(2**31), 2**31 - 1, 6], np.int32)
REAL = np.array([54.7, 1e10, -7.5, -7.5, -54.7, -6], np.float32)
BY_REAL = np.array([0.1, 3, np.inf, 2, 0.1, -4], np.float32)


@pytest.mark.parametrize(
    "name, inputs, wanted",
    [
        ("FloorDiv", (WHOLE, np.int32(3)), [-3, 2, -1, -715827883, 715827882, 2]),
        ("FloorDiv", (WHOLE, np.int32(-3)), [2, -3, 0, 715827882, -715827883, -2]),
        ("FloorMod", (WHOLE, np.int32(-3)), [-1, -2, -1, -2, -2, 0]),
        ("FloorDiv", (REAL, BY_REAL), [547, 3333333248, -0.0, -4, -547, 1]),
        ("FloorMod", (REAL, BY_REAL),
         [0.09999994933605194, 1, np.inf, 0.5, 5.21540641784668e-08, -2]),
        ("ZerosLike", (np.array([1, np.nan, np.inf, -2], np.float32),), [0, 0, 0, 0]),
        ("OnesLike", (np.array([1, np.nan, np.inf, -2], np.float32),), [1, 1, 1, 1]),
        ("SelectV2", (np.array([True, False]), REAL[:4].reshape(2, 2), BY_REAL[:4].reshape(2, 2)),
         [[REAL[0], BY_REAL[1]], [REAL[2], BY_REAL[3]]]),
        ("Select", (np.array([True, False]), REAL[:4].reshape(2, 2), BY_REAL[:4].reshape(2, 2)),
         [REAL[:2], BY_REAL[2:4]]),
    ],
)  # fmt: skip
def test_functions_that_onnx_has_otherwise(name, inputs, wanted):
    """The numbers of TensorFlow 2.21."""
    got = computed(name, *inputs)
    wanted = np.asarray(wanted, inputs[-1].dtype)
    np.testing.assert_array_equal(got, wanted, strict=True)


@pytest.mark.parametrize("batch_dims", [1, -1])
def test_gather_with_an_index_for_each_batch(batch_dims):
    """batch_dims may be all the axes of the indices, of which a negative one counts from the end:
    of (3, 1), −1 is 1."""
    x = np.arange(24, dtype=np.float32).reshape(3, 4, 2)
    at = np.array([1, 3, 0], np.int32).reshape((3,) if batch_dims == 1 else (3, 1))
    graph = Graph("op")
    emit = Emitter(graph)
    graph.inputs = [Value("x", DType.F32, x.shape)]
    graph.outputs = [gather(emit, graph.inputs[0], emit.const(at), 1, batch_dims)]
    (got,) = run_graph(graph, [x])
    rows = np.take_along_axis(x, at.reshape(3, 1, 1).repeat(2, 2), 1)  # (3, 1, 2)
    np.testing.assert_array_equal(got, rows[:, 0] if batch_dims == 1 else rows)


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint8, np.int8])
@pytest.mark.parametrize("depth", [3, 200])
def test_one_hot_of_indices_outside(dtype, depth):
    """All off, below 0 as well."""
    at = np.array([0, 2, 5, 250 if dtype is np.uint8 else -1], dtype)
    graph = Graph("op")
    emit = Emitter(graph)
    graph.inputs = [Value("x", DType.of(at), at.shape)]
    values = (emit.const(np.array(v)) for v in (np.int32(depth), np.float32(2), np.float32(-1)))
    graph.outputs = [one_hot(emit, graph.inputs[0], *values, axis=-1)]
    (got,) = run_graph(graph, [at])
    wanted = np.where(at[:, None] == np.arange(depth), 2, -1).astype(np.float32)
    np.testing.assert_array_equal(got, wanted, strict=True)
