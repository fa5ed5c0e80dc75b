"""DFT, STFT and MelWeightMatrix."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, DType, TypeInfo
from ._core import define_op
from ._helpers import known_ints, normalise_axis

dft = define_op(
    "DFT", inputs="x dft_length? axis?", attrs={"inverse": 0, "onesided": 0},
    source="ONNX DFT-20",
)  # fmt: skip


def _axis(rank: int, given: int | None) -> int:
    return normalise_axis(-2 if given is None else given, rank)


@dft.infer
def _(
    x: TypeInfo, length: TypeInfo | None, axis: TypeInfo | None, *, inverse: int, onesided: int
) -> TypeInfo:
    given, n = known_ints(axis), known_ints(length)
    last = 1 if onesided and inverse else 2
    if axis is not None and given is None:
        return x.with_shape((*[None] * (x.rank - 1), last))
    at = _axis(x.rank, given[0] if given else None)
    size: Dim = n[0] if n else None if length is not None else x.dims[at]
    if onesided and isinstance(size, int):
        size = size // 2 + 1 if not inverse else size if n else 2 * (size - 1)
    return x.with_shape((*x.dims[:at], size, *x.dims[at + 1 : -1], last))


@dft.reference
def _(
    x: np.ndarray,
    length: np.ndarray | None,
    axis: np.ndarray | None,
    *,
    inverse: int,
    onesided: int,
) -> np.ndarray:
    """Discrete Fourier transform along axis; the last axis holds real (and imaginary) parts"""
    at = _axis(x.ndim, None if axis is None else int(axis.ravel()[0]))
    if x.shape[-1] not in (1, 2):
        raise ShapeError(
            tr(
                "the last axis must have size 1 (real) or 2 (complex), found {shape}",
                shape=x.shape[-1],
            )
        )
    z = x[..., 0] + 1j * x[..., 1] if x.shape[-1] == 2 else x[..., 0].astype(complex)
    n = None if length is None else int(length.ravel()[0])
    if inverse and onesided:
        return np.fft.irfft(z, n or 2 * (z.shape[at] - 1), at)[..., None].astype(x.dtype)
    y = (np.fft.ifft if inverse else np.fft.fft)(z, n, at)
    if onesided:
        y = np.take(y, range(y.shape[at] // 2 + 1), at)
    return np.stack([y.real, y.imag], -1).astype(x.dtype)


stft = define_op(
    "STFT",
    inputs="signal frame_step window? frame_length?",
    attrs={"onesided": 1},
    source="ONNX STFT-17",
)


@stft.infer
def _(
    signal: TypeInfo,
    step: TypeInfo,
    window: TypeInfo | None,
    length: TypeInfo | None,
    *,
    onesided: int,
) -> TypeInfo:
    n, hop = known_ints(length), known_ints(step)
    frame = n[0] if n else window.dims[0] if window is not None else None
    size = signal.dims[1]
    if not (isinstance(frame, int) and hop and isinstance(size, int)):
        return signal.with_shape((signal.dims[0], None, None, 2))
    return signal.with_shape(
        (signal.dims[0], 1 + (size - frame) // hop[0], frame // 2 + 1 if onesided else frame, 2)
    )


@stft.reference
def _(
    signal: np.ndarray,
    step: np.ndarray,
    window: np.ndarray | None,
    length: np.ndarray | None,
    *,
    onesided: int,
) -> np.ndarray:
    """Fourier transforms of overlapping frames: (B,T) or (B,T,1|2) → (B,frames,bins,2)"""
    signal = signal[..., None] if signal.ndim == 2 else signal
    frame = (
        int(length.ravel()[0])
        if length is not None
        else window.shape[0]
        if window is not None
        else 0
    )
    hop = int(step.ravel()[0])
    if frame < 1 or hop < 1 or signal.shape[1] < frame:
        raise ShapeError(
            tr(
                "frame and step must be at least 1 and fit the signal of {shape} "
                "samples, found {frame} and {hop}",
                frame=frame,
                hop=hop,
                shape=signal.shape[1],
            )
        )
    z = signal[..., 0] + (1j * signal[..., 1] if signal.shape[-1] == 2 else 0)
    starts = np.arange(1 + (z.shape[1] - frame) // hop) * hop
    frames = z[:, starts[:, None] + np.arange(frame)]
    y = np.fft.fft(frames * (1 if window is None else window), axis=-1)
    y = y[..., : frame // 2 + 1] if onesided else y
    return np.stack([y.real, y.imag], -1).astype(signal.dtype)


mel_weight_matrix = define_op(
    "MelWeightMatrix",
    inputs="num_mel_bins dft_length sample_rate lower_edge_hertz upper_edge_hertz",
    attrs={"output_datatype": DType.F32},
    source="ONNX MelWeightMatrix-17",
)


@mel_weight_matrix.infer
def _(bins: TypeInfo, length: TypeInfo, *_: TypeInfo, output_datatype: DType) -> TypeInfo:
    n, m = known_ints(length), known_ints(bins)
    return TypeInfo(output_datatype, (n[0] // 2 + 1 if n else None, m[0] if m else None))


@mel_weight_matrix.reference
def _(
    bins: np.ndarray,
    length: np.ndarray,
    rate: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    *,
    output_datatype: DType,
) -> np.ndarray:
    """(spectrum bins, mel bins): triangles between points that are even on the mel scale"""
    n, size = int(bins), int(length) // 2 + 1
    edges = 2595 * np.log10(1 + np.array([float(low), float(high)]) / 700)
    mel = np.arange(n + 2) * (edges[1] - edges[0]) / (n + 2) + edges[0]
    hertz = 700 * (10 ** (mel / 2595) - 1)
    points = ((int(length) + 1) * hertz // float(rate)).astype(int)
    out = np.zeros((size, n))
    for i, (left, middle, right) in enumerate(zip(points, points[1:], points[2:])):
        if left == middle:
            out[middle, i] = 1
        else:
            rise = np.arange(left, middle + 1)
            out[rise, i] = (rise - left) / (middle - left)
        if right > middle:
            fall = np.arange(middle, right)
            out[fall, i] = (right - fall) / (right - middle)
    return out.astype(output_datatype.np)
