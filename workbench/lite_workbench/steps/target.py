"""Target: what can run here and on the boards, and how to fix what cannot."""

from __future__ import annotations

from functools import partial
from typing import Any

from lite_engine.devices import DeviceCheck, DeviceNameError
from lite_engine.errors import LiteError
from lite_messages import tr, trn
from lite_widgets import DoctorCards, Form

from ._base import Step, button

_CHECK = {"x86": tr("CPU engine"), "opencl": "OpenCL", "arm": tr("ARM emulator")}
_TITLE = {
    "x86": tr("x86 CPU, this machine"),
    "arm": tr("ARM CPU, emulated"),
    "opencl": tr("OpenCL, this machine"),
}
_FIELDS = [
    {
        "name": "address",
        "label": tr("Address"),
        "hint": tr("ssh://pi@192.168.1.20 or adb://SERIAL"),
    },
    {"name": "name", "label": tr("Name"), "hint": "rock5b"},
    {
        "name": "ssh_config",
        "label": tr("OpenSSH configuration"),
        "hint": "~/.ssh/config",
        "optional": True,
    },
]
#: What a failed stage means.
_FAILED = {
    "reach": tr("Cannot reach the board"),
    "copy": tr("Cannot copy the files to the board"),
    "run": tr("The run on the board failed"),
    "fetch": tr("Cannot fetch the results"),
}
_STATES = {"done": "done", "failed": "attention", "running": "running", "skipped": "todo"}


class TargetStep(Step):
    """One card per target and board; the ticked targets are converted for."""

    name = "Target"
    title = tr("What can run here?")

    def build(self) -> None:
        self.cards = DoctorCards(choose=True)
        self.form = Form(
            title=tr("Add a board"),
            fields=_FIELDS,
            button=tr("Add and check"),
            note=tr(
                "Your own SSH keys and configuration are used. Only the runner is "
                "copied to the board, to `~/.cache/lite-workbench`."
            ),
        )
        self.form.layout.display = "none"
        self._here: list[dict[str, Any]] = []
        self._boards: dict[str, Any] = {}  # name → DeviceCheck, None before the first
        self._reaching: set[str] = set()
        self.on(self.header, "add", lambda _: self._open_form(True))
        self.on(self.form, "close", lambda _: self._open_form(False))
        self.on(self.form, "submit", self._add)
        self.on(self.cards, "again", self._again)
        self.on(self.cards, "remove", self._remove)
        self.on(self.cards, "use", lambda payload: self._use_board(payload["card"]))
        self.on(self.cards, "leave", lambda _: self._use_board(""))
        self.on(self.header, "again", lambda _: self._look())
        self.on(self.header, "use", lambda _: self._use())
        self.cards.observe(lambda _: self._buttons(), names=["chosen"])
        self.follow("targets", lambda _: self._draw())
        self.follow("versions", lambda _: self._buttons())
        self.show(self.form, self.cards)
        self._boards = dict.fromkeys(entry.name for entry in self.session.boards)
        self._look()

    # ---- this machine

    def _look(self) -> None:
        examination = self.session.examine()
        checks = {c.name: c for c in examination.checks}
        self._here = [
            _card(target, checks[name], examination.backends.get(target, False))
            for target, name in _CHECK.items()
            if name in checks
        ]
        self._draw()
        usable = self._usable()
        self.cards.chosen = [t for t in self.session.targets if t in usable] or usable
        self._buttons()
        if self._boards and not self.pending:
            self._check(*self._boards)

    def _usable(self) -> list[str]:
        return [c["id"] for c in self._here if c["state"] != "broken"]

    def _draw(self) -> None:
        entries = {e.name: e for e in self.session.boards}
        used = self.session.boards.used
        boards = [
            _board(entries[name], check, used=name == used, reaching=name in self._reaching)
            for name, check in self._boards.items()
            if name in entries
        ]
        self.cards.cards = [*self._here, *boards]
        ready = sum(c["state"] in ("ready", "limited") for c in self.cards.cards)
        self.header.note = tr("{ready} of {all} ready", ready=ready, all=len(self.cards.cards))

    @property
    def _chosen(self) -> list[str]:
        return [c["id"] for c in self._here if c["id"] in self.cards.chosen]

    @property
    def _in_use(self) -> bool:
        """Was the model converted for what is chosen?"""
        return set(self._chosen) == set(self.session.targets)

    def _buttons(self) -> None:
        count = len(self.cards.chosen)
        use = tr("Use {targets}", targets=trn("{n} target", "{n} targets", count))
        self.header.buttons = [
            button("add", tr("Add a board…")),
            button("again", tr("Check all again")),
            button(
                "use",
                tr("Convert") if count and self._in_use else use,
                primary=True,
                why_not="" if count else tr("No target is chosen."),
            ),
        ]

    def _use(self) -> None:
        chosen = self._chosen
        if not self._in_use:
            self.begin(tr("Converting"), lambda: self.session.convert(targets=chosen), "Convert")
        self.go("Convert")

    # ---- boards

    def _open_form(self, opened: bool) -> None:
        self.form.layout.display = None if opened else "none"

    def _add(self, payload: dict[str, Any]) -> None:
        values = {k: str(v) for k, v in payload["values"].items()}
        try:
            entry = self.session.boards.add(values["name"], values["address"], values["ssh_config"])
        except LiteError as error:
            self.form.values = values
            said = ": ".join(filter(None, (error.what, error.fix)))
            self.form.errors = {_field_of(error, values): said}
            return
        self.form.errors = {}
        self._boards[entry.name] = None
        self._open_form(False)
        self.form.values = {}
        self._check(entry.name)

    def _check(self, *names: str) -> None:
        """Reaches boards in the background, one card after the other."""

        def work() -> None:
            for number, name in enumerate(names):
                self.session.progress(number, len(names))
                self.on_main(partial(self._checked, name, self.session.boards.check(name)))

        self._reaching.update(names)
        self.start(tr("Checking {names}", names=", ".join(names)), work)
        self._draw()

    def _checked(self, name: str, made: DeviceCheck) -> None:
        self._boards[name] = made
        self._reaching.discard(name)
        self._draw()

    def jobs_changed(self) -> None:
        """Boards whose check was cancelled are not being reached any more."""
        if not self.pending and self._reaching:
            self._reaching.clear()
            self._draw()

    def _again(self, payload: dict[str, Any]) -> None:
        card = payload.get("card", "")
        if card in self._boards:
            self._check(card)
        else:
            self._look()

    def _remove(self, payload: dict[str, Any]) -> None:
        self.session.boards.remove(payload["card"])
        self._boards.pop(payload["card"], None)
        self._draw()

    def _use_board(self, name: str) -> None:
        where = name or tr("this machine")
        self.start(tr("Reaching {where}", where=where), lambda: self.session.boards.use(name))


def _field_of(error: LiteError, values: dict[str, str]) -> str:
    """The field that an error of `Boards.add` is about."""
    if error.where and error.where == values["ssh_config"]:
        return "ssh_config"
    return "name" if isinstance(error, DeviceNameError) else "address"


def _card(target: str, check: Any, usable: bool) -> dict[str, Any]:
    emulated = target == "arm" and check.name == _CHECK["arm"]
    facts = [[tr("Found"), check.summary]]
    known = check.facts or {}
    facts += [  # what the first does not say
        [label, str(known[key])]
        for label, key in (
            (tr("Processor"), "cpu"),
            (tr("Cores"), "cores"),
            (tr("Memory"), "memory"),
        )
        if known.get(key) and str(known[key]) not in check.summary
    ]
    card: dict[str, Any] = {
        "id": target, "title": _TITLE[target], "backend": target, "facts": facts,
        "state": ("limited" if emulated else "ready") if usable else "broken",
        "chip": (tr("emulated") if emulated else tr("ready")) if usable else tr("not available"),
    }  # fmt: skip
    if not usable:
        tried = [["–", *[str(v) for v in list(t.values())[:2]]] for t in check.tried]
        card["notice"] = {
            "kind": "error", "what": f"**{check.name}**: {check.summary}", "detail": check.fix,
            "fix": check.command, "again": tr("Check again"), "tried": tried,
        }  # fmt: skip
    return card


def _board(entry: Any, check: Any, *, used: bool, reaching: bool) -> dict[str, Any]:
    """A card of a kept device; `check` is None before the first."""
    kind = "adb" if entry.address.startswith("adb") else "ssh"
    card: dict[str, Any] = {
        "id": entry.name,
        "title": tr("{device}, over {kind}", device=entry.name, kind=kind),
        "backend": "arm",
        "facts": [[tr("Address"), entry.address]],
        "tick": False,
        "state": "running" if reaching else "limited",
        "chip": "checking" if reaching else tr("not checked"),
        "actions": [] if reaching else [["again", "Check"], ["remove", tr("Remove")]],
    }
    if check is None or reaching:
        return card
    told = check.environment
    facts = [
        [tr("Board"), told.get("model")],
        [
            tr("Target"),
            check.target
            and tr(
                "{target} with {features}", target=check.target, features=" ".join(check.features)
            ),
        ],
        [
            tr("Memory"),
            told.get("memory_total_bytes") and f"{told['memory_total_bytes'] / 1e9:.1f} GB",
        ],
        [tr("Clock"), _clock(told)],
        ["OpenCL", check.opencl and "; ".join(check.opencl.lines())],
    ]
    card["facts"] += [[name, str(text)] for name, text in facts if text]
    card["stages"] = [
        {"name": s.name, "state": _STATES[s.state], "seconds": s.ms / 1e3, "detail": s.detail}
        for s in check.stages
    ]
    if check.good:
        card.update(state="ready", chip=tr("in use") if used else tr("ready"), backend=check.target)
        runs = [check.target]
        if check.opencl and check.opencl.chosen:
            runs.append("OpenCL")
        own = (
            ["leave", tr("Use this machine")]
            if used
            else ["use", tr("Run {target} here", target=", ".join(runs))]
        )
        card["actions"] = [own, ["remove", tr("Remove")]]
        return card
    error = check.failure
    failed = next((s.name for s in check.stages if s.state == "failed"), "")
    stage = (
        tr("**{device}: {failure}.** ", device=entry.name, failure=_FAILED.get(failed, failed))
        if failed
        else ""
    )
    card.update(state="broken", chip=tr("not available"))
    card["notice"] = {
        "kind": "error", "what": f"{stage}{error.what}", "detail": error.fix, "fix": error.command,
        "again": tr("Check again"),
    }  # fmt: skip
    return card


def _clock(told: dict[str, Any]) -> str:
    top = told.get("max_frequency_khz")
    governor = told.get("governor", "")
    return f"{top / 1e6:.2f} GHz {governor}".strip() if isinstance(top, int) else ""
