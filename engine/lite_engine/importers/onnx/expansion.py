"""How many nodes a model has when its functions are written out."""

from __future__ import annotations

from collections.abc import Mapping

from lite_messages import tr

from ...errors import ModelFormatError
from .._protobuf import Message
from . import fields

MAX_NODES = 200_000
MAX_CALL_DEPTH = 32

#: Domain, operator and overload of a function.
Key = tuple[str, str, str]


def check_expansion(proto: Message, functions: Mapping[Key, Message]) -> None:
    """Functions that call each other can stand for more nodes than any memory holds."""
    if not functions:
        return
    sizes: dict[Key, int] = {}

    def size(nodes: list[Message], depth: int) -> int:
        if depth > MAX_CALL_DEPTH:
            raise ModelFormatError(
                tr(
                    "functions call each other more than {max_call_depth} deep",
                    max_call_depth=MAX_CALL_DEPTH,
                )
            )
        total = 0
        for node in nodes:
            key = (
                node.text(fields.NodeProto.DOMAIN),
                node.text(fields.NodeProto.OP_TYPE),
                node.text(fields.NodeProto.OVERLOAD),
            )
            if key in functions and key not in sizes:
                sizes[key] = size(functions[key].messages(fields.Function.NODE), depth + 1)
            total += sizes.get(key, 1)
        return total

    if (total := size(proto.messages(fields.GraphProto.NODE), 0)) > MAX_NODES:
        raise ModelFormatError(
            tr(
                "its functions expand to {total} nodes, more than {max_nodes}",
                total=total,
                max_nodes=MAX_NODES,
            )
        )
