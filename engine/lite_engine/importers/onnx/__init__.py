"""ONNX → Graph. Reads opset 1 to the newest; older operator forms become the newest ones.

No `onnx` package is needed. Source: onnx.proto3 and Operators.md of the ONNX project.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lite_messages import tr

from ...errors import ModelFormatError
from ...files import head
from ...ir import Graph
from ...mapped import map_file
from .._protobuf import Buffer, Message
from . import fields
from .reader import ModelReader

__all__ = ["match", "open", "read_bytes"]

#: Field numbers that a ModelProto may start with.
_FIRST_FIELDS = (1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25)

#: A file says which sizes are open; only those are filled in.
SHAPES_ARE_HINTS = False


def match(path: Path) -> bool:
    """True for a `.onnx` file, or a file whose outermost message is a ModelProto."""
    if not path.is_file():
        return False
    if path.suffix.lower() in (".onnx", ".ort") or not (start := head(path)):
        return path.suffix.lower() == ".onnx"
    # an ONNX ModelProto starts with ir_version, a small varint
    return (
        len(start) > 2
        and start[0] == 0x08
        and 1 <= start[1] <= 32
        and start[2] >> 3 in _FIRST_FIELDS
        and (_looks_like_model(path))
    )


def _looks_like_model(path: Path) -> bool:
    try:
        model = Message(map_file(path))
        return (
            fields.Model.GRAPH in model
            and fields.Model.OPSET_IMPORT in model
            and set(model.numbers()) <= set(_FIRST_FIELDS)
        )
    except ModelFormatError:
        return False


def open(path: Path, **_: Any) -> Graph:
    """Reads the file. Raises ModelFormatError, UnsupportedOperatorError."""
    path = Path(path)
    try:
        graph = read_bytes(map_file(path), path.parent)
    except ModelFormatError as error:
        if error.where == "protobuf":
            error = ModelFormatError(
                tr("not an ONNX model, or a damaged one (protobuf: {what})", what=error.what),
                fix=tr("copy or download it again, as binary"),
            )
        raise error.within(path) from None
    graph.name = graph.name or path.stem
    return graph


def read_bytes(data: Buffer | bytes, folder: Path = Path()) -> Graph:
    """A serialised ModelProto; external data is looked for in `folder`."""
    return ModelReader(Message(data), folder).graph()
