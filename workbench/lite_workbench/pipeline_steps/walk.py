"""The steps of a pipeline in the Workbench: the walk of a model, through all stages."""

from __future__ import annotations

from pathlib import Path

from lite_engine.errors import BackendUnavailableError
from lite_messages import tr, trn
from lite_widgets import BundleList, DataTable, Form, LayerTable, Stages, Tabbed

from .. import views
from ..answer_tables import metrics_table, samples_table
from ..data_sets import data_sets
from ..evaluate import Drop
from ..pipelines.session import PipelineSession
from ..pipelines.tables import (
    cards,
    choices_table,
    comparison_table,
    constant_bytes,
    found,
    models_table,
    profile_table,
    table_traits,
)
from ..steps._base import side_name, stack
from ._step import PipelineStep
from .run import RunStep


class ModelStep(PipelineStep):
    name = "Model"
    title = tr("Which models and steps does it have?")

    def build(self) -> None:
        self.stages = Stages(title=self.session.pipeline.name, cancellable=False)
        self.models = DataTable()
        self.follow("versions", lambda _: self._fill())
        self.follow("run", lambda _: self._fill())
        self.show(self.stages, self.models)
        self._fill()

    def _fill(self) -> None:
        self.stages.stages = cards(self.session.pipeline)
        self.set(self.models, table_traits(tr("Models"), *models_table(self.session.pipeline)))


class ProfileStep(PipelineStep):
    """The stages' times, and for each model a tab with its layers."""

    name = "Profile"
    title = tr("Where does the time go?")

    def build(self) -> None:
        self.offer_images()
        self.header.segments = {
            "name": "backend", "label": tr("Backend"), "options": self.backends(),
        }  # fmt: skip
        self.table = DataTable()
        self.tables: dict[str, LayerTable] = {}
        self.on(self.header, "run", lambda _: self._run())
        self.header.observe(lambda _: self.guard(self._fill), names=["values"])
        self.follow("profile", lambda _: self._fill())
        self._fill()

    def jobs_changed(self) -> None:
        self.buttons(tr("Profile"))

    def _run(self) -> None:
        session, image, backend = self.session, self.image, str(self.header.values["backend"])
        self.start(tr("Profiling {backend}", backend=side_name(backend)),
                   lambda: session.profile(image, backend))  # fmt: skip

    def _fill(self) -> None:
        self.buttons(tr("Profile"))
        made = self.session.profiles.get(str(self.header.values["backend"]))
        if made is None:
            self.table.status = {
                "kind": "empty", "title": tr("Not profiled on this backend yet"),
                "text": tr("The whole pipeline runs ten times; then each model's layers are "
                           "measured with the input that reached it."),
            }  # fmt: skip
            self.show(self.form, self.table)
            return
        self.set(self.table, table_traits(
            tr("{pipeline}: {ms:.1f} ms, most of it in {stage}", pipeline=made.pipeline,
               ms=made.total_ms, stage=made.slowest.name),
            *profile_table(made),
        ))  # fmt: skip
        self.tables = {}
        for stage in made.stages:
            if stage.layers is not None:
                table = LayerTable()
                table.profile = views.profile_data(stage.layers)
                self.tables[stage.name] = table
        self.show(self.form, self.table, *([Tabbed(self.tables)] if self.tables else []))


class CompareStep(PipelineStep):
    """Which stage differs, and what that does to the answer."""

    name = "Compare"
    title = tr("Do the backends agree?")

    def build(self) -> None:
        self.offer_images()
        names = [[value, text] for value, text, _ in self.backends()]
        other = names[-1][0]
        self.header.selects = [
            *self.header.selects,
            {"name": "a", "label": tr("Baseline"), "options": names},
            {"name": "b", "label": tr("Candidate"), "options": names},
        ]  # fmt: skip
        self.header.values = {**self.header.values, "a": names[0][0], "b": other}
        self.table, self.answers = DataTable(), DataTable()
        self.on(self.header, "run", lambda _: self._run())
        self.follow("comparison", lambda _: self._fill())
        self.show(self.form, self.table, self.answers)
        self._fill()

    def jobs_changed(self) -> None:
        self.buttons(tr("Compare"))

    def _run(self) -> None:
        session, image, values = self.session, self.image, self.header.values
        a, b = str(values["a"]), str(values["b"])
        self.start(
            tr("Comparing {a} and {b}", a=side_name(a), b=side_name(b)),
            lambda: session.compare(a, b, image),
        )

    def _fill(self) -> None:
        self.buttons(tr("Compare"))
        self.answers.layout.display = "none"
        if not self.session.comparisons:
            self.table.status = {
                "kind": "empty", "title": tr("Not compared yet"),
                "text": tr("Each model runs on both backends with the same input; where the "
                           "answers differ, each stage alone shows what it changes."),
            }  # fmt: skip
            return
        made = next(reversed(self.session.comparisons.values()))
        title = f"{made.baseline} / {made.candidate}"
        self.set(self.table, table_traits(title, *comparison_table(made)))
        if not made.changes:
            self.tell("done", tr("**{candidate} gives the same answer as {baseline}.**",
                                 candidate=made.candidate, baseline=made.baseline))  # fmt: skip
            return
        first = made.first
        what = (tr("**The answer changes in {stage}.**", stage=first.name) if first
                else tr("**Only several stages together change the answer.**"))  # fmt: skip
        self.tell("warn", what, detail="; ".join(made.changes[:5]))
        rows = [
            [name, *row] for name, answer in zip(title.split(" / "), made.answers, strict=True)
            for row in found(answer["answers"])
        ]  # fmt: skip
        heads = [tr("backend"), tr("what"), tr("answer"), tr("score"), tr("box (px)")]
        self.set(self.answers, table_traits(tr("Answers"), heads, rows))
        self.answers.layout.display = None


class EvaluateStep(PipelineStep):
    name = "Evaluate"
    title = tr("How accurate is it on labeled data?")

    def build(self) -> None:
        self.form = Form(
            title=tr("Data set"), button=tr("Evaluate"), closable=False,
            fields=[
                {"name": "data", "label": tr("File or folder"), "hint": "pages.txt"},
                {"name": "task", "label": tr("Task, where the data allows several"),
                 "hint": "spotting", "optional": True},
                {"name": "sides", "label": tr("Versions or backends"), "hint": "float,int8"},
            ],
        )  # fmt: skip
        known = [path for path, _ in data_sets(self.session.path)]
        self.form.values = {"data": known[0] if known else "", "task": "", "sides": "float"}
        self.metrics, self.samples = DataTable(), DataTable()
        self.on(self.form, "submit", lambda payload: self._run(payload["values"]))
        self.follow("evaluation", lambda _: self._fill())
        self.show(self.form, self.metrics, self.samples)
        self._fill()

    def _run(self, values: dict[str, str]) -> None:
        self.form.values = values
        path = Path(values["data"]).expanduser()
        if not path.exists():
            self.form.errors = {"data": tr("no such file or folder")}
            return
        self.form.errors = {}
        session, task = self.session, values.get("task") or None
        sides = [s.strip() for s in values["sides"].split(",") if s.strip()] or ["float"]
        self.start(tr("Evaluating {sides}", sides=", ".join(sides)),
                   lambda: session.evaluate(str(path), sides, task=task))  # fmt: skip

    def _fill(self) -> None:
        self.samples.layout.display = None if self.session.evaluations else "none"
        if not self.session.evaluations:
            self.metrics.status = {
                "kind": "empty", "title": tr("Not evaluated yet"),
                "text": tr("The answer at the end is judged: exact match of text, Hmean of "
                           "regions, mAP of boxes."),
            }  # fmt: skip
            return
        made = self.session.evaluations[-1]
        self.set(self.metrics, metrics_table(made))
        self.set(self.samples, samples_table(made, made.rows))
        worse = [c for c in made.changes if c.significant and c.worse]
        if worse or made.sentences:
            said = worse[0].sentence if worse else made.sentences[0]
            self.tell("warn" if worse else "done", f"**{said}**")


class QuantizeStep(PipelineStep):
    name = "Quantize"
    title = tr("Which stages can run in int8?")

    def build(self) -> None:
        self.form = Form(
            title=tr("Calibration"), button=tr("Quantize"), closable=False,
            fields=[
                {"name": "images", "label": tr("Folder of typical images"), "hint": "photos/"},
                {"name": "data", "label": tr("Labeled data to judge by"), "hint": "pages.txt",
                 "optional": True},
                {"name": "drop", "label": tr("The metric may lose, % or dB"), "hint": "1"},
            ],
            note=tr("Without labeled data, the result is judged by the share of unchanged "
                    "answers."),
        )  # fmt: skip
        self.form.values = {"images": "", "data": "", "drop": "1"}
        self.table = DataTable()
        self.on(self.form, "submit", lambda payload: self._run(payload["values"]))
        self.follow("quantization", lambda _: self._fill())
        self.show(self.form, self.table)
        self._fill()

    def _run(self, values: dict[str, str]) -> None:
        self.form.values = values
        images, data = Path(values["images"]).expanduser(), values.get("data") or None
        errors = {} if images.exists() else {"images": tr("no such file or folder")}
        try:
            drop = Drop(float(values["drop"]))
        except ValueError:
            errors["drop"] = tr("not a number")
        self.form.errors = errors
        if errors:
            return
        session = self.session
        self.start(tr("Quantizing stage by stage"),
                   lambda: session.quantize(str(images), data, max_drop=drop))  # fmt: skip

    def _fill(self) -> None:
        made = self.session.quantization
        if made is None:
            self.table.status = {
                "kind": "empty", "title": tr("Not quantized yet"),
                "text": tr("Each model is calibrated with the inputs that reach it and tested"
                           " in int8 on its own. It stays int8 as long as the whole pipeline "
                           "stays within the budget."),
            }  # fmt: skip
            return
        self.set(self.table, table_traits(tr("Stages"), *choices_table(made)))
        self.tell("done" if any(s.int8 for s in made.stages) else "warn", f"**{made.headline}**")


class DeployStep(PipelineStep):
    name = "Deploy"
    title = tr("What goes to the device?")

    def build(self) -> None:
        self.bundle = BundleList(button=tr("Write application"))
        self.header.segments = {
            "name": "target", "label": tr("Device"),
            "options": [["arm", "arm", "arm"], ["x86", "x86", "x86"], ["web", "web", "web"]],
        }  # fmt: skip
        self.header.values = {"target": "arm"}
        self.header.observe(lambda _: self._fill(), names=["values"])
        self.on(self.bundle, "write", lambda _: self._write())
        self.follow("exported", lambda _: self._fill())
        self.follow("versions", lambda _: self._fill())
        self.show(stack(self.bundle))
        self._fill()

    def _write(self) -> None:
        session, target = self.session, str(self.header.values["target"])
        folder = f"{session.stem}_app"
        self.start(tr("Writing {folder}", folder=folder), lambda: session.export(folder, target))

    def _fill(self) -> None:
        made = self.session.exported
        target = str(self.header.values["target"])
        if made is not None and made.target == target:
            self.bundle.items = [
                {"id": name, "file": name, "bytes": size, "fixed": True, "what": ""}
                for name, size in made.sizes.items()
            ]
            self.tell("done", tr("**Wrote {folder}.**", folder=made.folder))
            return
        models = {id(part.model): part for part in self.session.pipeline.parts}.values()
        size = self._runtime_bytes(target) + sum(constant_bytes(part) for part in models)
        version = self.session.version
        what = (
            tr("{version} pipeline, runtime and a web page", version=version)
            if target == "web"
            else tr("{version} pipeline, runner, library and a program in C++ and Python",
                    version=version)
        )  # fmt: skip
        self.bundle.items = [
            {"id": "app", "file": f"{self.session.stem}_app/", "bytes": size, "fixed": True,
             "what": what}
        ]  # fmt: skip

    @staticmethod
    def _runtime_bytes(target: str) -> int:
        """0 where it is not built; writing says so."""
        from lite_engine.export.application import runtime_bytes

        try:
            return runtime_bytes(target)
        except BackendUnavailableError:
            return 0


#: Step of the stepper → its class.
STEPS: dict[str, type[PipelineStep]] = {
    step.name: step
    for step in (ModelStep, QuantizeStep, RunStep, EvaluateStep, ProfileStep, CompareStep,
                 DeployStep)
}  # fmt: skip


def step_states(session: PipelineSession) -> dict[str, tuple[str, str]]:
    """(state, three words) of every step."""
    states = dict.fromkeys(STEPS, ("todo", ""))
    count = len(session.pipeline.stages)
    states["Model"] = ("done", trn("{n} stage", "{n} stages", count))
    if session.answers:
        last = next(reversed(session.answers.values()))
        states["Run"] = ("done", f"{last['times']['total_ms']:.1f} ms")
    elif session.streamed is not None:
        states["Run"] = ("done", tr("{rate:.1f} frames/s", rate=session.streamed.per_second))
    if session.quantization is not None:
        chosen = sum(stage.int8 for stage in session.quantization.stages)
        states["Quantize"] = ("done", tr("{count} in int8", count=chosen))
    if session.evaluations:
        made = session.evaluations[-1]
        worse = any(change.significant and change.worse for change in made.changes)
        states["Evaluate"] = ("attention" if worse else "done", made.sides[-1].main.short)
    if session.profiles:
        last_profile = next(reversed(session.profiles.values()))
        states["Profile"] = ("done", f"{last_profile.total_ms:.1f} ms")
    if session.comparisons:
        compared = next(reversed(session.comparisons.values()))
        states["Compare"] = (("attention", tr("answers differ")) if compared.changes
                             else ("done", tr("all agree")))  # fmt: skip
    if session.exported is not None:
        states["Deploy"] = ("done", tr("written"))
    return states
