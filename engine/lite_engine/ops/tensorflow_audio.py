"""TensorFlow's audio front end: DecodeWav, AudioSpectrogram, Mfcc."""

from __future__ import annotations

import struct

import numpy as np
from lite_messages import tr

from ..errors import ModelFormatError, ShapeError
from ..ir import Dim, DType, TypeInfo
from ._core import REQUIRED, define_op
from ._records import Cost

decode_wav = define_op(
    "DecodeWav",
    inputs="bytes",
    outputs="audio sample_rate",
    attrs={"desired_channels": -1, "desired_samples": -1},
    source="TensorFlow DecodeWav; the bytes of the file are the input",
)


@decode_wav.infer
def _(data: TypeInfo, *, desired_channels: int, desired_samples: int) -> list[TypeInfo]:
    def known(n: int) -> Dim:
        return n if n >= 0 else None

    audio = TypeInfo(DType.F32, (known(desired_samples), known(desired_channels)))
    return [audio, TypeInfo(DType.I32, ())]


@decode_wav.reference
def _(
    data: np.ndarray, *, desired_channels: int, desired_samples: int
) -> tuple[np.ndarray, np.ndarray]:
    """Bytes (B,) u8 of a 16-bit PCM file → samples (S,C) f32 in [−1, 1) and the rate, i32; cut or
    filled with zeros to the desired samples, with the last channel to the desired channels."""
    samples, rate = read_wav(data.tobytes())
    if desired_samples >= 0:
        missing = max(0, desired_samples - len(samples))
        samples = np.pad(samples[:desired_samples], [(0, missing), (0, 0)])
    if desired_channels >= 0:
        missing = max(0, desired_channels - samples.shape[1])
        samples = np.pad(samples[:, :desired_channels], [(0, 0), (0, missing)], mode="edge")
    return samples.astype(np.float32) / np.float32(32768), np.array(rate, np.int32)


def read_wav(data: bytes) -> tuple[np.ndarray, int]:
    """(S,C) i16 and the sample rate. Raises ModelFormatError for what is not 16-bit PCM."""
    if len(data) < 12 or data[:4] != b"RIFF" or data[8:12] != b"WAVE":
        raise ModelFormatError(
            tr("not a WAV file"), fix=tr("feed the bytes of a 16-bit PCM WAV file")
        )
    at, channels, rate = 12, 0, 0
    while at + 8 <= len(data):
        kind, size = data[at : at + 4], struct.unpack_from("<I", data, at + 4)[0]
        body = data[at + 8 : at + 8 + size]
        if kind == b"fmt " and len(body) >= 16:
            form, channels, rate, _, _, bits = struct.unpack_from("<HHIIHH", body)
            if form not in (1, 0xFFFE) or bits != 16 or not channels:
                raise ModelFormatError(
                    tr("WAV format {form} with {bits} bits is not supported", form=form, bits=bits),
                    fix=tr("use 16-bit PCM"),
                )
        elif kind == b"data" and channels:
            count = len(body) // (2 * channels)
            return np.frombuffer(body, "<i2", count * channels).reshape(count, channels), rate
        at += 8 + size + size % 2
    raise ModelFormatError(tr("the WAV file holds no samples"))


spectrogram = define_op(
    "AudioSpectrogram",
    inputs="samples",
    attrs={"window_size": REQUIRED, "stride": REQUIRED, "magnitude_squared": False},
    source="TensorFlow AudioSpectrogram",
)


def _fft_length(window: int) -> int:
    """The next power of two."""
    return 1 << max(0, window - 1).bit_length()


@spectrogram.infer
def _(samples: TypeInfo, *, window_size: int, stride: int, magnitude_squared: bool) -> TypeInfo:
    if window_size < 2 or stride < 1 or samples.rank != 2:
        raise ShapeError(
            tr(
                "expected samples of rank 2, a window of at least 2 and a stride of at "
                "least 1, found {samples}, {window_size} and {stride}",
                samples=samples,
                window_size=window_size,
                stride=stride,
            )
        )
    length, channels = samples.dims
    frames: Dim = None
    if isinstance(length, int):
        frames = 1 + (length - window_size) // stride if length >= window_size else 0
    return samples.with_shape((channels, frames, _fft_length(window_size) // 2 + 1))


@spectrogram.cost
def _(samples: TypeInfo, *, window_size: int, stride: int, magnitude_squared: bool) -> Cost:
    n = _fft_length(window_size)
    return Cost(flops=5 * n * n.bit_length() * (samples.size // stride))


@spectrogram.reference
def _(samples: np.ndarray, *, window_size: int, stride: int, magnitude_squared: bool) -> np.ndarray:
    """Samples (S,C) → |FFT|, or its square, of Hann windows: (C, frames, bins)."""
    frames = max(0, 1 + (len(samples) - window_size) // stride)
    hann = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(window_size) / window_size)
    at = np.arange(frames)[:, None] * stride + np.arange(window_size)
    windows = samples.T.astype(np.float64)[:, at] * hann
    power = np.abs(np.fft.rfft(windows, _fft_length(window_size))) ** 2
    return (power if magnitude_squared else np.sqrt(power)).astype(np.float32)


mfcc = define_op(
    "Mfcc",
    inputs="spectrogram sample_rate",
    attrs={
        "upper_frequency_limit": 4000.0,
        "lower_frequency_limit": 20.0,
        "filterbank_channel_count": 40,
        "dct_coefficient_count": 13,
    },
    source="TensorFlow Mfcc",
)


@mfcc.infer
def _(spectrum: TypeInfo, rate: TypeInfo, *, dct_coefficient_count: int, **_: float) -> TypeInfo:
    return spectrum.with_shape((*spectrum.dims[:2], dct_coefficient_count))


@mfcc.reference
def _(
    spectrum: np.ndarray,
    rate: np.ndarray,
    *,
    upper_frequency_limit: float,
    lower_frequency_limit: float,
    filterbank_channel_count: int,
    dct_coefficient_count: int,
) -> np.ndarray:
    """Squared magnitudes (C, frames, bins) → mel-frequency cepstral coefficients (C, frames, D):
    DCT-II of ln max(mel energies, 1e-12)."""
    bank = mel_filters(
        spectrum.shape[2],
        float(rate),
        lower_frequency_limit,
        upper_frequency_limit,
        filterbank_channel_count,
    )
    energies = np.log(np.maximum(np.sqrt(spectrum.astype(np.float64)) @ bank, 1e-12))
    n = filterbank_channel_count
    i, j = np.arange(dct_coefficient_count)[:, None], np.arange(n)
    dct = np.sqrt(2 / n) * np.cos(np.pi / n * i * (j + 0.5))
    return (energies @ dct.T).astype(np.float32)


def mel_filters(bins: int, rate: float, low: float, high: float, count: int) -> np.ndarray:
    """Triangular filters on the mel scale, (bins, count); bins outside [low, high] hold zeros."""

    def mel(hertz: np.ndarray | float) -> np.ndarray:
        return 1127.0 * np.log1p(np.asarray(hertz) / 700.0)

    bottom, top = float(mel(low)), float(mel(high))
    centres = bottom + (top - bottom) / (count + 1) * np.arange(1, count + 2)
    width = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + low / width), int(high / width)
    out = np.zeros((bins, count))
    for i in range(max(first, 0), min(last + 1, bins)):
        at = float(mel(i * width))
        band = int(np.searchsorted(centres[:count], at)) - 1
        left = centres[band] if band >= 0 else bottom
        share = (centres[band + 1] - at) / (centres[band + 1] - left)
        if band >= 0:
            out[i, band] += share
        if band + 1 < count:
            out[i, band + 1] += 1 - share
    return out
