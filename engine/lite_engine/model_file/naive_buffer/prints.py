"""Print operators in a `.nb` file: looking for a wrong layer in Paddle-Lite's own runtime.

The other operators stay as they are: a print operator reads a value that is there anyway, on OpenCL
through a copy to the host, and what it makes nobody reads.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from lite_messages import tr

from ...errors import UsageError
from ...importers.paddle.program import Op, Program, Var

_QUIET = ("feed", "fetch")
#: Outputs that only training reads; most kernels never write them.
_UNWRITTEN = ("XShape", "Mean", "Variance", "SavedMean", "SavedVariance")


def insert_prints(program: Program, values: Sequence[str], elements: int = 20) -> int:
    """Prints name, type, shape and the first `elements` (-1: all) of these values, of every layer's
    when none are given, as soon as they are made. How many there are. Raises UsageError for an
    unknown name.
    """
    block = program.blocks[0]
    made = [name for op in block.ops for name in _written(op)]
    for name in values:
        if name not in made:
            near = difflib.get_close_matches(name, made, 3) or made[:3]
            raise UsageError(
                tr(
                    "no value of the result is called {name!r}: it may be inside a fused layer",
                    name=name,
                ),
                fix=tr(
                    "there are {near}, … (without names every value is printed)",
                    near=", ".join(near),
                ),
            )
    wanted = set(values or made)
    ops: list[Op] = []
    for op in block.ops:
        ops.append(op)
        for name in _written(op):
            if name in wanted:
                source, out = block.vars[name], f"{name}/print"
                block.vars[out] = Var(out, dtype=source.dtype, shape=source.shape)
                ops.append(Op("print", {"In": [name]}, {"Out": [out]}, _attrs(name, elements)))
    count = len(ops) - len(block.ops)
    block.ops = ops
    return count


def _written(op: Op) -> list[str]:
    if op.type in _QUIET:
        return []
    return [n for slot, names in op.outputs.items() if slot not in _UNWRITTEN for n in names]


def _attrs(name: str, elements: int) -> dict[str, object]:
    """What Paddle-Lite's print operator reads; it has no defaults. The message names the value
    where it is printed from a copy."""
    return {
        "first_n": -1, "message": name, "summarize": elements, "print_tensor_name": True,
        "print_tensor_type": True, "print_tensor_shape": True, "print_tensor_lod": False,
        "print_tensor_layout": True, "print_phase": "FORWARD", "is_forward": True,
    }  # fmt: skip


__all__ = ["insert_prints"]
