"""File → Graph. Each format is a module with `match(path)` and `open(path, **options)`.

`load` asks each module in turn; the first that matches opens the file.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from ..errors import LiteError, ModelFormatError
from ..ir import Graph, Shape, verify
from ..ops import check_shape, infer_types

#: Tried in this order: exact magics first, formats known only by their structure last.
FORMATS = ("tflite", "naive_buffer", "onnx", "paddle", "tensorflow", "caffe")


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"{__name__}.{name}")


def format_of(path: str | Path) -> str:
    """Name of the format. Raises ModelFormatError when nothing matches."""
    path = Path(path)
    if not path.exists():
        raise ModelFormatError(f"{path}: no such file or folder")
    for name in FORMATS:
        if _module(name).match(path):
            return name
    raise ModelFormatError(
        f"{path}: not a model this reads ({', '.join(FORMATS)}); "
        "give the model file itself, or the folder that holds __model__ or saved_model.pb"
    )


def load(
    path: str | Path,
    *,
    params: str | Path | None = None,
    shapes: Mapping[str, Shape] | None = None,
    **options: Any,
) -> Graph:
    """Reads a model of any known format.

    `params` is the file of weights where a format keeps two files (Paddle, Caffe) and its place
    cannot be guessed. `shapes` fixes symbolic input shapes. Raises ModelFormatError,
    UnsupportedOperatorError.
    """
    path = Path(path)
    if params is not None:
        options["params"] = Path(params)
    module = _module(format_of(path))
    if shapes and getattr(module, "SHAPES_ARE_HINTS", False):
        # the file's input shapes are examples: given ones replace them before translation
        options["shapes"] = shapes
    try:
        graph = module.open(path, **options)
    except LiteError:
        raise
    except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError) as e:
        # Importers check what they read; this is the last line for hostile files.
        raise ModelFormatError(f"{path}: damaged ({type(e).__name__}: {e})") from e
    graph.metadata.setdefault("format", format_of(path))
    fix_shapes(graph, shapes or {})
    infer_types(graph)
    verify(graph, "import")
    return graph


def fix_shapes(graph: Graph, shapes: Mapping[str, Shape]) -> None:
    """Writes given input shapes into the graph. Raises ModelFormatError for an unknown name."""
    by_name = {v.name: v for v in graph.inputs}
    for name, shape in shapes.items():
        if name not in by_name:
            raise ModelFormatError(f"no input is called {name!r}; inputs: {', '.join(by_name)}")
        by_name[name].shape = check_shape(by_name[name], tuple(shape))


def formats() -> Sequence[str]:
    return FORMATS
