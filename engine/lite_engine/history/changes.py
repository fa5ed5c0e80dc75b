"""Two profiles side by side: which layers became faster or slower, adding up exactly.

Layers are aligned through the nodes of the original model that they came from, so that one fused
kernel stands against the several that replaced it, whatever they are called. Times are whole
nanoseconds: the bars of the waterfall add up to the totals without a rest.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any

from lite_messages import tr, trn

from .._deprecated import deprecated_name
from ..compare.alignment import plain_node
from ..display import Displayed
from ..errors import UsageError
from ..profile import LayerTime, Profile
from ..runtime.answer import as_dict

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


@dataclass
class Change:
    """A group of layers on either side that computes the same part of the model. `kind`:
    "changed", "new" (only after), "gone" (only before), "outside" (not in any layer).
    `instructions` were executed before and after, where both sides were emulated and count them."""

    name: str
    kind: str
    before: list[str]
    after: list[str]
    sources: list[str]
    before_ns: int
    after_ns: int
    kernels: list[str] = field(default_factory=list)
    instructions: tuple[int, int] | None = None

    @property
    def delta_ns(self) -> int:
        return self.after_ns - self.before_ns


@dataclass(repr=False)
class ProfileChange(Displayed):
    """From one total to the other. The `changes` are sorted by contribution and their `delta_ns`
    add up to `after_ns` − `before_ns` exactly. Where both sides were emulated, times mean nothing
    and `instructions`, executed in one run before and after, are there and decide the order.
    `warnings` say what the numbers do not mean."""

    baseline: str
    candidate: str
    before_ns: int
    after_ns: int
    changes: list[Change]
    warnings: list[str] = field(default_factory=list)
    instructions: tuple[int, int] | None = None
    times_meaningful: bool = True

    @property
    def growth_percent(self) -> float:
        """How much more the second run took: time, or executed instructions. Raises UsageError
        where one of the two was emulated, or both without counts."""
        if self.instructions is None and not self.times_meaningful:
            raise UsageError(
                tr(
                    "{baseline} and {candidate} cannot be compared: emulated runs "
                    "have no meaningful times",
                    baseline=self.baseline,
                    candidate=self.candidate,
                ),
                fix=tr(
                    "use two emulated runs, which count executed instructions, or two on a device"
                ),
            )
        before, after = self.instructions or (self.before_ns, self.after_ns)
        return 100 * (after / max(before, 1) - 1)

    @property
    def headline(self) -> str:
        said = f"{self.baseline} → {self.candidate}"
        if self.instructions is None and not self.times_meaningful:
            return f"{said}: " + tr("times are not meaningful")
        before, after = f"{self.before_ns / 1e6:.3g} ms", f"{self.after_ns / 1e6:.3g} ms"
        if self.instructions is not None:
            before, after = (
                tr("{count:,} instructions", count=count) for count in self.instructions
            )
        return f"{said}: {before} → {after} ({self.growth_percent:+.1f} %)"

    def table(self) -> tuple[list[str], list[list[Any]]]:
        heads = [tr("layers"), "", tr("before, ms"), tr("after, ms"), tr("difference, ms")]
        return heads, [
            [c.name, c.kind, c.before_ns / 1e6, c.after_ns / 1e6, c.delta_ns / 1e6]
            for c in self.changes
        ]

    def figure(self) -> Figure:
        """A plotly Figure: the waterfall from one total to the other. Raises LiteError without
        plotly."""
        from ..figures import histories

        return histories.waterfall(self.to_dict())

    def waterfall(self, most: int = 12) -> list[tuple[str, int]]:
        """(name, delta in ns) of the largest changes and one bar of the others."""
        bars = [(c.name, c.delta_ns) for c in self.changes[:most]]
        rest = self.changes[most:]
        if rest:
            bars.append(
                (tr("{smaller} smaller changes", smaller=len(rest)), sum(c.delta_ns for c in rest))
            )
        return bars

    a = deprecated_name("a", "baseline")
    b = deprecated_name("b", "candidate")

    def to_dict(self) -> dict[str, Any]:
        rows = [{**as_dict(c), "delta_ns": c.delta_ns} for c in self.changes]
        return {**as_dict(replace(self, changes=[])), "changes": rows}


def changes(before: Profile, after: Profile) -> ProfileChange:
    """Aligns and subtracts two profiles, of one model or of two forms of it."""
    groups = align(before.layers, after.layers)
    rows = [_change(old, new) for old, new in groups]
    totals = [_ns(p.total_ms["median"]) for p in (before, after)]
    inside = [sum(r.before_ns for r in rows), sum(r.after_ns for r in rows)]
    rows.append(
        Change(tr("outside the layers"), "outside", [], [], [], totals[0] - inside[0],
               totals[1] - inside[1])
    )  # fmt: skip
    rows.sort(key=_size, reverse=True)
    labels = _labels(before, after)
    counted = None
    if before.instructions and after.instructions:
        counted = before.instructions["run"], after.instructions["run"]
    return ProfileChange(
        *labels, totals[0], totals[1], rows, _warnings(before, after, rows), counted,
        times_meaningful=before.times_meaningful and after.times_meaningful,
    )  # fmt: skip


def _size(change: Change) -> int:
    if change.instructions is not None:
        return abs(change.instructions[1] - change.instructions[0])
    return abs(change.delta_ns)


def align(
    before: Sequence[LayerTime], after: Sequence[LayerTime]
) -> list[tuple[list[LayerTime], list[LayerTime]]]:
    """Groups of layers that share source nodes, directly or through each other, in the order of
    `after`; layers without a partner stand alone. Layers without sources (copies, layout changes)
    match by what they move. Where no source is shared (one network in two formats), layers match
    in their order, by operator, multiply-adds and shape."""
    root: dict[Any, Any] = {}

    def find(x: Any) -> Any:
        while root.setdefault(x, x) != x:
            root[x] = root[root[x]]
            x = root[x]
        return x

    rows = [("a", i, x) for i, x in enumerate(before)] + [("b", i, x) for i, x in enumerate(after)]
    for side, i, row in rows:
        for key in _keys(row):
            root[find(("row", side, i))] = find(key)
    for i, j in _in_order(before, after):
        root[find(("row", "a", i))] = find(("row", "b", j))
    groups: dict[Any, tuple[list[LayerTime], list[LayerTime]]] = {}
    for side, i, row in reversed(rows):  # later profile first: its order is the answer's
        group = groups.setdefault(find(("row", side, i)), ([], []))
        group[0 if side == "a" else 1].insert(0, row)
    return sorted(groups.values(), key=lambda g: (g[1] or g[0])[0].index)


def _in_order(before: Sequence[LayerTime], after: Sequence[LayerTime]) -> list[tuple[int, int]]:
    """Places of equal layers in the longest common order, when no name is shared and they are most
    of the model: two networks have a few in common too."""
    keys = [[key for x in rows for key in _keys(x)] for rows in (before, after)]
    if any(kind == "source" and (kind, name) in keys[1] for kind, name in keys[0]):
        return []
    a, b = ([(x.op, x.macs, str(x.output_shapes)) for x in rows] for rows in (before, after))
    blocks = SequenceMatcher(None, a, b, autojunk=False).get_matching_blocks()
    found = [(x.a + k, x.b + k) for x in blocks for k in range(x.size)]
    found = [(i, j) for i, j in found if before[i].macs]
    enough = 2 * sum(before[i].macs for i, _ in found) > sum(x.macs for x in before)
    return found if enough else []


def _keys(row: LayerTime) -> list[tuple[str, str]]:
    if row.sources:
        return [("source", plain_node(s)) for s in row.sources]
    return [("move", row.name)] if row.overhead else [("layer", row.name)]


def _change(old: list[LayerTime], new: list[LayerTime]) -> Change:
    there = new or old
    largest = max(there, key=lambda r: r.median_ms)
    others = tr(" + {count} more", count=len(there) - 1) if len(there) > 1 else ""
    sources = dict.fromkeys(s for r in (*old, *new) for s in r.sources)
    kernels = [" + ".join(dict.fromkeys(r.kernel for r in side)) for side in (old, new) if side]
    before, after = (sum(r.instructions or 0 for r in side) for side in (old, new))
    counted = all(r.instructions is not None for r in (*old, *new))
    return Change(
        largest.name + others,
        "changed" if old and new else "new" if new else "gone",
        [r.name for r in old],
        [r.name for r in new],
        list(sources),
        sum(_ns(r.median_ms) for r in old),
        sum(_ns(r.median_ms) for r in new),
        kernels,
        (before, after) if counted else None,
    )


def _ns(ms: float) -> int:
    return round(ms * 1e6)


def _labels(before: Profile, after: Profile) -> tuple[str, str]:
    """What each was measured on; device, processor and engine where they are not the same."""
    told = []
    for p in (before, after):
        engine = p.environment.get("engine")
        told.append(
            [p.device, p.environment.get("cpu"), engine and tr("engine {version}", version=engine)]
        )
    labels = []
    for p, own in zip((before, after), told, strict=True):
        threads = trn("{n} thread", "{n} threads", p.threads)
        others = [str(x) for x, a, b in zip(own, *told, strict=True) if x and a != b]
        labels.append(
            tr(
                "{model} on {backend} ({value})",
                model=p.model,
                backend=p.backend,
                value=", ".join([p.precision, threads, *others]),
            )
        )
    return labels[0], labels[1]


def _warnings(before: Profile, after: Profile, rows: Sequence[Change]) -> list[str]:
    out = []
    emulated = [p for p in (before, after) if not p.times_meaningful]
    if emulated:
        names = tr(" and ").join(
            tr("{model} on {backend}", model=p.model, backend=p.backend) for p in emulated
        )
        out.append(
            tr("{names} ran under emulation: these times are not those of a board", names=names)
        )
        if len(emulated) == 2 and before.instructions and after.instructions:
            counts = before.instructions["run"], after.instructions["run"]
            out.append(
                tr(
                    "executed instructions: {before:,} before, {after:,} after",
                    before=counts[0],
                    after=counts[1],
                )
            )
    if not any(c.kind == "changed" for c in rows):
        out.append(tr("the two profiles have no layer in common"))
    noise = max(before.rankable_us, after.rankable_us)
    if noise and not emulated:
        out.append(tr("changes of less than {noise:.1f} µs in a layer may be noise", noise=noise))
    return out
