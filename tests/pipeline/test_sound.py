"""Sound files and their features: against the wave module and the NumPy operators."""

from __future__ import annotations

import io
import json
import struct
import wave

import numpy as np
import pytest
from lite_engine.errors import UsageError
from lite_engine.ops import find_op
from lite_engine.pipeline.native import NativePipeline

from .pipes import document

pytestmark = pytest.mark.cpu
rng = np.random.default_rng(11)


def wav(samples: np.ndarray, rate: int = 16000) -> bytes:
    """(S,) or (S,C) i16."""
    file = io.BytesIO()
    with wave.open(file, "wb") as out:
        out.setnchannels(1 if samples.ndim == 1 else samples.shape[1])
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(samples.astype("<i2").tobytes())
    return file.getvalue()


def hearing(**features) -> bytes:
    how = {"name": "m", "section": "MODEL.0", "input": {"dtype": "f32"}, "outputs": [{}],
           "features": features, "labels": [], "read": {}}  # fmt: skip
    return document([how]).replace(b'"image"', b'"sound"')


def heard(data: bytes, **features) -> np.ndarray:
    seen = []
    native = NativePipeline(
        hearing(**features), lambda _, x: seen.append(x) or [np.zeros(2, np.float32)]
    )
    native.run(data)
    assert "sound" in json.loads(native.answer(times=False))
    return seen[0]


def by_operators(samples: np.ndarray, rate: int, how: dict) -> np.ndarray:
    """The front end of TensorFlow, by the operators' NumPy references."""
    wanted = how["samples"]
    x = np.pad(samples, (0, max(0, wanted - len(samples))))[:wanted].astype(np.float32) / 32768
    spectrum = find_op("AudioSpectrogram")._reference(
        x[:, None], window_size=how["window"], stride=how["stride"], magnitude_squared=True
    )
    return find_op("Mfcc")._reference(
        spectrum, np.array(rate, np.int32), upper_frequency_limit=how["high"],
        lower_frequency_limit=how["low"], filterbank_channel_count=how["filters"],
        dct_coefficient_count=how["coefficients"],
    )  # fmt: skip


@pytest.mark.parametrize(
    "how",
    [
        {"rate": 16000, "samples": 16000, "window": 640, "stride": 320, "filters": 40, "low": 20.0,
         "high": 4000.0, "coefficients": 10},
        {"rate": 8000, "samples": 5000, "window": 200, "stride": 80, "filters": 26, "low": 0.0,
         "high": 4000.0, "coefficients": 13},
        {"rate": 16000, "samples": 1024, "window": 512, "stride": 512, "filters": 40, "low": 100.0,
         "high": 7600.0, "coefficients": 40},
    ],
    ids=["keyword spotting", "telephone", "few bins in a filter"],
)  # fmt: skip
@pytest.mark.parametrize("length", [1000, 20000])
def test_features_are_those_of_the_operators(how: dict, length: int) -> None:
    samples = (rng.standard_normal(length) * 6000).clip(-32768, 32767).astype(np.int16)
    got = heard(wav(samples, how["rate"]), **how)
    want = by_operators(samples, how["rate"], how)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-3)  # of ln: power lies in float32 in both


def test_other_kinds_of_samples_mean_the_same() -> None:
    """8, 24 and 32 bits, floats and a second channel: the same sound within their rounding."""
    samples = (rng.standard_normal(4000) * 5000).clip(-32768, 32767).astype(np.int16)
    how = {"rate": 16000, "samples": 4000, "window": 400, "stride": 200, "high": 4000.0}
    want = heard(wav(samples), **how)
    x = samples / 32768
    kinds = {
        (1, 24): np.stack([samples * 0, samples & 255, samples >> 8], axis=1).astype(np.uint8),
        (1, 32): (x * 2**31).astype("<i4"),
        (3, 32): x.astype("<f4"),
    }
    for (form, bits), raw in kinds.items():
        body = struct.pack("<HHIIHH", form, 1, 16000, 16000 * bits // 8, bits // 8, bits)
        data = raw.tobytes()
        chunks = b"fmt " + struct.pack("<I", 16) + body + b"data" + struct.pack("<I", len(data))
        whole = b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVE" + chunks + data
        np.testing.assert_allclose(heard(whole, **how), want, atol=1e-3)
    stereo = np.stack([samples, -samples[::-1]], axis=1)
    np.testing.assert_array_equal(heard(wav(stereo), **how), want)


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"", "empty or cannot be read"),
        (b"RIFF", "not a WAV file"),
        (b"RIFF" + bytes(4) + b"WAVE", "no samples"),
        (wav(np.zeros(0, np.int16)), "no samples"),
        (wav(np.zeros(9, np.int16), 44100), "another sample rate"),
        (wav(np.zeros(9, np.int16)).replace(b"\x10\x00data", b"\x11\x00data"), "kind that is not"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_sounds_are_one_line(data: bytes, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        heard(data)


def test_damaged_sounds_never_end_the_process() -> None:
    whole = wav((rng.standard_normal(200) * 5000).astype(np.int16))
    refused = 0
    for n in range(60):
        spoilt = bytearray(whole if n % 2 else whole[: 4 * n])
        for at in rng.integers(0, 44, 2) if n % 2 else ():
            spoilt[at] = rng.integers(0, 256)
        try:
            heard(bytes(spoilt), samples=800)
        except UsageError as error:
            assert "\n" not in str(error)
            refused += 1
    assert 10 < refused < 60


@pytest.mark.parametrize(
    "features",
    [{"window": 1}, {"stride": 0}, {"samples": 10}, {"low": 5000.0}, {"coefficients": 41},
     {"rate": 0}, {"high": 1e9}],
    ids=str,
)  # fmt: skip
def test_wrong_features_are_refused(features: dict) -> None:
    with pytest.raises(UsageError, match="features: a number is out of reach"):
        NativePipeline(hearing(**features), lambda *_: ())
