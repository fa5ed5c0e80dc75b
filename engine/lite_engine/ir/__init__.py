"""The graph: typed operators, values, journal, text form, verifier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .._lazy import lazily

if TYPE_CHECKING:
    from .dtype import DType
    from .graph import Graph, Node, Value, handed_out, node_reads
    from .journal import Entry, Journal
    from .nested import captured, holders, outer_reads, walk
    from .text import from_text, to_text
    from .types import Dim, Integers, QuantParams, Shape, TypeInfo, fits, format_shape, misfit
    from .verify import verify

__all__ = [
    "DType",
    "Dim",
    "Entry",
    "Graph",
    "Integers",
    "Journal",
    "Node",
    "QuantParams",
    "Shape",
    "TypeInfo",
    "Value",
    "captured",
    "fits",
    "format_shape",
    "from_text",
    "handed_out",
    "holders",
    "misfit",
    "node_reads",
    "outer_reads",
    "to_text",
    "verify",
    "walk",
]

_WHERE = {
    "dtype": ("DType",),
    "graph": ("Graph", "Node", "Value", "handed_out", "node_reads"),
    "journal": ("Entry", "Journal"),
    "nested": ("captured", "holders", "outer_reads", "walk"),
    "text": ("from_text", "to_text"),
    "types": (
        "Dim",
        "Integers",
        "QuantParams",
        "Shape",
        "TypeInfo",
        "fits",
        "format_shape",
        "misfit",
    ),
    "verify": ("verify",),
}
__getattr__ = lazily(__name__, {name: module for module, names in _WHERE.items() for name in names})
