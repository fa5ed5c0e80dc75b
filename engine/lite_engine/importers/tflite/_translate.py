"""The operators of a TFLite subgraph, one after the other, and of those that it calls.

An operator that only moves elements (`moves=True`) works on the integers when every quantised
tensor it touches has the same scale and zero point.
"""

from __future__ import annotations

from collections.abc import Sequence

from lite_messages import tr

from ...errors import ModelFormatError
from ...ir import Value
from .._emit import Emitter
from ._call import Call, find
from ._tensors import Tensors

#: nesting of subgraphs, and operators that unrolled loops may translate
MAX_DEPTH = 8


def translate(tensors: Tensors) -> None:
    """Every operator of the subgraph, in the file's order (which is the order of execution)."""
    for op in tensors.subgraph.operators:
        entry = find(op)
        assert entry is not None  # `open` has named the missing ones already
        name = tensors.tensor(op.outputs[0]).name if op.outputs else f"{op.code}:{op.index}"
        tensors.emit.source = name
        call = Call(tensors, op, entry)
        result = entry.run(call)
        values = [result] if isinstance(result, Value) else list(result)
        if len(values) < len(op.outputs):
            raise ModelFormatError(
                tr(
                    "tflite: {code} {index} has {outputs} outputs, expected {count}",
                    code=op.code,
                    index=op.index,
                    outputs=len(op.outputs),
                    count=len(values),
                )
            )
        for index, value in zip(op.outputs, values):
            tensors.define(index, value, is_raw=call.is_raw)


def inline(
    tensors: Tensors, number: int, args: Sequence[Value], emit: Emitter | None = None
) -> list[Value]:
    """Outputs of another subgraph of the file, its operators emitted here or by `emit`."""
    if not 0 <= number < len(tensors.file.subgraphs):
        raise ModelFormatError(
            tr(
                "tflite: {source} names subgraph {number}, but there are {count}",
                source=tensors.emit.source,
                number=number,
                count=len(tensors.file.subgraphs),
            )
        )
    target = tensors.file.subgraphs[number]
    tensors.budget[0] -= len(target.operators) + 1
    if tensors.depth >= MAX_DEPTH or tensors.budget[0] < 0:
        raise ModelFormatError(
            tr(
                "tflite: {source}: loops nested or repeated too often to be unrolled",
                source=tensors.emit.source,
            )
        )
    inner = Tensors(
        emit or tensors.emit, tensors.file, target, tensors.dynamic, tensors.depth + 1,
        tensors.budget,
    )  # fmt: skip
    if len(args) != len(inner.subgraph.inputs):
        raise ModelFormatError(
            tr(
                "tflite: {source} gives {arguments} arguments to subgraph {number}",
                source=tensors.emit.source,
                arguments=len(args),
                number=number,
            )
        )
    inner.values.update(zip(inner.subgraph.inputs, args))
    inner.repaired = tensors.repaired
    translate(inner)
    return [inner.raw(i) for i in inner.subgraph.outputs]
