"""Check: does everything in the model run on the targets?"""

from __future__ import annotations

from typing import Any

from lite_widgets import DataTable, TypeSummary, columns

from ._base import Step, button

TARGETS = ("x86", "arm", "opencl")


class CheckStep(Step):
    """Operators by target: supported, or why not and what then; where the work is."""

    name = "Check"
    title = "Does it convert?"

    def build(self) -> None:
        info = self.session.info
        cells = {(s.op, s.target): s for s in info.support}
        rows = []
        for op, uses in info.operators.items():
            row: dict = {"op": op, "uses": uses}
            whys = []
            for target in TARGETS:
                state = cells[op, target]
                row[target] = True if state.supported else ["runs elsewhere", "warn"]
                if not state.supported:
                    whys.append(f"{target}: {state.reason} ({state.fix})")
            row["why"] = "; ".join(dict.fromkeys(whys))
            rows.append(row)
        self.table = DataTable(
            title="Operators",
            note=f"{len(rows)} kinds, {len(info.layers)} layers",
            columns=[
                {"id": "op", "head": "Operator", "kind": "code"},
                {"id": "uses", "head": "Uses", "kind": "number"},
                *({"id": t, "head": t, "kind": "check", "backend": t} for t in TARGETS),
                {"id": "why", "head": "Why not, and what then", "kind": "wrap"},
            ],
            rows=rows,
        )
        work = [
            {"name": x.name, "op": x.op, "index": x.index, "macs": x.macs or 0,
             "weight_bytes": x.weight_bytes, "kernel": ""}
            for x in info.layers
        ]  # fmt: skip
        self.types = TypeSummary(
            profile={"layers": work}, columns="cost", title="Where the work is"
        )
        self.header.buttons = [button("next", "Choose targets", primary=True)]
        self.on(self.header, "next", lambda _: self.go("Target"))
        if info.hints:
            self.tell("warn", f"**{_hints(info)}**", detail=" · ".join(info.hints))
        self.show(columns(self.table, self.types, kind="wide"))

    @staticmethod
    def result(session: object) -> tuple[str, str]:
        """State and three words for the stepper."""
        info = session.info  # type: ignore[attr-defined]
        missing = {s.op for s in info.support if not s.supported}
        if missing:
            return "attention", f"{len(missing)} ops elsewhere"
        return "done", _hints(info) if info.hints else "all supported"


def _hints(info: Any) -> str:
    return f"{len(info.hints)} hint{'s' * (len(info.hints) != 1)}"
