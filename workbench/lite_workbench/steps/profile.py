"""Profile: where does the time go?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from lite_engine.files import write_file
from lite_engine.history.changes import changes
from lite_engine.profile import Profile
from lite_engine.profile.roof import forget_roofs
from lite_messages import tr, trn
from lite_widgets import (
    CopiesTable,
    GraphView,
    Inspector,
    LatencyChart,
    LayerTable,
    MemoryMap,
    Roofline,
    Tabbed,
    Timeline,
    TimingLine,
    TransitionMatrix,
    TypeSummary,
    Waterfall,
    columns,
)

from .. import views
from ..changes import Change
from ..jobs import Job
from ..state import overrides
from ._advice import advice_for, override_of
from ._base import UNDER_WAY, Step, backend_options, button, side_name, stack
from ._inside import InsidePanel

RUNS = 20
#: What the waterfall shows while it has nothing to set against a profile.
ONE_RUN = {
    "kind": "empty", "title": tr("Only one run so far"),
    "text": tr("After a second run on any backend, this view explains the difference between the "
               "two."),
}  # fmt: skip
NO_TIMES = {
    "kind": "empty", "title": tr("No times to compare"),
    "text": tr("The times of emulated runs mean nothing. Profile on a device twice, and this view "
               "explains the difference."),
}  # fmt: skip
_NO_TIMELINE = {
    "kind": "empty", "title": tr("No timeline under emulation"),
    "text": tr("Times are measured on the device that runs the model."),
}  # fmt: skip


class ProfileStep(Step):
    """Headline, a bar per layer, graph and table of the same layers, and one layer's inspector."""

    name = "Profile"
    title = tr("Where does the time go?")

    def build(self) -> None:
        self._asked: dict[str, Job] = {}
        first = next(reversed(self.session.profiles), backend_options(self.session)[0][0])
        self.header.values = {"backend": first}
        self._offer()
        self.follow("targets", lambda _: self._offer())
        self.header.observe(self._switched, names=["values"])
        self.on(self.header, "run", lambda _: self.measure())
        self.on(self.header, "save", lambda _: self._save())
        self.line, self.chart = TimingLine(), LatencyChart()
        self.graph, self.table = GraphView(), LayerTable()
        self.roofline, self.types = Roofline(can_measure=True), TypeSummary()
        self.copies, self.matrix, self.memory = CopiesTable(), TransitionMatrix(), MemoryMap()
        self.timeline, self._earlier = Timeline(), dict[str, Profile]()
        self.changes = Waterfall()
        self.inside = InsidePanel(self, lambda: (self.backend,), open=False)
        self.changes.observe(self._against, names=["against"])
        self.inspector = Inspector()
        self.on(self.inspector, "measure", self._try)
        self.on(self.inspector, "advice", self._advised)
        tabs = {tr("Layers"): self.table, tr("Roofline"): self.roofline, tr("Types"): self.types,
                tr("Timeline"): self.timeline, tr("Copies"): stack(self.copies, self.matrix),
                tr("Memory"): self.memory,
                tr("Values"): self.inside.view, tr("Changes"): self.changes}  # fmt: skip
        self.tabs = Tabbed(tabs, height=496)
        self.tabs.bar.observe(
            lambda change: self.inside.opened(change["new"] == tr("Values")), names=["current"]
        )
        self.link(self.chart, self.graph, self.table, self.roofline, self.types, self.memory,
                  self.timeline, self.copies, self.matrix, self.changes)  # fmt: skip
        self.on(self.notice, "quantize", lambda _: self.go("Quantize"))
        self.on(self.chart, "run", lambda _: self.measure())
        self.on(self.roofline, "remeasure", lambda _: self.measure(roofs=True))
        self.follow("profile", lambda profile: self._fill(profile))
        self.follow("versions", lambda _: self._buttons())
        self.follow("selected", lambda _: self._inspect())
        self.show(
            self.line, self.chart, columns(self.graph, self.tabs, kind="graph"), self.inspector
        )
        self._switch()

    def _offer(self) -> None:
        """The targets as they are now, and what is on show."""
        options = backend_options(self.session)
        if self.backend not in [name for name, *_ in options]:
            options += backend_options(self.session, self.backend)
        self.header.segments = {"name": "backend", "label": tr("Backend"), "options": options}

    @property
    def backend(self) -> str:
        return str(self.header.values["backend"])

    def _switched(self, change: dict[str, Any]) -> None:
        if change["new"].get("backend") != change["old"].get("backend"):
            self.guard(self._switch)

    def _switch(self) -> None:
        """Shows the chosen backend's profile; before there is one nothing but the model."""
        known = self.session.profiles.get(self.backend)
        if known is not None:
            self._fill(known)
            return
        self._clear()
        asked = self._asked.get(self.backend)
        if asked is None or asked.ended:
            self.measure()

    def _clear(self) -> None:
        """No number stands under the name of a backend that it was not measured on."""
        for widget in (self.line, self.tabs, self.inspector):
            widget.layout.display = "none"
        for widget in (self.line, self.chart, self.table, self.graph, self.roofline, self.types,
                       self.timeline, self.copies, self.matrix):  # fmt: skip
            widget.profile = None
        for widget in (self.chart, self.table, self.graph):
            widget.baseline = None
        self.memory.memory = self.inspector.layer = self.timeline.timeline = None
        model = self.session.versions.get(self.session.version)
        self.graph.graph = views.graph_data(model.graph if model else self.session.graph)
        self._buttons()

    @property
    def shown(self) -> str:
        if self.backend not in self.session.profiles:
            return ""
        return tr(
            "{backend} at {clock}",
            backend=side_name(self.backend),
            clock=self.session.clock("profile", self.backend),
        )

    def jobs_changed(self) -> None:
        self._buttons()

    def _buttons(self) -> None:
        """One way to begin, and what it takes; afterwards to repeat it, or to measure the version
        that was chosen meanwhile."""
        session, known = self.session, self.session.profiles.get(self.backend)
        what = tr("Profile")
        if known is not None:
            version, _ = session.profiled[self.backend]
            what = (
                tr("Run again")
                if version == session.version
                else tr("Profile {version}", version=session.version)
            )
            of = f"{version} · " if len(session.versions) > 1 else ""
            threads, runs = (
                trn("{n} thread", "{n} threads", known.threads),
                trn("{n} run", "{n} runs", known.runs),
            )
            at = session.clock("profile", self.backend)
            self.header.note = f"{of}{threads} · {runs} · {at}"
        else:
            self.header.note = ""
        self.header.buttons = [
            button("save", tr("Export…"), why_not="" if known else tr("There is no profile yet.")),
            button("run", what, primary=True, why_not=UNDER_WAY if self._waits else ""),
        ]
        if not self.chart.profile:
            self.chart.status = self._empty()

    def _empty(self) -> dict[str, Any]:
        text = tr(
            "One bar per layer, from {runs}. The model is not changed.",
            runs=trn("{n} run", "{n} runs", self._runs),
        )
        if self._waits:
            title = tr("Profiling {backend}", backend=side_name(self.backend))
            return {"kind": "empty", "under_way": True, "title": title, "text": text}
        title = tr("{backend} is not measured yet", backend=side_name(self.backend))
        return {"kind": "empty", "title": title, "text": text, "button": tr("Profile"),
                "action": "run"}  # fmt: skip

    @property
    def _waits(self) -> bool:
        """Is the chosen backend's profile under way?"""
        asked = self._asked.get(self.backend)
        return asked is not None and not asked.ended

    @property
    def _runs(self) -> int:
        return 3 if self.backend == "arm" else RUNS

    def measure(self, *, roofs: bool = False) -> None:
        """Profiles the chosen backend in the background; `roofs`: with its peaks, measured anew."""
        if roofs:
            forget_roofs()
        backend, runs = self.backend, self._runs
        self._asked[backend] = self.start(
            tr("Profiling {backend}", backend=side_name(backend)),
            lambda: self.session.profile(backend=backend, runs=runs),
        )
        self._buttons()

    def _fill(self, profile: Profile) -> None:
        if profile.backend != self.backend:
            return
        _, predictor = self.session.profiled[self.backend]
        data = views.profile_data(profile, predictor.graph)
        others = list(self._others(profile))
        baseline = views.session_profile(self.session, others[-1]) if others else None
        self.graph.graph = views.graph_data(predictor.graph)
        for widget in (self.line, self.chart, self.table, self.graph, self.roofline, self.types,
                       self.timeline, self.copies, self.matrix):  # fmt: skip
            widget.profile = data
        for widget in (self.chart, self.table, self.graph):
            widget.baseline = baseline
        roof = views.roof_of(profile)
        self.roofline.roof = self.inspector.roof = self.chart.roof = roof
        self.memory.memory = views.memory_data(profile)
        self.timeline.timeline = views.timeline_data(profile, data)
        self.timeline.status = {} if profile.times_meaningful else _NO_TIMELINE
        self._compare_runs(profile)
        count = sum(1 for row in data["layers"] if row.get("copy"))
        self.tabs.badge(tr("Copies"), str(count) if count else "")
        where = f"{profile.environment.get('cpu', '')} · {self.session.path.name}"
        for widget in (self.chart, self.graph, self.table):
            widget.caption = where
            widget.python = f"session.profile(backend={profile.backend!r})"
        self.chart.status = {}
        for widget in (self.line, self.tabs, self.inspector):
            widget.layout.display = None
        self._buttons()
        self._select_slowest(profile)
        self._inspect()

    def _others(self, profile: Profile) -> dict[str, Profile]:
        """Backend → its profile, where times can stand beside these: emulated ones mean nothing."""
        known = self.session.profiles.items() if profile.times_meaningful else ()
        return {n: p for n, p in known if n != profile.backend and p.times_meaningful}

    def _select_slowest(self, profile: Profile) -> None:
        """On arrival a layer is selected: no copy, which the graph does not show."""
        layers = [r.name for r in profile.slowest(len(profile.layers)) if not r.overhead]
        if layers and not {r.name for r in profile.layers}.intersection(self.session.selected):
            self.session.selected = layers[:1]

    # ---- one layer

    def _inspect(self) -> None:
        profile = self.session.profiles.get(self.backend)
        picked = self.session.selected[-1:]
        rows = self.table.profile["layers"] if profile and picked else []
        row = next((r for r in rows if r["name"] in picked), None)
        if profile is None or row is None:
            self.inspector.layer = None
            return
        others = []
        for name, other in self._others(profile).items():
            same = next((x for x in other.layers if x.name == row["name"]), None)
            if same is not None:
                others.append({"backend": name, "median_ms": same.median_ms})
        also = [n for n in self.session.selected[:-1] if n != row["name"]]
        now = overrides.held(self.session, row["name"])
        with self.inspector.hold_sync():
            self.inspector.count = len(rows)
            self.inspector.total_ms = profile.total_ms["median"]
            self.inspector.emulated = not profile.times_meaningful
            self.inspector.instructions = sum(x.instructions or 0 for x in profile.layers)
            self.inspector.others = others
            usual = ("x86", "opencl", "reference")
            self.inspector.backends = [] if row.get("copy") else [
                b for b in usual if b != self.backend
            ]  # fmt: skip
            self.inspector.precisions = (
                []
                if row.get("copy")
                else overrides.choices(self.session, row["name"], self.backend)
            )
            self.inspector.current = now
            self.inspector.override_backend = now["backend"]
            self.inspector.override_precision = now["precision"]
            self.inspector.also = also
            self.inspector.measured = None
            self.inspector.advice = advice_for(self.session.advice.get(self.backend, []), row)
            self.inspector.layer = row

    def _try(self, payload: dict[str, Any]) -> None:
        """Changes the selected layers; the whole model is measured with and without."""
        layers = list(payload["layers"])
        target, precision = payload.get("backend") or None, payload.get("precision") or None
        if precision == "int8" and self.session.quantization is None:
            self.tell(
                "warn",
                tr(
                    "**The model is not calibrated yet.** int8 needs value ranges "
                    "from a few samples."
                ),
                actions=[["quantize", tr("Quantize"), True]],
            )
            return
        backend = self.backend

        def work() -> None:
            change = self.session.try_override(
                layers if len(layers) > 1 else layers[0], target, backend, precision=precision
            )
            self.session.profile(backend=backend, runs=RUNS)
            self.on_main(lambda: self._measured(change, layers, target, precision))

        self.start(tr("Measuring the change"), work)

    def _measured(
        self, change: Change, layers: list[str], target: str | None, precision: str | None
    ) -> None:
        what = layers[0] if len(layers) == 1 else tr("{layers} layers", layers=len(layers))
        where = " in ".join(x for x in (target, precision) if x) or tr("as planned")
        self._select_here(layers)
        verdict = self.session.overrides.verdict
        quality = (
            tr("; outputs {sqnr_db:.1f} dB from float", sqnr_db=verdict.sqnr_db)
            if precision and verdict
            else ""
        )
        self.inspector.measured = {
            "before_ms": change.before_ms,
            "after_ms": change.after_ms,
            "text": f"{what} {where}: {change}{quality}",
        }

    def _select_here(self, layers: list[str]) -> None:
        """Another precision may have given the layers other names."""
        names = {row["name"] for row in self.table.profile["layers"]}
        if not names.intersection(layers):
            home, graph = self.session.base_model.graph, self.session.model.graph
            wanted = set(layers)
            known = wanted.intersection(n.name for n in home.nodes)
            if known:
                self.session.selected = overrides.counterparts(known, home, graph)[:1]

    # ---- advice, and the difference to another run

    def _advised(self, payload: dict[str, Any]) -> None:
        tried = override_of(payload["code"])
        if tried is not None:
            self._try({"layers": [tried[0]], "backend": tried[1]})

    def _compare_runs(self, profile: Profile) -> None:
        """The waterfall from an earlier run (of this backend, if there is one) to this."""
        history = self.session.history if profile.times_meaningful else ()
        others = [p for p in history if p is not profile and p.times_meaningful]
        self._earlier = {str(i): p for i, p in enumerate(others)}
        self._newest = profile
        if not others:
            self.changes.change, self.changes.runs = None, []
            self.changes.status = ONE_RUN if profile.times_meaningful else NO_TIMES
            return
        self.changes.runs = [
            [i, tr("run {number}: {backend}, {total}", total=views.total_text(p),
                   number=self.session.history.index(p) + 1, backend=p.backend)]
            for i, p in self._earlier.items()
        ]  # fmt: skip
        own = [i for i, p in self._earlier.items() if p.backend == profile.backend]
        chosen = (own or list(self._earlier))[-1]
        if self.changes.against == chosen:
            self._against({"new": chosen})
        else:
            self.changes.against = chosen

    def _against(self, change: dict[str, Any]) -> None:
        if before := self._earlier.get(change["new"]):  # a page may name none of these
            with self.changes.hold_sync():
                self.changes.status = {}
                self.changes.change = changes(before, self._newest)

    def _save(self) -> None:
        profile = self.session.profiles.get(self.backend)
        if profile is not None:
            path = Path(f"{self.session.stem}-{self.backend}-profile.json")
            write_file(path, profile.to_json(indent=1))
            self.session.remember(f"Path({str(path)!r}).write_text(profile.to_json())")
            self.tell("done", tr("**Wrote** `{path}`", path=path))
