"""What the passes did, and on request why they did not."""

from __future__ import annotations

from typing import Any, NamedTuple

from lite_messages import tr


class Entry(NamedTuple):
    """One rewrite or one refusal. `nodes` are names before, `result` names after."""

    rule: str
    action: str  # "rewrote" | "refused"
    nodes: tuple[str, ...]
    result: tuple[str, ...] = ()
    reason: str = ""

    def __str__(self) -> str:
        if self.action == "refused":
            return tr(
                "{rule}: not at {nodes}: {reason}",
                rule=self.rule,
                nodes=", ".join(self.nodes),
                reason=self.reason,
            )
        after = f" → {', '.join(self.result)}" if self.result else ""
        return f"{self.rule}: {' + '.join(self.nodes)}{after}"


class Journal:
    """Entries in order, and the size of the graph before and after each pass."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.passes: list[dict[str, Any]] = []
        self._refused: set[Entry] = set()

    def rewrote(self, rule: str, nodes: tuple[str, ...], result: tuple[str, ...] = ()) -> None:
        self.entries.append(Entry(rule, "rewrote", tuple(nodes), tuple(result)))

    def refused(self, rule: str, nodes: tuple[str, ...], reason: str) -> None:
        entry = Entry(rule, "refused", tuple(nodes), reason=reason)
        if entry not in self._refused:  # a sweep meets the same place again
            self._refused.add(entry)
            self.entries.append(entry)

    def refusals(self, node: str) -> list[Entry]:
        """Why rules left this node alone."""
        return [e for e in self.entries if e.action == "refused" and node in e.nodes]

    def to_dict(self) -> dict[str, Any]:
        return {"passes": self.passes, "entries": [e._asdict() for e in self.entries]}

    def __str__(self) -> str:
        return "\n".join(str(e) for e in self.entries)
