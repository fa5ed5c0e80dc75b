"""Run: what does the model say, on each backend?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.errors import LiteError, ShapeError
from lite_engine.runtime import usability
from lite_engine.runtime.shares import sentence
from lite_messages import tr
from lite_widgets import DropZone, ResultCard, columns

from ..answer_difference import mark_different, masked
from ..answers import Run
from ..inputs import is_guessed, save_upload, takes_images
from ..state.comparisons import backend_and_version
from ..words import listed
from ._base import COLOURED, UNDER_WAY, Step, button, side_name, sides
from ._inputs import InputsPanel
from ._picture import choices, chosen, prepare
from ._recipes import GUESSED, RecipesPanel

_WHERE = tr("A comparison layer by layer shows where the difference begins.")
_FIRST = tr("Drop an image, or arrays (.npy, .npz, .csv). Without an input, random data is used.")
_FIRST_ARRAYS = tr("Drop arrays (.npy, .npz, .csv). Without an input, random data is used.")


class RunStep(Step):
    """A picture in, one answer per backend out; answers that differ offer the comparison."""

    name = "Run"
    title = tr("What does it predict?")

    def build(self) -> None:
        self.drop = DropZone(
            label=tr("Drop or choose an image…") if self._sees else tr("Drop or choose a file…"),
            preview=True,
            accept=f"{'image/*,' if self._sees else ''}.npy,.npz,.csv,.wav",
            choices=[[str(p), p.name] for p in pictures(self.session.path)] if self._sees else [],
        )  # fmt: skip
        self.drop.on_file(lambda name, data: self.guard(lambda: self._picture(name, data)))
        self.drop.observe(self._picked, names=["picked"])
        self._pair = (ResultCard(), ResultCard())
        self.cards: dict[str, ResultCard] = {}
        self._made: dict[str, Run] = {}  # side → what it answered last
        self._source: str | None = None
        self.recipes = RecipesPanel(self, lambda: self._start(self._source), self._likely_image)
        self.inputs = InputsPanel(self, self._use_input)
        self._copied = ""  # where a dropped file lies
        self.header.values = dict(zip("ab", self._usual(), strict=True))
        self._ask()
        self._choose_sides()
        self.header.observe(lambda _: self.guard(self._changed), ["values"])
        self.on(self.header, "run", lambda _: self._run())
        self.on(self.header, "inputs", lambda _: self.inputs.open())
        self.on(self.notice, "inputs", lambda _: self.inputs.open())
        self.on(self.notice, "compare", lambda _: self._to_comparison())
        self.follow("prepared", lambda _: self._ask())
        self.follow("versions", lambda _: self._ask())
        self.follow("run", self._answered)
        self.show(self.drop, self.inputs.view, self.recipes.view, columns(*self._pair))

    @property
    def _sees(self) -> bool:
        return takes_images(self.session.graph)

    def _likely_image(self) -> str | None:
        """The image that was chosen, or the first that could be."""
        return self._source or next((path for path, _ in self.drop.choices), None)

    def _usual(self) -> list[str]:
        """The CPU first, then OpenCL or the reference."""
        from lite_engine.runtime import host_target

        targets = self.session.targets or [host_target(), "opencl"]
        good = [t for t in targets if t != "arm" or host_target() == "arm"]
        good = [t for t in good if usability(t).usable]
        return (good + ["reference"])[:2]

    def _choose_sides(self) -> None:
        """Shows the chosen pair: what it answered, or that it has not run."""
        usual = dict(zip("ab", self._usual(), strict=True))
        names = [self.header.values.get(which, usual[which]) for which in "ab"]
        if len(set(names)) == 1:
            names = [names[0], next(n for n in self._usual() if n != names[0])]
        if list(self.cards) == names:
            return
        self.header.values = {**self.header.values, **dict(zip("ab", names, strict=True))}
        self.cards = dict(zip(names, self._pair, strict=True))
        for name, card in self.cards.items():
            with card.hold_sync():
                card.backend = name if name in COLOURED else "x86"
                card.title = side_name(name)
                _blank(card)
        self.quiet()
        before, self._made = self._made, {}
        for name in names:
            if name in before:
                self._keep(name, before[name])
        for run in self.session.runs.values():
            self._answered(run)
        self._buttons()

    # ---- input

    def _ask(self) -> None:
        """The sides, and how a picture becomes the input, as they are now."""
        names = sides(self.session)
        kept = {w: v for w, v in self.header.values.items() if w in "ab" and v in names}
        values = {**dict(zip("ab", self._usual(), strict=True)), **kept}
        options = [[name, side_name(name)] for name in names]
        pictures = choices(self.session)
        self.header.selects = [
            *(
                {
                    "name": which,
                    "label": label,
                    "options": options,
                    "disabled": bool(self.session.jobs),
                    "why": UNDER_WAY,
                }
                for which, label in (("a", tr("Baseline")), ("b", tr("Candidate")))
            ),
            *pictures,
        ]
        self.header.values = {**values, **(chosen(self.session) if pictures else {})}

    def _changed(self) -> None:
        """Another side, or another way to prepare images."""
        self._choose_sides()
        try:
            changed = prepare(self.session, self.header.values)
        finally:
            self._ask()
        if changed and self._source:
            self._start(self._source)

    def _picture(self, name: str, data: bytes) -> None:
        path = save_upload(name, data)
        self._copied = tr("copied to {resolve}", resolve=path.resolve())
        self._start(str(path))

    def _picked(self, change: dict[str, Any]) -> None:
        if change["new"]:
            self._copied = ""
            self.guard(lambda: self._start(change["new"]))

    def _run(self) -> None:
        self._start(None)

    def _use_input(self) -> None:
        """The session has its input already."""
        self._copied, self._source = "", None
        self._start(None)

    def _start(self, source: str | None) -> None:
        session, names = self.session, list(self.cards)
        self._source = source or self._source

        def work() -> None:
            self.recipes.look(source, backend_and_version(session, names[0])[0])
            for number, name in enumerate(names):
                backend, version = backend_and_version(session, name)
                made = session.run(source if number == 0 else None, backend, version)
                self.on_main(lambda name=name, made=made: self._keep(name, made))  # type: ignore[misc]

        first, second = map(side_name, names)
        self.start(tr("Running on {a} and {b}", a=first, b=second), work)

    @property
    def shown(self) -> str:
        return listed(
            [tr("{title} at {clock}", title=side_name(n),
                clock=self.session.clock("run", self._made[n].backend))
             for n in self.cards if n in self._made]
        )  # fmt: skip

    def jobs_changed(self) -> None:
        self._ask()
        self._buttons()

    def _buttons(self) -> None:
        self.header.buttons = [
            button("inputs", tr("Inputs…"), why_not=self.waits),
            button("run", tr("Run"), primary=True, why_not=self.waits),
        ]
        for name, card in self.cards.items():
            if name not in self._made:
                _blank(card)
                card.status = self._empty(name)

    def _empty(self, name: str) -> dict[str, Any]:
        if self.pending:
            text = tr("The first run on a device compiles its kernels.")
            return {
                "kind": "empty",
                "under_way": True,
                "title": tr("Running on {title}", title=side_name(name)),
                "text": text,
            }
        if self._made:  # the other side has run, on an input that came later
            title = tr("{side} has not run on this input", side=side_name(name))
            return {"kind": "empty", "title": title, "text": ""}
        title = tr("{side} has not run yet", side=side_name(name))
        if any(
            r.backend == name and r.version != self.session.version
            for r in self.session.runs.values()
        ):
            title = tr("{side} has not run version {version} yet", side=side_name(name),
                       version=self.session.version)  # fmt: skip
        return {
            "kind": "empty",
            "title": title,
            "text": _FIRST if self._sees else _FIRST_ARRAYS,
        }

    def _ways_out(self, error: LiteError) -> list[list[Any]]:
        """What was given is not enough for a model of several inputs: all of them in a form."""
        found = super()._ways_out(error)
        if isinstance(error, ShapeError) and not found and len(self.session.graph.inputs) > 1:
            return [["inputs", tr("Set all inputs"), True]]
        return found

    # ---- answers

    def _answered(self, run: Run) -> None:
        """A run of the session, whoever asked for it, is that of the side with its backend."""
        if run.backend in self.cards and run.version == self.session.version:
            self._keep(run.backend, run)

    def _keep(self, side: str, run: Run) -> None:
        if side not in self.cards:
            return
        self._made[side] = run
        # An answer to an earlier input is neither compared with this one nor drawn on its image.
        self._made = {n: made for n, made in self._made.items() if self._still(n, made, run)}
        self._buttons()
        self.header.note = self._input_name()
        runs = {name: self._made[name] for name in self.cards if name in self._made}
        if len(runs) == 2:
            one, other = runs.values()
            self._judge(one, other, mark_different(one.answer, other.answer))
        masks = [made.answer.mask for made in runs.values()]
        for i, (name, made) in enumerate(runs.items()):
            self._fill(self.cards[name], made, masks[1 - i] if len(runs) == 2 else None)

    def _still(self, side: str, made: Run, newest: Run) -> bool:
        """Does what a side answered belong beside the newest answer?"""
        if side not in self.session.versions and made.version != self.session.version:
            return made is newest
        return made.same_input(newest)

    def _input_name(self) -> str:
        return self._copied or self.session.input_name

    def _fill(self, card: ResultCard, run: Run, other: np.ndarray | None) -> None:
        """`other` is the mask of the other side."""
        confidence = run.answer.confidence
        with card.hold_sync():
            card.status = {}
            card.kind = run.answer.kind
            ran = sentence(run.shares, run.backend, idle=run.idle)
            card.note = tr(
                "{precision} · {version} · one run {ms:.1f} ms · {ran}",
                precision=run.precision,
                version=run.version,
                ms=run.ms,
                ran=ran,
            )
            card.aside = (
                ""
                if confidence is None
                else tr("mean confidence {confidence:.2f}", confidence=confidence)
            )
            card.items = run.answer.items
            mask, image = run.answer.mask, run.image
            if image and mask is not None:
                image = masked(image, mask, other, run.answer.window)
            card.image = image

    def _judge(self, a: Run, b: Run, found: str) -> None:
        """`found` is what `mark_different` says of boxes and masks."""
        first, second = map(side_name, self.cards)
        names = tr("{a} and {b}", a=first, b=second)
        said = self.recipes.view.layout.display is None  # above the answers
        guessed = not said and a.image and is_guessed(self.session.model)
        doubt = tr("About the image: {guessed}.", guessed=GUESSED) if guessed else ""
        bad = any(item.get("bad") for run in (a, b) for item in run.answer.items)
        same = a.answer.kind != "boxes" or not bad
        one, other = (run.gist or tr("finite values") for run in (a, b))
        unlike = a.answer.kind != b.answer.kind or (not a.text and one != other)
        if unlike:
            self._tell_difference(names, one, other, _WHERE)
        elif a.answer.kind == "values" and not found:
            self.tell("warn", doubt) if doubt else self.quiet()
        elif a.answer.kind == "values":
            masks = [run.answer.mask for run in (a, b)]
            kind = "done" if np.array_equal(masks[0], masks[1]) else "warn"  # type: ignore[arg-type]
            self.tell(kind, tr("**{names}**: {found}", names=names, found=found), detail=doubt)
        elif a.text == b.text and same:
            self.tell(
                "done",
                tr("**{names} outputs agree**: {text}", names=names, text=a.text),
                detail=" ".join(filter(None, (found and f"{found}.", doubt))),
            )
        else:
            where = " ".join(filter(None, (found and f"{found}.", _WHERE)))
            self._tell_difference(names, one, other, where)

    def _tell_difference(self, names: str, one: str, other: str, detail: str) -> None:
        self.tell(
            "error",
            tr("**{names} outputs differ**: {one} and {other}.", names=names, one=one, other=other),
            detail=detail,
            actions=[["compare", tr("Compare {names}", names=names), True]],
        )

    def _to_comparison(self) -> None:
        a, b = self.cards
        if (a, b) not in self.session.comparisons:
            self.begin(
                tr("Comparing {a} and {b}", a=side_name(a), b=side_name(b)),
                lambda: self.session.compare(a, b),
                "Compare",
            )
        self.go("Compare")


def _blank(card: ResultCard) -> None:
    """Nothing of an earlier answer is left."""
    with card.hold_sync():
        card.image, card.items, card.note, card.aside = b"", [], "", ""


def pictures(model: Path) -> list[Path]:
    """Images beside the model that share its name, then those in the working folder."""
    from lite_engine.images import is_image

    beside = [p for p in sorted(model.parent.glob("*")) if is_image(p)]
    own = [p for p in beside if p.name.startswith(model.stem.split(".")[0])]
    here = [p for p in sorted(Path().glob("*")) if is_image(p)]
    found: dict[Path, Any] = dict.fromkeys([*own, *here])
    return list(found)[:20]
