"""TransitionMatrix: from row to column, weighted by the milliseconds that the transfer costs."""

from __future__ import annotations

from typing import Any

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, Plain
from .._svg import table
from ..formats import number

_KEYS = {
    "backend": ("source", "target"),
    "precision": ("source_precision", "target_precision"),
    "layout": ("source_layout", "target_layout"),
}


def _inside_a_backend(info: dict[str, Any]) -> bool:
    """Does a copy name layouts or precisions, because both its sides are on one backend?"""
    return any(
        info["source"] == info.get(source) and info["target"] == info.get(target)
        for by, (source, target) in _KEYS.items()
        if by != "backend"
    )


class TransitionMatrix(LiteWidget):
    """Where copies and casts happen; a click on a cell selects the copies behind it.

    profile  data.Profile. Copies say `source` and `target` backend, and optionally
             source_precision/target_precision and source_layout/target_layout.
    by       "backend", "precision" or "layout"; a profile without copies between backends is
             shown by what its copies change.
    cells    [{"source", "target", "ms", "names"}], made from the profile.
    """

    profile = Plain(rows="layers", need=("layers",))
    by = t.Enum(["backend", "precision", "layout"], "backend")
    cells = t.List(t.Dict())

    @t.observe("profile")
    def _regroup(self, _change: Any) -> None:
        if not self._cells(self.by):
            self.by = next((by for by in _KEYS if self._cells(by)), self.by)
        self._count(None)

    @t.observe("by")
    def _count(self, _change: Any) -> None:
        self.cells = self._cells(self.by)

    def _cells(self, by: str) -> list[dict[str, Any]]:
        cells: dict[tuple[str, str], dict[str, Any]] = {}
        for row in (self.profile or {}).get("layers", []):
            info = row.get("copy") or {}
            source, target = (info.get(key) for key in _KEYS[by])
            if not source or not target or source == target:
                continue
            if by == "backend" and _inside_a_backend(info):
                continue
            empty = {"source": source, "target": target, "ms": 0.0, "names": []}
            cell = cells.setdefault((source, target), empty)
            cell["ms"] += row.get("median_ms") or 0.0
            cell["names"].append(row["name"])
        return sorted(cells.values(), key=lambda c: (c["source"], c["target"]))

    def static_html(self) -> str:
        """Return the list of cells, or nothing: a head without rows says nothing."""
        if not self.cells:
            return ""
        rows = [[c["source"], c["target"], number(c["ms"]), len(c["names"])] for c in self.cells]
        return table([tr("From"), "To", "ms", tr("Copies")], rows) + self._static_caption()
