"""Evaluate: is it still right on labeled data, and which choice is best?"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lite_engine.errors import UsageError
from lite_messages import tr
from lite_widgets import DataTable, Form, Notice, ResultCard, Tabbed, columns

from ..answer_difference import masked
from ..answer_tables import class_tables, metrics_table, samples_table
from ..data_sets import data_sets
from ..evaluate import Evaluation
from ..inputs import feeds_of, png
from ..state.evaluations import sample_answers
from ._base import Step, button, side_name, sides, stack
from ._panels import RecommendPanel, SweepPanel
from ._recipes import COMPARE, RecipesPanel

NO_DATA = tr(
    "There is no labeled data set beside the model or in the current folder: choose one with "
    "Other data…, above."
)
LIMITS = ("100", "500", "2000")
_ALL, _NONE = "all", ""
#: Answers that stand beside each other for one sample.
SHOWN = 2


class EvaluateStep(Step):
    """A labeled data set through one or two sides: metrics with intervals, every sample, and for
    one of them both answers and the way to the layers. The sweep and the recommendation, which
    judge by the same data, are tabs."""

    name = "Evaluate"
    title = tr("How accurate is it on labeled data?")

    def build(self) -> None:
        self._typed: list[list[str]] = []
        self.form = Form(
            title=tr("Data set"), button=tr("Use"),
            fields=[
                {"name": "data", "label": tr("File or folder"), "hint": "val/"},
                {"name": "images", "label": tr("Folder of the images"), "optional": True},
            ],
            note=tr("A folder per class, a list of files and labels, `.npz`, COCO JSON, "
                    "Pascal VOC, `images` and `masks`, or a `.tsv` of text lines."),
        )  # fmt: skip
        self.form.layout.display = "none"
        self.metrics, self.samples = DataTable(), DataTable()
        self.classes, self.confused = DataTable(), DataTable()
        self.looked = Notice()
        self.cards = [ResultCard() for _ in range(SHOWN)]
        self.sweep, self.recommend = SweepPanel(), RecommendPanel()
        self.tabs = Tabbed({
            tr("Samples"): self.samples, tr("Classes"): stack(self.classes, self.confused),
            tr("Sweep"): self.sweep.box, tr("Recommendation"): self.recommend.box,
        })  # fmt: skip
        self._look_around()
        self.on(self.header, "run", lambda _: self._run())
        self.on(self.header, "other", lambda _: self._open_form(True))
        self.on(self.form, "close", lambda _: self._open_form(False))
        self.on(self.form, "submit", lambda payload: self._use(payload["values"]))
        self.on(self.samples, "sample", lambda payload: self._look(payload["sample"]))
        self.on(self.looked, "layers", lambda payload: self._to_comparison())
        self.on(self.sweep.form, "submit", lambda payload: self._sweep(payload["values"]))
        self.on(self.recommend.form, "submit", lambda payload: self._recommend(payload["values"]))
        self.header.observe(lambda _: self.guard(self._list), names=["values"])
        self.follow("versions", lambda _: self._look_around())
        self.follow("evaluation", lambda _: self._fill())
        self.follow("sweep", self.sweep.fill)
        self.follow("recommendation", self.recommend.fill)
        self.answers = columns(*self.cards)
        self.recipes = RecipesPanel(
            self, self._run, lambda: self.header.values.get("data") or None, detail=COMPARE
        )
        self.header.observe(lambda _: self.recipes.refresh(), names=["values"])
        self.show(self.form, self.recipes.view, self.metrics, self.tabs, self.looked, self.answers)
        self._hide_sample()
        self._fill()
        if self.session.sweeps:
            self.sweep.fill(self.session.sweeps[-1])
        if self.session.recommendations:
            self.recommend.fill(self.session.recommendations[-1])

    # ---- what is asked for

    def _look_around(self) -> None:
        """Data sets and sides to choose from; what was chosen stays while it is there."""
        data = [*self._typed, *data_sets(self.session.path)]
        known = sides(self.session)
        options = [[name, name] for name in known]
        usual = list(self.session.versions)
        first = [name for name in (self.session.base, *usual) if name in known]
        second = next((n for n in reversed(usual) if n != self.session.base), _NONE)
        values = {
            "data": data[0][0] if data else _NONE, "a": first[0] if first else known[0],
            "b": second if second in known else _NONE, "limit": LIMITS[1], "rows": _ALL,
            **self.header.values,
        }  # fmt: skip
        offered: list[dict[str, Any]] = [
            {"name": "data", "label": tr("Data set"), "options": data},
            {"name": "a", "label": tr("Baseline"), "options": options},
            {"name": "b", "label": tr("Candidate"), "options": [[_NONE, tr("none")], *options]},
            {"name": "limit", "label": tr("Samples"),
             "options": [*([n, n] for n in LIMITS), [_ALL, tr("all")]]},
            {"name": "rows", "label": tr("List"),
             "options": [[_ALL, tr("all samples")], ["changed", tr("predictions that differ")],
                         ["wrong", tr("samples with an error")]]},
        ]  # fmt: skip
        self.header.selects = [s for s in offered if s["options"]]
        self.header.values = values
        self._buttons()
        if self.made is None:
            self._say_what_comes()

    @property
    def asked(self) -> list[str]:
        """The chosen sides, the baseline first."""
        a, b = self.header.values["a"], self.header.values["b"]
        return [a, *([b] if b not in (_NONE, a) else [])]

    def _open_form(self, opened: bool) -> None:
        self.form.layout.display = None if opened else "none"

    def _use(self, values: dict[str, str]) -> None:
        path = Path(values["data"]).expanduser()
        if not path.exists():
            self.form.values = values
            self.form.errors = {"data": tr("no such file or folder")}
            return
        self.form.values, self.form.errors = values, {}
        self._typed = [[str(path), path.name]]
        self._open_form(False)
        self.header.values = {**self.header.values, "data": str(path)}
        self._look_around()

    def _images(self) -> str | None:
        """The folder of the images that was given for the chosen data set, if any."""
        typed = self.header.values["data"] in [value for value, _ in self._typed]
        return (self.form.values.get("images") or None) if typed else None

    def _data(self) -> str:
        """Raises UsageError."""
        path = str(self.header.values["data"])
        if not path:
            raise UsageError(
                tr("no data set is chosen"), fix=tr("choose one with Other data…, above")
            )
        return path

    def jobs_changed(self) -> None:
        self._buttons()

    def _buttons(self) -> None:
        again, data = bool(self.session.evaluations), bool(self.header.values.get("data"))
        self.recommend.form.blocked = "" if data else NO_DATA
        self.header.buttons = [
            button("other", tr("Other data…")),
            button("run", tr("Evaluate again") if again else tr("Evaluate"), primary=True,
                   why_not=self.waits or ("" if data else NO_DATA)),
        ]  # fmt: skip

    def _run(self) -> None:
        session, data, asked = self.session, self._data(), self.asked
        limits = self._limits()
        self._hide_sample()

        def work() -> None:
            self.recipes.look(data, images=limits["images"])
            session.evaluate(data, asked, **limits)

        self.start(tr("Evaluating {sides}", sides=", ".join(asked)), work)

    def _limits(self) -> dict[str, Any]:
        limit = self.header.values["limit"]
        return {"limit": None if limit == _ALL else int(limit), "images": self._images()}

    def _sweep(self, values: dict[str, str]) -> None:
        given = self.sweep.asked(values)
        data = self.header.values["data"] or None
        session, limits = self.session, self._limits() if data else {}

        def work() -> None:
            self.recipes.look(data, images=limits.get("images"))
            session.sweep(**given, data=data, **limits)

        self.start(tr("Measuring the choices"), work)

    def _recommend(self, values: dict[str, str]) -> None:
        given, data, session = self.recommend.asked(values), self._data(), self.session
        drop, limits = given.pop("max_drop"), self._limits()

        def work() -> None:
            self.recipes.look(data, images=limits["images"])
            session.recommend(data, drop, **limits, **given)

        self.start(tr("Looking for a version"), work)

    # ---- what was found

    @property
    def made(self) -> Evaluation | None:
        """The last evaluation."""
        return self.session.evaluations[-1] if self.session.evaluations else None

    @property
    def shown(self) -> str:
        return tr("the evaluation before") if self.made is not None else ""

    def _fill(self) -> None:
        made = self.made
        if made is None:
            self._say_what_comes()
            return
        for table in (self.metrics, self.samples, self.classes, self.confused):
            table.status = {}
        self.confused.layout.display = None
        self._set(self.metrics, metrics_table(made))
        found = class_tables(made)
        for table, traits in zip((self.classes, self.confused), found, strict=True):
            self._set(table, traits or {"rows": [], "columns": []})
        self.tabs.badge(tr("Samples"), str(made.samples))
        self._hide_sample()
        self._list()
        self._buttons()
        worse = [c for c in made.changes if c.significant and c.worse]
        if worse:
            self.tell("warn", f"**{worse[0].sentence}**")
        elif made.sentences:
            self.tell("done", f"**{made.sentences[0]}**")

    def _say_what_comes(self) -> None:
        """What stands here after an evaluation; without a data set, how to get one."""
        does = tr("Every sample runs on both sides; the metrics get 95 % intervals.")
        what = does if self.header.values.get("data") else NO_DATA
        for table, title, text in (
            (self.metrics, tr("Not evaluated yet"), what),
            (self.samples, tr("No samples yet"), tr("Each sample with its label and answers.")),
            (self.classes, tr("No classes yet"), tr("How often each class is recognized, and "
                                                    "which classes are confused.")),
            (self.confused, "", ""),
        ):  # fmt: skip
            table.status = {"kind": "empty", "title": title, "text": text}
        self.confused.layout.display = "none"

    def _list(self) -> None:
        """The samples that were asked for, largest disagreement first."""
        made, wanted = self.made, self.header.values.get("rows", _ALL)
        if made is None:
            return
        rows = {"changed": made.disagreements, "wrong": made.errors}.get(wanted, made.rows)
        self._set(self.samples, samples_table(made, rows, "sample"))

    @staticmethod
    def _set(table: DataTable, traits: dict[str, Any]) -> None:
        with table.hold_sync():
            for name, value in traits.items():
                setattr(table, name, value)

    # ---- one sample

    def _hide_sample(self) -> None:
        self._sample = ""
        for widget in (self.looked, *self.cards):
            widget.layout.display = "none"

    def _look(self, sample: str) -> None:
        """Runs one sample again on the sides of the evaluation."""
        made = self.made
        if made is None:
            return

        def work() -> None:
            found = sample_answers(self.session, made, sample)
            self.on_main(lambda: self._show_sample(made, sample, found))

        self.start(tr("Running {sample}", sample=sample), work)

    def _show_sample(self, made: Evaluation, sample: str, found: Sequence[Any]) -> None:
        row = next(r for r in made.rows if r.name == sample)
        self._sample = sample
        _, picture = feeds_of(self.session.model, self._seen(made, sample))
        for card, (side, answer) in zip(self.cards, found, strict=False):
            with card.hold_sync():
                card.backend, card.title = made[side].backend, side
                card.note = row.sides[side].figure
                card.kind, card.items = answer.kind, answer.items
                card.image = picture if answer.image is None else png(answer.image)
                if picture and answer.mask is not None:
                    card.image = masked(picture, answer.mask, window=answer.window)
                card.status = {}
            card.layout.display = None
        for card in self.cards[len(found) :]:
            card.layout.display = "none"
        a, b = self._pair()
        self.looked.set_trait("kind", "info")
        self.looked.what = tr("**{sample}**: the label is {label}.", sample=sample, label=row.label)
        self.looked.actions = [
            ["layers",
             tr("Compare {a} and {b} layer by layer", a=side_name(a), b=side_name(b)), True]
        ]  # fmt: skip
        self.looked.layout.display = None

    @staticmethod
    def _seen(made: Evaluation, sample: str) -> Any:
        """The input of a sample as it was evaluated."""
        source = made.sources[sample]
        return source if made.judge is None else made.judge.seen(source)

    def _pair(self) -> tuple[str, str]:
        """The sides of the evaluation; a single one is compared with the reference."""
        names = [side.name for side in self.made.sides] if self.made is not None else self.asked
        return (names[0], names[1]) if len(names) > 1 else (names[0], "reference")

    def _to_comparison(self) -> None:
        made = self.made
        if made is None or not self._sample:
            return
        session, (a, b), source = self.session, self._pair(), self._seen(made, self._sample)
        self.begin(
            tr("Comparing {a} and {b}", a=side_name(a), b=side_name(b)),
            lambda: session.compare(a, b, source), "Compare",
        )  # fmt: skip
        self.go("Compare")
