"""Control flow and recurrent layers of TFLite.

A loop whose condition follows from constants (the time steps of a recurrent layer) is unrolled: its
counters fold while its body is emitted, so that every step reads its own slice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError, UnsupportedOperatorError
from ...ir import Value
from ._call import Call, Result, builtin
from ._translate import inline

MAX_STEPS = 1024
#: options that name another subgraph
CALLS = ("condition", "body", "then", "other")


def _decided(c: Call, value: Value) -> bool:
    """A condition known now. Raises UnsupportedOperatorError for one that data decides."""
    if value.const is None or value.const.size != 1:
        raise UnsupportedOperatorError(
            tr("{code} depends on data", code=c.op.code),
            (c.emit.source,),
            where=c.emit.source,
            fix=tr("only loops of a fixed number of steps and decided branches are read"),
        )
    return bool(value.const.ravel()[0])


@builtin("WHILE", raw=True)
def while_(c: Call) -> Result:
    source = c.emit.source
    state: Sequence[Value] = [c.raw(i) for i in range(len(c.op.inputs))]
    for _ in range(MAX_STEPS):
        verdict = inline(c.tensors, c.opt("condition"), state)
        c.emit.source = source
        if len(verdict) != 1:
            raise ModelFormatError(
                tr(
                    "tflite: {source}: a condition with {outputs} outputs",
                    source=source,
                    outputs=len(verdict),
                )
            )
        if not _decided(c, verdict[0]):
            return state
        state = inline(c.tensors, c.opt("body"), state)
        c.emit.source = source
    raise ModelFormatError(
        tr("tflite: {source}: more than {max_steps} steps", source=source, max_steps=MAX_STEPS)
    )


@builtin("IF", raw=True)
def if_(c: Call) -> Result:
    source = c.emit.source
    branch = "then" if _decided(c, c.raw(0)) else "other"
    args = [c.raw(i) for i in range(1, len(c.op.inputs))]
    result = inline(c.tensors, c.opt(branch), args)
    c.emit.source = source
    return result


@builtin("UNIDIRECTIONAL_SEQUENCE_LSTM")
def lstm(c: Call) -> Value:
    """x (N,T,I), or (T,N,I) when time goes first → (N,T,H). TFLite's gates are input, forget, cell,
    output; ONNX wants input, output, forget, cell. The state starts at zero in every run."""
    extra = [i for i in (9, 10, 11, 16, 17, 20, 21, 22, 23) if c.has(i)]
    if extra or not c.has(1) or c.opt("cell_clip") or c.opt("proj_clip"):
        raise UnsupportedOperatorError(
            tr(
                "an LSTM with peepholes, projection, layer normalization, coupled "
                "gates or clipping is not read"
            ),
            (c.emit.source,),
            where=c.emit.source,
            fix=tr("convert a plain one"),
        )
    if c.opt("activation") != 4:
        raise UnsupportedOperatorError(
            tr("an LSTM whose cell activation is not tanh"), (c.emit.source,), where=c.emit.source
        )
    order = (0, 3, 1, 2)
    w = np.concatenate([_numbers(c, 1 + g) for g in order])
    r = np.concatenate([_numbers(c, 5 + g) for g in order])
    b = np.concatenate([_numbers(c, 12 + g).ravel() for g in order])
    hidden = r.shape[1]
    if r.shape != (4 * hidden, hidden) or w.shape[0] != 4 * hidden or b.shape != (4 * hidden,):
        raise ModelFormatError(
            tr(
                "tflite: {source}: LSTM weights {w} and {r}",
                source=c.emit.source,
                w=w.shape,
                r=r.shape,
            )
        )
    x = c.x() if c.opt("time_major") else c.emit.transpose(c.x(), (1, 0, 2))
    bias = np.concatenate([b, np.zeros_like(b)])[None]
    y = c.emit("LSTM", x, w[None], r[None], bias, hidden_size=hidden)
    y = c.emit("Squeeze", y, [1])
    return y if c.opt("time_major") else c.emit.transpose(y, (1, 0, 2))


def _numbers(c: Call, index: int) -> np.ndarray:
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
            tr("LSTM weights with one scale per channel"), (c.emit.source,), where=c.emit.source
        )
    return (real - np.float32(tensor.quant.zero_point[0])) * tensor.quant.scale[0]
