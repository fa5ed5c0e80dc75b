"""Writes the runtime's list of how many inputs each operator has, from `lite_engine.ops`.

python scripts/operator_inputs.py           writes engine/native/src/runtime/operator_inputs.inc
python scripts/operator_inputs.py --check   fails when the file is not what it would write
"""

from __future__ import annotations

import sys
from pathlib import Path

from lite_engine.ops import all_ops

FILE = Path(__file__).parents[1] / "engine/native/src/runtime/operator_inputs.inc"
HEAD = "// Written by scripts/operator_inputs.py from lite_engine.ops: {operator, inputs}.\n"


def text() -> str:
    """A line for each operator of the native runtime that has a fixed number of inputs."""
    rows = (
        f'{{"{op.name}", {len(op.inputs)}}},\n'
        for op in sorted(all_ops(), key=lambda op: op.name)
        if not op.is_variadic and any(kernel.backend != "reference" for kernel in op.kernels)
    )
    return HEAD + "".join(rows)


def main() -> int:
    if sys.argv[1:] == ["--check"]:
        return int(FILE.read_text() != text())
    FILE.write_text(text())
    return 0


if __name__ == "__main__":
    sys.exit(main())
