"""Run: what does the model say, on each backend?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.runtime import usability
from lite_engine.runtime.shares import sentence
from lite_messages import tr
from lite_widgets import DataTable, DropZone, ResultCard, columns

from ..answer_difference import mark_different, masked
from ..answers import Run
from ..inputs import is_guessed, is_picture, save_upload
from ..recipes import RecipeAnswer, recipe_answers
from ..words import listed
from ._base import Step, button
from ._picture import choices, chosen, prepare

_NAMES = {"opencl": "OpenCL"}
_GUESSED = tr(
    "the model does not define its image preprocessing: pixels were scaled to "
    "0…1; change it with Pixels above, or with session.prepare"
)
_WHERE = tr("A comparison layer by layer shows where the difference begins.")
_FIRST = tr("Drop an image, or arrays (.npy, .npz). Without an input, random data is used.")


class RunStep(Step):
    """A picture in, one answer per backend out; answers that differ offer the comparison."""

    name = "Run"
    title = tr("What does it predict?")

    def build(self) -> None:
        self.drop = DropZone(
            label=tr("Drop or choose an image…"), accept="image/*,.npy,.npz,.wav", preview=True,
            choices=[[str(p), p.name] for p in pictures(self.session.path)],
        )  # fmt: skip
        self.drop.on_file(lambda name, data: self.guard(lambda: self._picture(name, data)))
        self.drop.observe(self._picked, names=["picked"])
        self.cards = {name: ResultCard(backend=name, title=_title(name)) for name in self._sides()}
        self.recipes = DataTable(title=tr("With each usual preprocessing"), note=_GUESSED)
        self.recipes.layout.display = "none"
        self._source: str | None = None
        self._copied = ""  # where a dropped file lies
        self.jobs_changed()
        self.header.observe(lambda _: self.guard(self._prepare), ["values"])
        self.on(self.header, "run", lambda _: self._run())
        self.on(self.recipes, "use", lambda payload: self._choose(payload["how"]))
        self.on(self.notice, "compare", lambda _: self._to_comparison())
        self.follow("prepared", lambda _: self._ask())
        self.follow("run", self._answered)
        self.show(self.drop, self.recipes, columns(*self.cards.values()))
        for run in self.session.runs.values():
            self._answered(run)

    def _sides(self) -> list[str]:
        """At most two: the CPU first, then OpenCL or the reference."""
        from lite_engine.runtime import host_target

        targets = self.session.targets or [host_target(), "opencl"]
        good = [t for t in targets if t != "arm" or host_target() == "arm"]
        good = [t for t in good if usability(t).usable]
        return (good + ["reference"])[:2]

    # ---- input

    def _ask(self) -> None:
        """The choices of how a picture becomes the input, as they are now."""
        if not is_guessed(self.session.model):
            self.recipes.layout.display = "none"
        self.header.selects = choices(self.session)
        self.header.values = chosen(self.session) if self.header.selects else {}

    def _prepare(self) -> None:
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

    def _start(self, source: str | None) -> None:
        session = self.session
        self._source = source or self._source

        def work() -> None:
            first, *rest = self.cards
            if is_picture(source) and is_guessed(session.model):
                used = session.predictor(first)
                made = recipe_answers(used.model, used, source)
                self.on_main(lambda: self._list_recipes(made))
            session.run(source, backend=first)
            for name in rest:
                session.run(backend=name)

        self.start(tr("Running on {title}", title=_title(next(iter(self.cards)))), work)

    def _list_recipes(self, made: list[RecipeAnswer]) -> None:
        """Before the answers: the file does not say how images become numbers."""
        heads = {"meaning": tr("Pixels"), "text": tr("result"), "score": tr("score"), "why": "",
                 "use": ""}  # fmt: skip
        kinds = {"use": "action"}
        likely = tr("the file suggests it")
        with self.recipes.hold_sync():
            self.recipes.columns = [
                {"id": i, "head": head, "kind": kinds.get(i, "text")} for i, head in heads.items()
            ]
            self.recipes.rows = [
                {"meaning": r.meaning, "text": r.text, "why": likely if r.likely else "",
                 "score": "" if r.score is None else f"{r.score:.3f}",
                 "use": ["use", tr("Use"), {"how": r.preprocess}]}
                for r in made
            ]  # fmt: skip
        self.recipes.layout.display = None

    def _choose(self, how: str) -> None:
        """Keeps a recipe in every version, and runs the image again with it."""
        self.session.prepare(how)
        self._start(self._source)

    @property
    def shown(self) -> str:
        return listed(
            [tr("{title} at {clock}", title=_title(n), clock=self.session.clock('run', n))
             for n in self.cards if n in self.session.runs]
        )  # fmt: skip

    def jobs_changed(self) -> None:
        self._ask()
        self.header.buttons = [button("run", tr("Run"), primary=True, disabled=self.pending)]
        for name, card in self.cards.items():
            if name not in self.session.runs:
                card.status = self._empty(name)

    def _empty(self, name: str) -> dict[str, Any]:
        if self.pending:
            text = tr("The first run on a device compiles its kernels.")
            return {
                "kind": "empty",
                "title": tr("Running on {title}", title=_title(name)),
                "text": text,
            }
        return {"kind": "empty", "title": tr("Not run yet"), "text": _FIRST}

    # ---- answers

    def _answered(self, run: Run) -> None:
        card = self.cards.get(run.backend)
        if card is None:
            return
        self.header.note = self._input_name()
        runs = [self.session.runs[n] for n in self.cards if n in self.session.runs]
        if len(runs) == 2:
            one, other = runs
            self._judge(one, other, mark_different(one.answer, other.answer))
        masks = [made.answer.mask for made in runs]
        for i, made in enumerate(runs):
            self._fill(self.cards[made.backend], made, masks[1 - i] if len(runs) == 2 else None)

    def _input_name(self) -> str:
        return self._copied or (tr("random data") if not self.session.image else "")

    def _fill(self, card: ResultCard, run: Run, other: np.ndarray | None) -> None:
        """`other` is the mask of the other side."""
        confidence = run.answer.confidence
        with card.hold_sync():
            card.status = {}
            card.kind = run.answer.kind
            ran = sentence(run.shares, run.backend)
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
            mask, image = run.answer.mask, self.session.image or b""
            if image and mask is not None:
                image = masked(image, mask, other, run.answer.window)
            card.image = image

    def _judge(self, a: Run, b: Run, found: str) -> None:
        """`found` is what `mark_different` says of boxes and masks."""
        names = tr("{a} and {b}", a=_title(a.backend), b=_title(b.backend))
        guessed = self.session.image and is_guessed(self.session.model)
        doubt = tr("About the image: {guessed}.", guessed=_GUESSED) if guessed else ""
        bad = any(item.get("bad") for run in (a, b) for item in run.answer.items)
        same = a.answer.kind != "boxes" or not bad
        if a.answer.kind == "values" and not found:
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
            self.tell(
                "error",
                tr(
                    "**{names} outputs differ**: {one} and {other}.",
                    names=names,
                    one=a.text,
                    other=b.text,
                ),
                detail=" ".join(filter(None, (found and f"{found}.", _WHERE))),
                actions=[["compare", tr("Compare {names}", names=names), True]],
            )

    def _to_comparison(self) -> None:
        a, b = self.cards
        if (a, b) not in self.session.comparisons:
            self.session.start(
                tr("Comparing {a} and {b}", a=a, b=b), lambda: self.session.compare(a, b), "Compare"
            )
        self.go("Compare")


def _title(backend: str) -> str:
    return _NAMES.get(backend, backend)


def pictures(model: Path) -> list[Path]:
    """Images beside the model that share its name, then those in the working folder."""
    from lite_engine.preprocess import is_image

    beside = [p for p in sorted(model.parent.glob("*")) if is_image(p)]
    own = [p for p in beside if p.name.startswith(model.stem.split(".")[0])]
    here = [p for p in sorted(Path().glob("*")) if is_image(p)]
    found: dict[Path, Any] = dict.fromkeys([*own, *here])
    return list(found)[:20]
