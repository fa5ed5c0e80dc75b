"""LSTM layers of TFLite in all their variants.

What ONNX's LSTM can say becomes that operator. Peepholes, layer normalization, clipping and a bias
of the projection become a step per element of the series, written out in operators. So do weights
of int8 with activations="dynamic": each step's inputs and last outputs become bytes row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import Value
from . import _dynamic, _integer_lstm
from ._call import Call, Result, builtin
from .ops_control import MAX_STEPS

Array = np.ndarray
#: Activations of the cell by code (`schema.ACTIVATIONS`).
_CELL = {0: "", 1: "Relu", 3: "Relu6", 4: "Tanh"}


@dataclass
class Cell:
    """Weights of one direction, gates in the order input, forget, cell, output. An input gate that
    is coupled to the forget gate, 1 − f, has the negated weights and bias of that gate."""

    w: list[Array]
    r: list[Array]
    bias: list[Array]
    #: of input, forget and output gate, where the cell's state reaches them
    peephole: list[Array] | None
    #: (outputs, units) and its bias
    projection: Array | None
    projection_bias: Array | None
    #: scales of layer normalization, gate by gate
    norms: list[Array] | None
    activation: str
    cell_clip: float
    projection_clip: float
    #: what one step of each int8 weight stands for, of x, of the last output and of the projection:
    #: products are of bytes
    steps: tuple[list[np.float32], list[np.float32], list[np.float32]] | None

    @property
    def units(self) -> int:
        """0 where the weight is a single number, which `_check` refuses."""
        return int((*self.w[1].shape, 0)[0])

    @property
    def is_plain(self) -> bool:
        """Whether ONNX's operator has this cell."""
        clips = self.cell_clip or (self.projection_clip and self.projection is not None)
        extra = self.peephole, self.projection_bias, self.norms, self.steps
        return not clips and self.activation == "Tanh" and all(e is None for e in extra)


@builtin("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(c: Call) -> Value:
    """x (N,T,I), or (T,N,I) when time goes first → (N,T,H). The state starts at zero in every
    run."""
    if _integer_lstm.takes(c):
        return _integer_lstm.layer(c)
    return _run(c, _cell(c, 1, (20, 21, 22, 23)), _time_first(c))


def _time_first(c: Call) -> bool:
    return bool(c.opt("time_major"))


@builtin("BIDIRECTIONAL_SEQUENCE_LSTM")
def bidirectional_lstm(c: Call) -> Result:
    """Both directions of x; one result each, or joined along the units."""
    if any(c.has(i) for i in range(39, 48)):
        raise UnsupportedOperatorError(
            tr("a bidirectional LSTM with an auxiliary input is not supported"),
            (c.emit.source,), where=c.emit.source,
        )  # fmt: skip
    time_major = _time_first(c)
    both = [_run(c, _cell(c, at, ()), time_major, backward=at > 1) for at in (1, 18)]
    return c.emit("Concat", *both, axis=2) if c.opt("merge") else both


def _cell(c: Call, at: int, norms: tuple[int, ...]) -> Cell:
    """The cell whose weights begin with input `at`: 4 of x, 4 of the last output, 3 peepholes, 4
    biases, projection and its bias."""
    code = c.opt("activation")
    if code not in _CELL:
        raise UnsupportedOperatorError(
            tr("the cell activation {code} of an LSTM is not supported", code=code),
            (c.emit.source,), where=c.emit.source,
        )  # fmt: skip
    coupled = not c.has(at)

    def gates(first: int) -> list[Array]:
        found = [_numbers(c, first + g) for g in range(int(coupled), 4)]
        return [-found[0], *found] if coupled else found

    peephole = None
    if c.has(at + 9):
        peephole = [_numbers(c, at + 8 + g).ravel() for g in range(int(coupled), 3)]
        peephole = [-peephole[0], *peephole] if coupled else peephole
    scales = None
    if any(c.has(i) for i in norms):
        scales = [_numbers(c, i).ravel() for i in norms[int(coupled) :]]
        scales = [scales[0], *scales] if coupled else scales
    cell = Cell(
        gates(at), gates(at + 4), [b.ravel() for b in gates(at + 11)], peephole,
        _numbers(c, at + 15) if c.has(at + 15) else None,
        _numbers(c, at + 16).ravel() if c.has(at + 16) else None,
        scales, _CELL[code], c.opt("cell_clip"), c.opt("proj_clip"), _byte_steps(c, at),
    )  # fmt: skip
    _check(c, cell)
    return cell


def _byte_steps(
    c: Call, at: int
) -> tuple[list[np.float32], list[np.float32], list[np.float32]] | None:
    """`Cell.steps` of the weights that begin with input `at`; None where the layer stays in floats:
    of another kind of weights, and of a series that cannot be written out."""
    first = int(not c.has(at))
    w, r = (list(range(i + first, i + 4)) for i in (at, at + 4))
    projection = [at + 15] if c.has(at + 15) else []
    sizes = c.emit.dims(c.raw(0))[:2]
    if len(sizes) < 2 or None in sizes:
        return None
    steps = sizes[0 if _time_first(c) else 1] or 0
    if steps > MAX_STEPS or not _dynamic.takes(c, 0, (*w, *r, *projection)):
        return None
    negated = (w[0], r[0]) if first else ()  # the input gate's weights are minus the forget gate's
    if any((np.asarray(c.raw(i).const) == -128).any() for i in negated):
        return None

    def scales(inputs: list[int]) -> list[np.float32]:
        found = [np.float32(c.tensors.params(c.index(i)).scale.ravel()[0]) for i in inputs]
        return [found[0], *found] if len(found) == 3 else found

    return scales(w), scales(r), scales(projection)


def _check(c: Call, cell: Cell) -> None:
    units = cell.units
    outputs = units if cell.projection is None else (*cell.projection.shape, 0)[0]
    wrong = [a.shape for a in cell.w if a.ndim != 2 or a.shape != cell.w[1].shape]
    wrong += [a.shape for a in cell.r if a.shape != (units, outputs)]
    rows = [*cell.bias, *(cell.peephole or ()), *(cell.norms or ())]
    wrong += [a.shape for a in rows if a.shape != (units,)]
    if cell.projection is not None and cell.projection.shape != (outputs, units):
        wrong.append(cell.projection.shape)
    if wrong:
        raise ModelFormatError(
            tr(
                "tflite: {source}: a weight of an LSTM of {units} units has shape {shape}",
                source=c.emit.source, units=units, shape=list(wrong[0]),
            )
        )  # fmt: skip


def _run(c: Call, cell: Cell, time_major: bool, backward: bool = False) -> Value:
    x = c.x() if time_major else c.emit.transpose(c.x(), (1, 0, 2))
    y = _as_operator(c, cell, x, backward) if cell.is_plain else _steps(c, cell, x, backward)
    return y if time_major else c.emit.transpose(y, (1, 0, 2))


def _as_operator(c: Call, cell: Cell, x: Value, backward: bool) -> Value:
    """x (T,N,I) → (T,N,H) by ONNX's LSTM, whose gates are input, output, forget, cell. A projection
    becomes part of the recurrent weights, R·(P·h), and of what leaves."""
    order = (0, 3, 1, 2)
    w, r, b = (np.concatenate([part[g] for g in order]) for part in (cell.w, cell.r, cell.bias))
    if cell.projection is not None:
        r = r @ cell.projection
    bias = np.concatenate([b, np.zeros_like(b)])[None]
    direction = "reverse" if backward else "forward"
    y = c.emit("LSTM", x, w[None], r[None], bias, hidden_size=cell.units, direction=direction)
    y = c.emit("Squeeze", y, [1])
    return y if cell.projection is None else c.emit("MatMul", y, _turned(cell.projection))


def _turned(weight: Array) -> Array:
    return np.ascontiguousarray(weight.T)


def _steps(c: Call, cell: Cell, x: Value, backward: bool) -> Value:
    """x (T,N,I) → (T,N,H), step by step as LiteRT computes a float cell."""
    steps, batch, _ = c.emit.dims(x)
    if steps is None or batch is None or steps > MAX_STEPS:
        raise UnsupportedOperatorError(
            tr(
                "this LSTM is unrolled, which needs a fixed batch size and at most "
                "{limit} steps",
                limit=MAX_STEPS,
            ),
            (c.emit.source,), where=c.emit.source,
            fix=tr("fix the input's shape with --shape, or shorten the series"),
        )  # fmt: skip
    outputs = cell.r[0].shape[1]
    w_steps, r_steps, p_steps = cell.steps or ((), (), ())
    given = _product(c, x, _matrix(c, cell.w, w_steps))
    recurrent = _matrix(c, cell.r, r_steps)
    projection = None if cell.projection is None else _matrix(c, [cell.projection], p_steps)
    h: Any = c.emit.const(np.zeros((batch, outputs), np.float32))
    state: Any = c.emit.const(np.zeros((batch, cell.units), np.float32))
    made: dict[int, Value] = {}
    for t in reversed(range(steps)) if backward else range(steps):
        now = c.emit("Gather", given, np.array(t, np.int64), axis=0)
        sums = c.emit("Add", now, _product(c, h, recurrent))
        parts = c.emit.outputs("Split", [sums], 4, axis=1, num_outputs=4)
        h, state = _step(c, cell, projection, parts, state)
        made[t] = c.emit("Unsqueeze", h, [0])
    return c.emit("Concat", *(made[t] for t in range(steps)), axis=0)


def _matrix(c: Call, gates: list[Array], steps: Sequence[np.float32]) -> list[Value]:
    """The weights (units,K) of each gate side by side; bytes and what they stand for where the
    weights count in steps."""
    if not steps:
        return [c.emit.const(_turned(np.concatenate(gates)))]
    w = np.concatenate([np.rint(g / step).astype(np.int8) for g, step in zip(gates, steps)])
    scale = np.repeat(np.array(steps, np.float32), [len(g) for g in gates])
    return [c.emit.const(w), c.emit.const(scale)]


def _product(c: Call, x: Value, matrix: list[Value]) -> Value:
    if len(matrix) == 1:
        return c.emit("MatMul", x, matrix[0])
    symmetric = not c.opt("asymmetric")
    return c.emit("DynamicQuantizeGemm", x, *matrix, None, ties="away", symmetric=symmetric)


def _step(
    c: Call, cell: Cell, projection: list[Value] | None, parts: list[Value], state: Value
) -> tuple[Value, Value]:
    """Sums of the four gates and the cell's state → output and state."""
    emit = c.emit

    def activated(v: Value, fn: str) -> Value:
        if fn == "Relu6":
            return emit("Clip", v, 0.0, 6.0)
        return emit(fn, v) if fn else v

    def gate(g: int, seen: Value | None, at: int, fn: str) -> Value:
        v = parts[g]
        if seen is not None and cell.peephole is not None:
            v = emit("Add", v, emit("Mul", seen, cell.peephole[at]))
        if cell.norms is not None:
            v = emit("LayerNormalization", v, cell.norms[g], cell.bias[g], axis=-1, epsilon=1e-8)
        else:
            v = emit("Add", v, cell.bias[g])
        return activated(v, fn)

    forget = gate(1, state, 1, "Sigmoid")
    let_in = gate(0, state, 0, "Sigmoid")
    new = gate(2, None, 0, cell.activation)
    state = emit("Add", emit("Mul", forget, state), emit("Mul", let_in, new))
    if cell.cell_clip:
        state = emit("Clip", state, -cell.cell_clip, cell.cell_clip)
    h = emit("Mul", gate(3, state, 2, "Sigmoid"), activated(state, cell.activation))
    if projection is not None:
        h = _product(c, h, projection)
        if cell.projection_bias is not None:
            h = emit("Add", h, cell.projection_bias)
        if cell.projection_clip:
            h = emit("Clip", h, -cell.projection_clip, cell.projection_clip)
    return h, state


def _numbers(c: Call, index: int) -> Array:
    """A constant weight as real numbers."""
    value, tensor = c.raw(index), c.tensor(index)
    if value.const is None:
        raise ModelFormatError(
            tr(
                "tflite: {source}: the weight {tensor} is not constant",
                source=c.emit.source,
                tensor=tensor.name,
            )
        )
    real = np.asarray(value.const, np.float32)
    if tensor.quant is None or tensor.dtype is None or tensor.dtype.is_float:
        return real
    if len(tensor.quant.scale) > 1:
        raise UnsupportedOperatorError(
            tr("LSTM weights with one scale per channel are not supported"),
            (c.emit.source,),
            where=c.emit.source,
        )
    return (real - np.float32(tensor.quant.zero_point[0])) * tensor.quant.scale[0]
