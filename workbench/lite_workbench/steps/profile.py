"""Profile: where does the time go?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lite_widgets import (
    CopiesTable,
    GraphView,
    Inspector,
    LatencyChart,
    LayerTable,
    MemoryMap,
    Roofline,
    Tabbed,
    TimingLine,
    TransitionMatrix,
    TypeSummary,
    columns,
)

from .. import views
from ._base import Step, backend_options, button

RUNS = 20


class ProfileStep(Step):
    """Headline, a bar per layer, graph and table of the same layers, and one layer's inspector."""

    name = "Profile"
    title = "Where does the time go?"

    def build(self) -> None:
        options = backend_options(self.session)
        self.header.segments = {"name": "backend", "label": "Backend", "options": options}
        first = next(reversed(self.session.profiles), options[0][0])
        self.header.values = {"backend": first}
        self.header.observe(self._switched, names=["values"])
        self.header.buttons = [button("save", "Export…"), button("run", "Run again", primary=True)]
        self.on(self.header, "run", lambda _: self.measure())
        self.on(self.header, "save", lambda _: self._save())
        self.line, self.chart = TimingLine(), LatencyChart()
        self.graph, self.table = GraphView(), LayerTable()
        self.roofline, self.types = Roofline(height=380), TypeSummary()
        self.copies, self.matrix, self.memory = CopiesTable(), TransitionMatrix(), MemoryMap()
        self.inspector = Inspector()
        self.on(self.inspector, "measure", self._try)
        self.on(self.inspector, "advice", lambda payload: self.session.remember(payload["code"]))
        tabs = {"Layers": self.table, "Roofline": self.roofline, "Types": self.types,
                "Copies": self.copies, "Memory": self.memory}  # fmt: skip
        self.tabs = Tabbed(tabs, height=496)
        self.link(self.chart, self.graph, self.table, self.roofline, self.types, self.memory,
                  self.copies, self.matrix)  # fmt: skip
        self.follow("profile", lambda profile: self._fill(profile))
        self.follow("selected", lambda _: self._inspect())
        self.show(
            self.line, self.chart, columns(self.graph, self.tabs, kind="graph"), self.inspector
        )
        if self.backend in self.session.profiles:
            self._fill(self.session.profiles[self.backend])
        elif not self.busy:
            self.measure()

    @property
    def backend(self) -> str:
        return self.header.values["backend"]

    def _switched(self, change: dict) -> None:
        if change["new"].get("backend") == change["old"].get("backend"):
            return
        known = self.session.profiles.get(self.backend)
        if known is not None:
            self._fill(known)
        else:
            self.guard(self.measure)

    def measure(self) -> None:
        """Profiles the chosen backend in the background."""
        backend, runs = self.backend, 3 if self.backend == "arm" else RUNS
        self.start(f"Profiling {backend}", lambda: self.session.profile(backend=backend, runs=runs))

    def _fill(self, profile: Any) -> None:
        if profile.backend != self.backend:
            return
        data = views.profile_data(profile)
        others = [p for n, p in self.session.profiles.items() if n != profile.backend]
        baseline = views.profile_data(others[-1]) if others else None
        predictor = self.session.predictor(self.backend)
        shapes = {n: a.shape for n, a in (self.session.feeds or {}).items()}
        self.graph.graph = views.graph_data(predictor.graph)
        for widget in (self.line, self.chart, self.table, self.graph, self.roofline, self.types,
                       self.copies, self.matrix):  # fmt: skip
            widget.profile = data
        for widget in (self.chart, self.table, self.graph):
            widget.baseline = baseline
        roof = roof_of(profile)
        self.roofline.roof = self.inspector.roof = self.chart.roof = roof
        self.memory.memory = views.memory_data(predictor.plan(shapes))
        count = sum(1 for row in data["layers"] if row.get("copy"))
        self.tabs.badge("Copies", str(count) if count else "")
        self.header.note = f"{profile.threads} threads · {profile.runs} runs"
        where = f"{profile.environment.get('cpu', '')} · {self.session.path.name}"
        for widget in (self.chart, self.graph, self.table):
            widget.caption = where
            widget.python = f"session.profile(backend={profile.backend!r})"
        self._inspect()

    # ---- one layer

    def _inspect(self) -> None:
        profile = self.session.profiles.get(self.backend)
        picked = self.session.selected[-1:]
        rows = views.profile_data(profile)["layers"] if profile and picked else []
        row = next((r for r in rows if r["name"] in picked), None)
        if row is None:
            self.inspector.layer = None
            return
        others = []
        for name, other in self.session.profiles.items():
            same = next((x for x in other.layers if x.name == row["name"]), None)
            if name != self.backend and same is not None:
                others.append({"backend": name, "median_ms": same.median_ms})
        overridden = self.session.overrides.get(row["name"], "")
        with self.inspector.hold_sync():
            self.inspector.count = len(rows)
            self.inspector.total_ms = profile.total_ms["median"]
            self.inspector.emulated = not profile.times_meaningful
            self.inspector.others = others
            usual = ("x86", "opencl", "reference")
            self.inspector.backends = [] if row.get("copy") else [
                b for b in usual if b != self.backend
            ]  # fmt: skip
            self.inspector.override_backend = overridden
            self.inspector.measured = None
            self.inspector.layer = row

    def _try(self, payload: dict) -> None:
        """Runs one layer elsewhere; the whole model is measured with and without."""
        layer, target = payload["layer"], payload.get("backend") or None
        backend = self.backend

        def work() -> None:
            change = self.session.try_override(layer, target, backend)
            self.session.profile(backend=backend, runs=RUNS)
            self.on_main(lambda: self._measured(change, layer, target))

        self.start("Measuring the change", work)

    def _measured(self, change: Any, layer: str, target: str | None) -> None:
        text = f"{layer} on {target or 'its planned backend'}: {change}"
        self.inspector.measured = {
            "before_ms": change.before_ms,
            "after_ms": change.after_ms,
            "text": text,
        }

    def _save(self) -> None:
        profile = self.session.profiles.get(self.backend)
        if profile is not None:
            path = Path(f"{self.session.path.stem}-{self.backend}-profile.json")
            path.write_text(json.dumps(profile.to_dict(), indent=1), encoding="utf-8")
            self.session.remember(f"Path({str(path)!r}).write_text(profile.to_json())")
            self.tell("done", f"**Wrote** `{path}`")


def roof_of(profile: Any) -> dict | None:
    """Measured limits of the profile's machine, where the engine has measured them."""
    roof = getattr(profile, "roof", None) or profile.environment.get("roof")
    if not isinstance(roof, dict) or not roof.get("gflops") or not roof.get("gbytes_per_s"):
        return None
    return {"gflops": roof["gflops"], "gbytes_per_s": roof["gbytes_per_s"],
            "what": roof.get("what", f"{profile.threads} threads")}  # fmt: skip
