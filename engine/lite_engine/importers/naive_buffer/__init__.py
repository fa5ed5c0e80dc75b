"""Paddle-Lite's `.nb` (naive buffer) files: meta versions 2, 1 and 0.

The operators are Paddle's, fused and placed by Paddle-Lite's `opt`; the same translation as for
Paddle programs makes the Graph. `metadata["paddle_lite"]` keeps what the file says about itself:
meta version, version of opt, and the kernel chosen for each operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...files import head
from ...ir import Graph, Shape
from ...mapped import map_file
from ..paddle.builder import build
from ..paddle.program import Program
from .container import META_VERSIONS, looks_like_nb, read_header, read_nb
from .kernels import kernel_text


def match(path: Path) -> bool:
    """True when the file starts like a naive buffer."""
    if not path.is_file():
        return False
    return looks_like_nb(head(path, 64), path.stat().st_size)


#: As in Paddle, a program runs on any size.
SHAPES_ARE_HINTS = True


def open(path: Path, *, shapes: Mapping[str, Shape] | None = None) -> Graph:
    """`shapes` replace those of the file. Raises ModelFormatError, UnsupportedOperatorError."""
    data = map_file(path)
    header = read_header(data)
    program = read_nb(data)
    program.producer = f"Paddle-Lite opt {header.opt_version}".strip()
    graph = build(program, path.stem, shapes)
    graph.metadata["format"] = "naive_buffer"
    graph.metadata["paddle_lite"] = {
        "meta_version": header.meta_version,
        "opt_version": header.opt_version,
        "kernels": _kernels(program),
    }
    return graph


def _kernels(program: Program) -> dict[str, str]:
    """Operator (its name as a node source) → the kernel that opt chose, in words."""
    out = {}
    for op, source in zip(program.blocks[0].ops, program.blocks[0].sources()):
        kernel = op.attrs.get("__@kernel_type_attr@__")
        if kernel:
            out[source] = kernel_text(str(kernel))
    return out


__all__ = ["META_VERSIONS", "match", "open"]
