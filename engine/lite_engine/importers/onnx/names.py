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
        found = re.search(r"\.(\d{1,15})$", name) if "." in name else None
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
    """Preprocessing, labels and adapter kept as JSON in the model's own metadata properties."""
    found: dict[str, Any] = {}
    for key, kind in (("preprocess", dict), ("labels", list), ("adapter", dict)):
        try:
            value = json.loads(properties.get(key, "null"))
        except (ValueError, RecursionError):
            continue  # somebody else's property of that name
        if isinstance(value, kind):
            found[key] = value
    return found


class Names:
    """Gives names that nobody else in a model has; `serial` is the last number that it added."""

    def __init__(self) -> None:
        self.serial = 0
        self._nodes: set[str] = set()

    def of_node(self, prefix: str, label: str) -> str:
        """prefix + label, with a number where a node has that name already."""
        name = prefix + label
        number = 1
        while name in self._nodes:
            number += 1
            name = f"{prefix}{label}.{number}"
            if number > 3:  # many nodes of one name: go on from a number nobody has yet
                self.serial += 1
                number = max(number, self.serial)
        self._nodes.add(name)
        return name

    def unique(self, stem: str) -> str:
        self.serial += 1
        return f"{stem}.{self.serial}"
