"""NVIDIA's matrix units through PTX: whether a convolution on them gives the right numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from .programs import built, program_text

_TILE = "#define BM 64\n#define BN 64\n#define TM 8\n#define STAGES 4\n"
_HEIGHT, _WIDTH, _CHANNELS, _OUTPUTS, _ROWS = 6, 8, 40, 40, 64
#: Error allowed by the type of the numbers.
_TOLERANCE = {np.float32: 1e-6, np.float16: 2e-3}


def source(kind: Any) -> str:
    """The program of the trial, for numbers of this NumPy type."""
    text = "#define HALF\n#define OCTS\n" if kind is np.float16 else ""
    return program_text("conv_mma", f"{text}{_TILE}#define BK {_step(kind)}")


def work(cl: Any, context: Any, queue: Any, options: tuple[str, ...]) -> bool:
    """In both precisions. `options` are those that kernels are built with."""
    if "NVIDIA" not in queue.device.platform.name:
        return False
    try:
        return all(_convolves(cl, context, queue, options, kind) for kind in _TOLERANCE)
    except cl.Error:
        return False


def _step(kind: Any) -> int:
    return 64 // np.dtype(kind).itemsize


def _convolves(cl: Any, context: Any, queue: Any, options: tuple[str, ...], kind: Any) -> bool:
    """3x3 with padding, depth beyond the last whole step."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal((_HEIGHT, _WIDTH, _CHANNELS)).astype(kind)
    w = rng.standard_normal((_OUTPUTS, 9, _CHANNELS)).astype(kind)
    y = np.zeros((_HEIGHT * _WIDTH, _OUTPUTS), kind)
    step = _step(kind)
    deep = -(-9 * _CHANNELS // step) * step
    packed = np.zeros((_ROWS, deep), kind)
    packed[:_OUTPUTS, : 9 * _CHANNELS] = w.reshape(_OUTPUTS, -1)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    arrays = (x, packed, np.zeros(_ROWS, np.float32), y)
    image, weights, bias, out = (cl.Buffer(context, flags, hostbuf=a) for a in arrays)
    sizes = [len(y), _HEIGHT, _WIDTH, _CHANNELS, _HEIGHT, _WIDTH, _OUTPUTS]
    numbers = [*sizes, 3, 3, 1, 1, 1, 1, 1, 1, deep, deep, deep, _CHANNELS, 0, _OUTPUTS, 0]
    program = built(cl, cl.Program(context, source(kind)), options)
    program.conv_mma(
        queue, (128, 1, 1), (128, 1, 1), image, weights, bias, out, out, bias,
        *(np.int32(n) for n in numbers),
    )  # fmt: skip
    cl.enqueue_copy(queue, y, out)
    around = np.pad(x.astype(np.float64), ((1, 1), (1, 1), (0, 0)))
    views = [around[i : i + _HEIGHT, j : j + _WIDTH] for i in range(3) for j in range(3)]
    exact = np.concatenate(views, -1).reshape(len(y), -1) @ w.reshape(_OUTPUTS, -1).T
    error = np.linalg.norm(y - exact) / np.linalg.norm(exact)
    return bool(error < _TOLERANCE[kind])
