"""Opsets, names and properties of a ModelProto."""

from __future__ import annotations

import json
import re
from typing import Any

from ...ir import Graph
from .._protobuf import Message
from . import fields


def read_opsets(imports: list[Message]) -> dict[str, int]:
    """Domain → version; `ai.onnx` is the empty domain."""
    return {
        (
            ""
            if o.text(fields.OperatorSet.DOMAIN) == "ai.onnx"
            else o.text(fields.OperatorSet.DOMAIN)
        ): o.int(fields.OperatorSet.VERSION)
        for o in imports
    }


def largest_suffix(graph: Graph) -> int:
    """The largest N of names that end in `.N`, so that new names differ from the file's."""
    largest = 0
    names = [v.name for v in graph.values()] + [n.name for n in graph.nodes]
    for name in names:
        found = re.search(r"\.(\d{1,15})$", name)
        if found:
            largest = max(largest, int(found.group(1)))
    return largest


def read_names(proto: Message) -> set[str]:
    """Every name that a graph's nodes read, those of their branches included, and its outputs."""
    names = {info.text(fields.ValueInfo.NAME) for info in proto.messages(fields.GraphProto.OUTPUT)}
    for node in proto.messages(fields.GraphProto.NODE):
        names.update(node.texts(fields.NodeProto.INPUT))
        for attr in node.messages(fields.NodeProto.ATTRIBUTE):
            for inner in (
                *attr.messages(fields.Attribute.G),
                *attr.messages(fields.Attribute.GRAPHS),
            ):
                names |= read_names(inner)
    return names


def travelling(properties: dict[str, str]) -> dict[str, Any]:
    """Pre-processing and labels kept as JSON in the model's own metadata properties."""
    found: dict[str, Any] = {}
    for key, kind in (("preprocess", dict), ("labels", list)):
        try:
            value = json.loads(properties.get(key, "null"))
        except (ValueError, RecursionError):
            continue  # somebody else's property of that name
        if isinstance(value, kind):
            found[key] = value
    return found
