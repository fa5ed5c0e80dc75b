"""The models, samples and notebooks that the project ships."""

from __future__ import annotations

from pathlib import Path

from lite_engine.errors import UsageError
from lite_messages import tr

_HERE = Path(__file__).resolve().parent


def folder() -> Path:
    """`notebooks/`: inside an installed package, beside `workbench/` in the source tree."""
    inside = _HERE / "notebooks"
    return inside if inside.is_dir() else _HERE.parents[1] / "notebooks"


def shipped(name: str) -> Path:
    """A shipped file: ``shipped("ocr.onnx")``. Raises UsageError for an unknown name."""
    path = folder() / "models" / name
    if not path.is_file():
        there = sorted(p.name for p in path.parent.glob("*") if p.suffix != ".py")
        raise UsageError(
            tr("there is no shipped file {name!r}", name=name),
            fix=tr("choose from {there}", there=", ".join(there)),
        )
    return path
