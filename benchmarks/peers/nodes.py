"""Nodes of an ONNX file, as they occur in the names of a peer's layers."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path


def names_in(model: Path) -> dict[str, str]:
    """Names of an ONNX file's nodes and of what they compute → the node's name."""
    import onnx

    known: dict[str, str] = {}
    for node in onnx.load(model, load_external_data=False).graph.node:
        for name in (*node.output, node.name):
            if name:
                known[name] = node.name or node.output[0]
    return known


def nodes_in(text: str, known: Mapping[str, str]) -> list[str]:
    """Nodes whose names, or those of their outputs, occur in a layer's name: engines append words
    to them, and join those of what they fused. Part of a longer name does not count."""
    found: list[str] = []
    for name in sorted(known, key=len, reverse=True):
        at = re.search(rf"(?<![A-Za-z0-9]){re.escape(name)}(?![A-Za-z0-9])", text)
        if at:
            found.append(known[name])
            text = text[: at.start()] + " , " + text[at.end() :]
    return found
