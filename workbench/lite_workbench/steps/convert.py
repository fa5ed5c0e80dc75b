"""Convert: one model for every target, and what the passes did."""

from __future__ import annotations

from typing import Any

from lite_engine.model_file.precision import DEFAULT_TARGETS
from lite_messages import tr, trn
from lite_widgets import DataTable, FactsCard, GraphView, columns

from .. import views
from ._base import Step, button, side_name

PRECISIONS = [["fp32", "fp32"], ["fp16", "fp16"]]


class ConvertStep(Step):
    """The optimised graph beside the file's own, and the journal of the passes."""

    name = "Convert"
    title = tr("What will run?")

    def build(self) -> None:
        self.facts = FactsCard(title=tr("Conversion"))
        self.graph = GraphView(title=tr("Original and optimized graph"), height=460)
        self.journal = DataTable(title=tr("Graph rewrites"), height=330)
        self.header.selects = [
            {"name": "precision", "label": tr("Precision"), "options": PRECISIONS}
        ]
        self.header.values = {"precision": "fp32"}
        self.jobs_changed()
        self.on(self.header, "convert", lambda _: self._convert())
        self.on(self.header, "next", lambda _: self.go("Run"))
        self.link(self.graph)
        self.follow("versions", lambda _: self._fill())
        self.show(self.graph, columns(self.facts, self.journal, kind="third"))
        if self.session.base in self.session.versions:
            self._fill()
        elif not self.pending:
            self._convert()

    def jobs_changed(self) -> None:
        self.header.buttons = [
            button("convert", tr("Convert again"), why_not=self.waits),
            button("next", tr("Run it"), primary=True),
        ]

    def _convert(self) -> None:
        session, precision = self.session, self.header.values.get("precision", "fp32")
        targets = session.targets or list(DEFAULT_TARGETS)
        wanted: Any = precision
        if precision == "fp16":
            wanted = {t: "fp16" for t in targets if t == "opencl"} or "fp32"
        self.start(tr("Converting"), lambda: session.convert(targets=targets, precision=wanted))

    def _fill(self) -> None:
        session = self.session
        model = session.base_model
        rewrites = [e for e in model.journal.entries if e.action == "rewrote"]
        refusals = len(model.journal.entries) - len(rewrites)
        self.facts.big = [
            [
                tr("layers"),
                str(len(model.graph.nodes)),
                "",
                tr("of {count}", count=len(session.graph.nodes)),
            ],
            [
                tr("rewrites"),
                str(len(rewrites)),
                "",
                trn("{n} refusal, with reason", "{n} refusals, with reasons", refusals)
                if refusals
                else tr("no refusals"),
            ],
        ]
        targets = ", ".join(f"{side_name(t)} {model.display_precision(t)}" for t in model.targets)
        self.facts.facts = [[tr("Targets"), targets], [tr("One file"), tr("for all targets")]]
        with self.journal.hold_sync():
            for trait, value in views.rewrites_data(model).items():
                setattr(self.journal, trait, value)
        self.graph.graph = views.graph_data(model.graph)
        self.graph.source_graph = views.graph_data(session.graph)
