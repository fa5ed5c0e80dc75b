"""Waterfall: from one total to another, the largest changes first."""

from __future__ import annotations

from typing import Any

import traitlets as t

from .._base import LiteWidget, Plain
from .._svg import INK, SOFT, Picture, nice, number, ramp

_LEFT, _ROW = 150, 22


def align(before: dict[str, Any], after: dict[str, Any]) -> list[dict[str, Any]]:
    """Match the rows of two profiles and return their changes, largest first.

    Rows match by name, then by common `sources` (one kernel may replace several). Returns
    [{"name", "names", "before_ms", "after_ms", "delta_ms", "kind"}], kind "changed", "new", "gone";
    `names` are the rows of `after` (or of `before` where gone). The sum of all `delta_ms` is the
    difference of the sums.
    """
    old = {row["name"]: row for row in before["layers"]}
    new = {row["name"]: row for row in after["layers"]}
    changes = [_change(name, [old.pop(name)], [new[name]]) for name in list(new) if name in old]
    rest = {name: row for name, row in new.items() if name not in {c["name"] for c in changes}}
    while rest:
        group, other = _overlapping(rest.pop(next(iter(rest))), rest, old)
        for row in group[1:]:
            rest.pop(row["name"])
        for row in other:
            old.pop(row["name"])
        changes.append(_change(group[0]["name"], other, group))
    changes += [_change(name, [row], []) for name, row in old.items()]
    return sorted(changes, key=lambda change: -abs(change["delta_ms"]))


def _overlapping(row: dict, new: dict[str, dict], old: dict[str, dict]) -> tuple[list, list]:
    """Return the closed set of rows on both sides that share sources with `row`."""
    group, other, sources = [row], [], set(row.get("sources") or [])
    grown = True
    while grown:
        grown = False
        for side, rows in ((group, new), (other, old)):
            for candidate in rows.values():
                theirs = set(candidate.get("sources") or [])
                if candidate not in side and theirs & sources:
                    side.append(candidate)
                    sources |= theirs
                    grown = True
    return group, other


def _change(name: str, old: list[dict], new: list[dict]) -> dict[str, Any]:
    was = sum(row.get("median_ms") or 0.0 for row in old)
    now = sum(row.get("median_ms") or 0.0 for row in new)
    kind = "changed" if old and new else "new" if new else "gone"
    names = [row["name"] for row in (new or old)]
    return {"name": name, "names": names, "before_ms": was, "after_ms": now,
            "delta_ms": now - was, "kind": kind}  # fmt: skip


class Waterfall(LiteWidget):
    """Why 12.4 became 9.1 ms: one bar per changed layer, the small ones together.

    before, after  data.Profile; matched by name, then by the source nodes they came from.
    changes        what `align` returns; made from the two profiles.
    most           how many changes have a bar of their own.
    runs           [[id, text]] that can be `before`; against: the chosen id, set by the choice.
    """

    before = Plain(rows="layers", need=("layers",))
    after = Plain(rows="layers", need=("layers",))
    changes = t.List(t.Dict())
    most = t.Int(12)
    runs = t.List(t.List(t.Unicode()))
    against = t.Unicode("")
    title = t.Unicode("What changed")

    @t.observe("before", "after")
    def _align(self, _change: Any) -> None:
        both = self.before and self.after
        self.changes = align(self.before, self.after) if both else []

    def static_svg(self) -> str | None:
        """Return the bars of the largest changes between the two totals."""
        if not self.before or not self.after:
            return None
        bars = self.changes[: self.most]
        start = sum(row["median_ms"] for row in self.before["layers"])
        end = sum(row["median_ms"] for row in self.after["layers"])
        rest = end - start - sum(bar["delta_ms"] for bar in bars)
        steps = [(b["name"], b["delta_ms"]) for b in bars]
        if len(self.changes) > len(bars):
            steps.append((f"{len(self.changes) - len(bars)} more", rest))
        picture = Picture(640, _ROW * (len(steps) + 2) + 16, "What changed")
        scale = 400 / nice(max(start, end) * 1.05)
        names = [self.before.get("backend", "before"), self.after.get("backend", "after")]
        at = start
        picture.text(_LEFT - 6, 20, names[0], anchor="end", fill=INK)
        picture.rect(_LEFT, 8, start * scale, 16, SOFT)
        picture.text(_LEFT + start * scale + 6, 20, f"{number(start)} ms", fill=INK)
        for i, (name, delta) in enumerate(steps):
            y = 8 + _ROW * (i + 1)
            low = min(at, at + delta)
            picture.text(_LEFT - 6, y + 12, name[:24], anchor="end")
            fill = ramp("change", 0.95 if delta > 0 else 0.05)
            picture.rect(_LEFT + low * scale, y, max(abs(delta) * scale, 1), 16, fill)
            sign = "+" if delta > 0 else ""
            picture.text(_LEFT + max(at, at + delta) * scale + 6, y + 12, sign + number(delta))
            at += delta
        y = 8 + _ROW * (len(steps) + 1)
        picture.text(_LEFT - 6, y + 12, names[1], anchor="end", fill=INK)
        picture.rect(_LEFT, y, end * scale, 16, SOFT)
        picture.text(_LEFT + end * scale + 6, y + 12, f"{number(end)} ms", fill=INK)
        return str(picture)
