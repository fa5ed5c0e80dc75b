"""Names that a graph's nodes see."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ...ir import Graph, Value


@dataclass
class Scope:
    """Names visible to a graph's nodes; `prefix` keeps inlined functions apart."""

    graph: Graph
    opsets: dict[str, int]
    values: dict[str, Value] = field(default_factory=dict)
    outer: Scope | None = None
    prefix: str = ""
    path: str = ""  # the calls this scope is inside of, for `sources`
    attrs: dict[str, Any] = field(default_factory=dict)  # a function's attribute values
    absent: set[str] = field(default_factory=set)  # a function's inputs that were not given
    depth: int = 0
    ends: frozenset[str] | None = None  # a graph's outputs; None in a function

    def look_up(self, name: str) -> Value | None:
        scope: Scope | None = self
        while scope is not None:
            if name in scope.values:
                return scope.values[name]
            scope = scope.outer
        return None

    def is_absent(self, name: str) -> bool:
        return name in self.absent or (self.outer is not None and self.outer.is_absent(name))
