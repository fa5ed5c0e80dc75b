"""Control flow of TFLite.

A loop whose condition follows from constants (the time steps of a recurrent layer) is unrolled: its
counters fold while its body is emitted, so that every step reads its own slice.
"""

from __future__ import annotations

from collections.abc import Sequence

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
            tr("{code} depends on data that is computed at run time", code=c.op.code),
            (c.emit.source,),
            where=c.emit.source,
            fix=tr(
                "only loops with a fixed number of steps and branches with a constant "
                "condition are supported"
            ),
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
                    "tflite: {source}: a condition must have one output, found {outputs}",
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
