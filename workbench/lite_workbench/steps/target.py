"""Target: what can run here, and how to fix what cannot."""

from __future__ import annotations

from typing import Any

from lite_widgets import DoctorCards

from ._base import Step, button

_CHECK = {"x86": "CPU engine", "opencl": "OpenCL", "arm": "ARM emulator"}
_TITLE = {
    "x86": "x86 CPU, this machine",
    "arm": "arm CPU, emulated",
    "opencl": "OpenCL, this machine",
}


class TargetStep(Step):
    """One card per target; the ticked ones are converted for."""

    name = "Target"
    title = "What can run here?"

    def build(self) -> None:
        self.cards = DoctorCards(choose=True)
        self.on(self.cards, "again", lambda _: self._look())
        self.on(self.header, "again", lambda _: self._look())
        self.on(self.header, "use", lambda _: self._use())
        self.cards.observe(lambda _: self._buttons(), names=["chosen"])
        self.show(self.cards)
        self._look()

    def _look(self) -> None:
        examination = self.session.examine()
        checks = {c.name: c for c in examination.checks}
        self.cards.cards = [
            _card(target, checks[name], examination.backends.get(target, False))
            for target, name in _CHECK.items()
            if name in checks
        ]
        usable = [c["id"] for c in self.cards.cards if c["state"] != "broken"]
        self.cards.chosen = [t for t in self.session.targets if t in usable] or usable
        self.header.note = f"{len(usable)} of {len(self.cards.cards)} targets ready"
        self._buttons()

    def _buttons(self) -> None:
        count = len(self.cards.chosen)
        self.header.buttons = [
            button("again", "Check all again"),
            button("use", f"Use {count} targets", primary=True, disabled=not count),
        ]

    def _use(self) -> None:
        chosen = [c["id"] for c in self.cards.cards if c["id"] in self.cards.chosen]
        self.start("Converting", lambda: self.session.convert(targets=chosen))
        self.go("Convert")


def _card(target: str, check: Any, usable: bool) -> dict:
    emulated = target == "arm" and check.name == "ARM emulator"
    facts = [["Found", check.summary]]
    known = check.facts or {}
    facts += [
        [label, str(known[key])]
        for label, key in (("Processor", "cpu"), ("Cores", "cores"), ("Memory", "memory"))
        if known.get(key)
    ]
    if emulated:
        facts += [["Numbers", "as on a board"], ["Time", "not meaningful here"]]
    card: dict = {
        "id": target, "title": _TITLE[target], "backend": target, "facts": facts,
        "state": ("limited" if emulated else "ready") if usable else "broken",
        "chip": ("no times" if emulated else "ready") if usable else "needs a fix",
    }  # fmt: skip
    if not usable:
        tried = [["–", *[str(v) for v in list(t.values())[:2]]] for t in check.tried]
        card["notice"] = {
            "kind": "error", "what": f"**{check.name}**: {check.summary}", "fix": check.fix,
            "again": "I did this, check again", "tried": tried,
        }  # fmt: skip
    return card
