"""TensorFlow Lite: `.tflite` (FlatBuffers, schema version 3).

Quantized models come out as QuantizeLinear/DequantizeLinear around float operators, inputs and
outputs with the file's own types and NHWC order. Turned into integer operators they give the very
integers of LiteRT's default kernels (XNNPACK: float32(acc)·scale, rounded half to even); LiteRT's
reference kernels round a second time when they shift and so differ by a step here and there.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..._lazy import lazily
from ...files import head
from ...ir import Graph
from ...ir.types import Shape

__getattr__ = lazily(__name__, {"CALLS": "ops_control", "graph_of": "reading"})
__all__ = ["CALLS", "graph_of", "match", "open"]

#: A file has a size for every axis, and says which are open: given shapes replace those.
SHAPES_ARE_HINTS = True


def match(path: Path) -> bool:
    """True when the file carries the identifier TFL3."""
    return path.is_file() and head(path, 8)[4:8] == b"TFL3"


def open(
    path: Path, *, activations: str = "float", shapes: Mapping[str, Shape] | None = None
) -> Graph:
    """The main subgraph. `activations="dynamic"` computes layers with float inputs and int8 weights
    as LiteRT does; `shapes` gives inputs the sizes that the file leaves open, like its batch.
    Raises ModelFormatError, UnsupportedOperatorError (all at once)."""
    from .reading import read  # brings all of TFLite's operators

    return read(path, dynamic=activations == "dynamic", shapes=shapes or {})
