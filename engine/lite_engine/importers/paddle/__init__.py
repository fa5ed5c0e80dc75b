"""Paddle: `.pdmodel` + `.pdiparams`, a folder with `__model__`, PIR `.json` + `.pdiparams`.

`open` finds the parameters beside the program; `params=` names them where that fails.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lite_messages import tr

from ...errors import ModelFormatError
from ...files import head
from ...ir import Graph, Shape
from ...mapped import map_file
from .params import read_combined, read_separate
from .pir import looks_like_pir, read_pir
from .program import Program
from .program_desc import looks_like_program, read_program

#: Names under which programs and combined parameters are saved, tried in this order.
_PROGRAMS = (
    "__model__",
    "inference.pdmodel",
    "model.pdmodel",
    "inference.json",
    "model.json",
    "model",
)
_PARAMS = ("__params__", "params", "weights", "inference.pdiparams", "model.pdiparams")


def match(path: Path) -> bool:
    """True for a Paddle program, its parameter file, or a folder that holds them."""
    if path.is_dir():
        return _program_in(path) is not None
    if path.suffix == ".pdiparams":
        return _beside_params(path) is not None
    start = head(path, 256)
    return looks_like_program(start) or looks_like_pir(start)


#: Paddle runs a program on any size: the input shapes in the file are what it was exported with.
SHAPES_ARE_HINTS = True


def open(
    path: Path, *, params: Path | None = None, shapes: Mapping[str, Shape] | None = None
) -> Graph:
    """`shapes` replace those of the file. Raises ModelFormatError, UnsupportedOperatorError."""
    from .builder import build  # brings all of Paddle's operators

    if path.is_dir():
        found = _program_in(path)
    elif path.suffix == ".pdiparams":
        params = params or path
        found = _beside_params(path)
    else:
        found = path
    if found is None:
        raise ModelFormatError(
            tr("no Paddle program in here (__model__, *.pdmodel, *.json)"), where=path
        )
    program = read_pir(map_file(found)) if is_pir(found) else read_program(map_file(found))
    read_parameters(program, found, params)
    return build(program, path.name if path.is_dir() else found.stem, shapes)


def is_pir(path: Path) -> bool:
    return looks_like_pir(head(path, 256))


def read_parameters(program: Program, path: Path, params: Path | None) -> None:
    """Fills `program.params` from the file given, or from what lies beside the program."""
    names = program.parameter_names()
    if not names:
        return
    if params is not None and params.is_dir():
        program.params = read_separate(params, names)
        return
    combined = params or _params_of(path)
    if combined is not None:
        program.params = read_combined(combined, names)
    else:
        program.params = read_separate(path.parent, names)


def _program_in(folder: Path) -> Path | None:
    for name in _PROGRAMS:
        path = folder / name
        if path.is_file() and match(path):
            return path
    others = sorted([*folder.glob("*.pdmodel"), *folder.glob("*.json")])
    others = [p for p in others if p.is_file() and match(p)]
    return others[0] if len(others) == 1 else None


def _beside_params(path: Path) -> Path | None:
    for suffix in (".pdmodel", ".json"):
        program = path.with_suffix(suffix)
        if program.is_file() and match(program):
            return program
    return None


def _params_of(path: Path) -> Path | None:
    """The combined parameter file of a program, None when there is none."""
    same = path.with_suffix(".pdiparams")
    if same != path and same.is_file():
        return same
    for name in _PARAMS:
        found = path.parent / name
        if found.is_file():
            return found
    return None
