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
