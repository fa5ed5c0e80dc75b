"""Transforms without kernels of their own, written out as products and convolutions with constants.

DFT          a product with the matrix of cosines and sines
STFT         a convolution of the signal with the rows of that matrix, times the window
Col2Im       a transposed convolution that puts each column's number back at its tap
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..ir import DType, Graph, Node, Value
from ._expand_views import is_fixed, sizes_of
from ._helpers import known_ints, normalise_axis
from ._writer import Condition, Rewrite, Types, Writer

#: Longest transform: its matrix grows with the square of the length. Longer ones stay with NumPy.
_LONGEST = 2048
#: Rank and last size of a signal: real, real, complex. ONNX Runtime takes the first one, too.
_SIGNALS = ((2,), (3, 1), (3, 2))


def _is_float(types: Types) -> bool:
    return types[0] is not None and types[0].dtype is DType.F32


def _given(types: Types, index: int) -> int | None:
    """A constant number; None where the input is not there."""
    numbers = known_ints(types[index] if index < len(types) else None)
    return numbers[0] if numbers else None


def _known(types: Types, *ports: int) -> bool:
    """Whether these inputs are constants, or not there."""
    return all(i >= len(types) or types[i] is None or _given(types, i) is not None for i in ports)


# ---- Fourier transforms


def _length(node: Node, types: Types) -> tuple[int, int]:
    """Axis and length of a DFT."""
    x, axis = types[0], _given(types, 2)
    assert x is not None
    at = normalise_axis(-2 if axis is None else axis, x.rank)
    inverse_half = node.attrs.get("onesided") and node.attrs.get("inverse")
    here, given = int(x.dims[at]), _given(types, 1)  # type: ignore[arg-type]
    return at, given if given is not None else 2 * (here - 1) if inverse_half else here


def _transforms(node: Node, types: Types) -> bool:
    x = types[0]
    if x is None or not (is_fixed(node, types) and _is_float(types) and _known(types, 1, 2)):
        return False
    at, n = _length(node, types)
    return x.dims[-1] in (1, 2) and at < x.rank - 1 and 0 < n <= _LONGEST and 0 not in x.dims


def _dft(graph: Graph, node: Node, types: Types) -> None:
    write, x = Writer(graph, node), node.inputs[0]
    assert x is not None
    at, n = _length(node, types)
    if (real := _real(x)) is not None:
        x = real
    half, inverse = bool(node.attrs.get("onesided")), bool(node.attrs.get("inverse"))
    sizes, parts = sizes_of(x), sizes_of(x)[-1]
    taken = min(sizes[at], n // 2 + 1 if half and inverse else n)
    if taken < sizes[at]:
        ends = [np.array([v], np.int64) for v in (0, taken, at)]
        x = write("Slice", x, *ends)
        sizes[at] = taken
    matrix = (
        _half_inverse(n, taken, parts) if half and inverse else _matrix(n, taken, parts, inverse)
    )
    if half and not inverse:
        matrix = matrix[:, :, : n // 2 + 1]
    last = len(sizes) - 2
    turn = [i for i in range(len(sizes)) if i != at]
    turn.insert(last, at)
    if at != last:
        x = write("Transpose", x, perm=turn)
    rest = [sizes[i] for i in turn[:last]]
    y = write.shaped(x, math.prod(rest), taken * parts)
    bins, out = matrix.shape[2:]
    y = write("Gemm", y, matrix.reshape(taken * parts, bins * out))
    y = write.shaped(y, *rest, bins, out)
    back = [turn.index(i) for i in range(len(sizes))]
    graph.replace([node], "Transpose", [y], {"perm": back})
    graph.remove_unread()


def _real(x: Value) -> Value | None:
    """r of Concat(r, 0): what exporters make of a real tensor whose complex transform is asked
    for."""
    node = x.producer
    if node is None or node.op != "Concat" or len(node.inputs) != 2 or node.output.shape is None:
        return None
    real, zero = node.inputs
    along = node.attrs["axis"] in (-1, len(node.output.shape) - 1)
    if real is None or zero is None or zero.const is None or zero.const.any() or not along:
        return None
    return real if real.shape is not None and real.shape[-1] == 1 else None


def _angles(n: int, rows: int, columns: int) -> np.ndarray:
    """2π t k / n, of whole turns less."""
    return 2 * np.pi / n * (np.outer(np.arange(rows), np.arange(columns)) % n)


def _matrix(n: int, taken: int, parts: int, inverse: bool) -> np.ndarray:
    """(t, part of x, k, part of y): y[k] = Σ x[t] e^(∓2πi t k / n)"""
    turn = _angles(n, taken, n) * (1 if inverse else -1)
    real, imaginary = np.cos(turn), np.sin(turn)
    of_real = np.stack([real, imaginary], -1)
    of_imaginary = np.stack([-imaginary, real], -1)
    matrix = np.stack([of_real, of_imaginary][:parts], 1)
    return (matrix / (n if inverse else 1)).astype(np.float32)


def _half_inverse(n: int, taken: int, parts: int) -> np.ndarray:
    """(k, part of x, t, 1): real numbers from the first half of their spectrum; the other half is
    its conjugate."""
    turn = _angles(n, taken, n)
    twice = np.where((np.arange(taken) == 0) | (2 * np.arange(taken) == n), 1, 2)[:, None]
    matrix = np.stack([twice * np.cos(turn), -twice * np.sin(turn)][:parts], 1)
    return (matrix[..., None] / n).astype(np.float32)


def _frames(node: Node, types: Types) -> bool:
    if not (is_fixed(node, types) and _is_float(types) and _known(types, 1, 3)):
        return False
    x, window = types[0], types[2] if len(types) > 2 else None
    constant = window is None or (window.const is not None and window.dims == (_frame(types),))
    if x is None or not constant or (x.rank, *x.dims[2:]) not in _SIGNALS:
        return False
    samples, hop = x.dims[1], _given(types, 1)
    return 0 < _frame(types) <= min(samples, _LONGEST) and hop is not None and hop > 0  # type: ignore[type-var, operator]


def _frame(types: Types) -> int:
    length, window = _given(types, 3), types[2] if len(types) > 2 else None
    return length if length is not None else int(window.dims[0]) if window is not None else 0  # type: ignore[arg-type]


def _stft(graph: Graph, node: Node, types: Types) -> None:
    write, x = Writer(graph, node), node.inputs[0]
    assert x is not None
    window, n = types[2] if len(types) > 2 else None, _frame(types)
    batch, samples, *rest = sizes_of(x)
    parts = rest[0] if rest else 1
    matrix = _matrix(n, n, parts, False)
    if node.attrs.get("onesided", 1):
        matrix = matrix[:, :, : n // 2 + 1]
    if window is not None and window.const is not None:
        matrix = matrix * window.const.astype(np.float32)[:, None, None, None]
    bins = matrix.shape[2]
    filters = np.ascontiguousarray(matrix.reshape(n, parts, bins * 2).transpose(2, 1, 0))
    if rest:
        x = write("Transpose", x, perm=[0, 2, 1])
    else:
        x = write("Reshape", x, np.array([batch, 1, samples], np.int64))
    y = write("Conv", x, filters, kernel_shape=[n], strides=[_given(types, 1)])
    y = write("Transpose", y, perm=[0, 2, 1])
    shape = graph.constant(np.array([batch, -1, bins, 2], np.int64))
    graph.replace([node], "Reshape", [y, shape])


# ---- columns


@dataclass(frozen=True)
class _Columns:
    """Where columns go, along each axis of the image: `steps` of them, whose windows leave the last
    `left` pixels alone."""

    image: list[int]
    block: list[int]
    strides: list[int]
    dilations: list[int]
    pads: list[int]
    steps: list[int]
    left: list[int]

    @property
    def apart(self) -> bool:
        """Whether each pixel is of one column."""
        plain = self.strides == self.block and set(self.dilations) == {1}
        return plain and not any(self.pads) and not any(self.left)


def _columns(node: Node, types: Types) -> _Columns:
    image, block = known_ints(types[1]) or [], known_ints(types[2]) or []
    axes = len(image)
    strides, dilations = (list(node.attrs.get(k) or [1] * axes) for k in ("strides", "dilations"))
    pads = list(node.attrs.get("pads") or [0] * (2 * axes))
    room = [
        size + pads[i] + pads[axes + i] - dilations[i] * (block[i] - 1) - 1
        for i, size in enumerate(image)
    ]
    steps = [r // s + 1 for r, s in zip(room, strides, strict=True)]
    left = [r % s for r, s in zip(room, strides, strict=True)]
    return _Columns(image, block, strides, dilations, pads, steps, left)


def _has_columns(node: Node, types: Types) -> bool:
    x, image, block = types[0], known_ints(types[1]) or [], known_ints(types[2]) or []
    axes, given = len(image), [list(node.attrs.get(k) or ()) for k in ("strides", "dilations")]
    pads = list(node.attrs.get("pads") or ())
    if x is None or not (is_fixed(node, types) and _is_float(types) and x.rank == 3):
        return False
    if not all(isinstance(n, int) for n in (*given[0], *given[1], *pads)):
        return False
    fits = 0 < axes == len(block) < 3 and len(pads) in (0, 2 * axes) and min(pads, default=0) >= 0
    if not fits or any(len(g) not in (0, axes) or min(g, default=1) < 1 for g in given):
        return False
    found, (_, width, length) = _columns(node, types), x.dims
    sizes = min(*image, *block, *found.steps) > 0 and 0 not in x.dims
    return sizes and width % math.prod(block) == 0 and length == math.prod(found.steps)  # type: ignore[operator]


def _col2im(graph: Graph, node: Node, types: Types) -> None:
    write, x = Writer(graph, node), node.inputs[0]
    assert x is not None
    found = _columns(node, types)
    image, block, steps, axes = found.image, found.block, found.steps, len(found.image)
    batch, width, _ = sizes_of(x)
    taps = math.prod(block)
    channels = width // taps
    if found.apart:
        moved = write.shaped(x, batch, channels, *block, *steps)
        between = [2 + part * axes + i for i in range(axes) for part in (1, 0)]
        moved = write("Transpose", moved, perm=[0, 1, *between])
        shape = graph.constant(np.array([batch, channels, *image], np.int64))
        graph.replace([node], "Reshape", [moved, shape])
        return
    columns = write.shaped(x, batch, width, *steps)
    weights = np.tile(np.eye(taps, dtype=np.float32), (channels, 1)).reshape(width, 1, *block)
    attrs = {
        "group": channels, "kernel_shape": block, "strides": found.strides,
        "dilations": found.dilations, "pads": found.pads, "output_padding": found.left,
    }  # fmt: skip
    graph.replace([node], "ConvTranspose", [columns, graph.constant(weights)], attrs)


#: Operator → whether a node can be written out, and how.
TRANSFORMS: dict[str, tuple[Condition, Rewrite]] = {
    "DFT": (_transforms, _dft),
    "STFT": (_frames, _stft),
    "Col2Im": (_has_columns, _col2im),
}
