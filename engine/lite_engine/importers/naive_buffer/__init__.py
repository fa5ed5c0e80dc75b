"""Paddle-Lite's `.nb` (naive buffer) files: meta versions 2, 1 and 0, and the folders of two files
(`__model__.nb`, `param.nb`) that came before them.

The operators are Paddle's, fused and placed by Paddle-Lite's `opt`; the same translation as for
Paddle programs makes the Graph. `metadata["paddle_lite"]` keeps what the file says about itself:
meta version, version of opt, and the kernel chosen for each operator.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from lite_messages import tr

from ...errors import ModelFormatError
from ...files import head
from ...ir import Graph, Shape
from ...mapped import map_file
from .header import META_VERSIONS, looks_like_nb, read_header

if TYPE_CHECKING:
    from ..paddle.program import Program

#: A model of the oldest form is a folder with these; they are what a file of meta version 0 holds
#: behind its header.
_PROGRAM, _PARAMS = "__model__.nb", "param.nb"


def match(path: Path) -> bool:
    """True when the file starts like a naive buffer, or is half of a model in two files."""
    return _is_one_file(path) or _folder_of_two(path) is not None


def _is_one_file(path: Path) -> bool:
    return path.is_file() and looks_like_nb(head(path, 64), path.stat().st_size)


def _folder_of_two(path: Path) -> Path | None:
    """The folder of a model in two files, which is named itself or by one of them."""
    folder = path.parent if path.name in (_PROGRAM, _PARAMS) else path
    return folder if (folder / _PROGRAM).is_file() else None


#: As in Paddle, a program runs on any size.
SHAPES_ARE_HINTS = True


def open(
    path: Path, *, params: Path | None = None, shapes: Mapping[str, Shape] | None = None
) -> Graph:
    """`params` is the second file of a model in two, `shapes` replace those of the file.
    Raises ModelFormatError, UnsupportedOperatorError."""
    from ..paddle.builder import build  # brings all of Paddle's operators
    from .container import read_nb
    from .tlv import read_tlv

    if _is_one_file(path):
        data = map_file(path)
        header = read_header(data)
        program, meta, version = read_nb(data), header.meta_version, header.opt_version
    else:
        folder, meta, version = _folder_of_two(path), 0, ""
        assert folder is not None  # it matched
        params = params or folder / _PARAMS
        if not params.is_file():
            raise ModelFormatError(
                tr("the parameters of this model, {name}, are missing", name=params.name),
                where=folder / _PROGRAM,
                fix=tr("put them beside it, or name them with --params"),
            )
        program, path = read_tlv(map_file(folder / _PROGRAM), map_file(params), version), folder
    program.producer = f"Paddle-Lite opt {version}".strip()
    graph = build(program, path.name if path.is_dir() else path.stem, shapes)
    graph.metadata["format"] = "naive_buffer"
    graph.metadata["paddle_lite"] = {
        "meta_version": meta,
        "opt_version": version,
        "kernels": _kernels(program),
    }
    return graph


def _kernels(program: Program) -> dict[str, str]:
    """Operator (its name as a node source) → the kernel that opt chose, in words."""
    from .kernels import kernel_text

    out = {}
    for op, source in zip(program.blocks[0].ops, program.blocks[0].sources()):
        kernel = op.attrs.get("__@kernel_type_attr@__")
        if kernel:
            out[source] = kernel_text(str(kernel))
    return out


__all__ = ["META_VERSIONS", "match", "open"]
