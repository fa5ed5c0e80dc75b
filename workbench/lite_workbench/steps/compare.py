"""Compare: do the backends agree, and if not, which layer is wrong?"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.images import open_image
from lite_messages import tr
from lite_widgets import DataTable, DifferencePane, ErrorStrip, GraphView, columns

from .. import views
from ..answer_tables import inputs_tables
from ..changes import Change
from ..state import comparisons
from ._base import COLOURED, Step, backend_options, button, side_name
from ._inside import InsidePanel
from ._recipes import COMPARE, RecipesPanel
from .quantize import sources

if TYPE_CHECKING:
    from lite_engine.compare.many import ComparisonOfInputs

#: Inputs of a comparison on many; more show little that these do not.
MOST_INPUTS = 50


class CompareStep(Step):
    """Verdict and strip, the graph stained by errors, and the evidence of one layer."""

    name = "Compare"
    title = tr("Do the backends agree?")

    def build(self) -> None:
        a, b = next(reversed(self.session.comparisons), self._sides())
        self.header.values = {"a": a, "b": b}
        self._offer()
        self.follow("targets", lambda _: self._offer())
        self.on(self.header, "compare", lambda _: self.measure())
        self.on(self.header, "many", lambda _: self._measure_many())
        self.many = DataTable()
        self.many.layout.display = "none"
        self.header.observe(self._switched, names=["values"])
        self.strip, self.graph, self.pane = ErrorStrip(), GraphView(), DifferencePane(height=496)
        self.on(self.strip, "run_on_a", self._run_on_a)
        self.on(self.strip, "compare", lambda _: self.measure())
        self.on(self.notice, "deploy", lambda _: self.go("Deploy"))
        self.pane.observe(lambda _: self.guard(self._evidence), names=["kind", "channel"])
        self.inside = InsidePanel(self, self._compared, open=True)
        self.link(self.strip, self.graph, self.pane)
        self._here = True  # both sides can run on this machine
        self._pixels: Any = None  # of the image that was compared last
        self.recipes = RecipesPanel(
            self, self._measure_image, self._input_image, detail=COMPARE, only_images=True
        )
        self.follow("input", lambda _: self.recipes.refresh())
        self.follow("versions", lambda _: self._buttons())
        self.follow("comparison", lambda _: self._newest())
        self.follow("selected", lambda _: self._evidence())
        self.follow("inputs", self._fill_many)
        self.show(
            self.strip,
            self.recipes.view,
            columns(self.graph, self.pane, kind="graph"),
            self.inside.view,
            self.many,
        )
        self._switch()
        if (a, b) not in self.session.comparisons and not self.pending:
            self.measure()

    def _offer(self) -> None:
        """Both sides' choices, named after the board that runs them."""
        options = [[n, self._named(n)] for n in self._choices()]
        a, b = (name if name in COLOURED else "" for name in self.pair)
        self.header.selects = [
            {
                "name": "a",
                "label": "",
                "says": tr("baseline"),
                "backend": a,
                "options": options,
            },
            {"name": "b", "label": tr("against"), "backend": b, "options": options},
        ]

    def _named(self, name: str) -> str:
        ((_, text, _),) = backend_options(self.session, name)
        return text

    def _sides(self) -> tuple[str, str]:
        from lite_engine.runtime import host_target, usability

        wanted = "opencl" in (self.session.targets or ["opencl"])
        other = "opencl" if wanted and usability("opencl").usable else "reference"
        return self.session.boards.target or host_target(), other

    def _choices(self) -> list[str]:
        versions = self._names() if len(self._names()) > 1 else []
        return ["x86", "opencl", "arm", "reference", *versions]

    def _names(self) -> list[str]:
        return list(self.session.versions)

    @property
    def pair(self) -> tuple[str, str]:
        return self.header.values["a"], self.header.values["b"]

    def _compared(self) -> tuple[str, ...]:
        """The two sides, once they were compared and where both can run."""
        return self.pair if self._here and self.pair in self.session.comparisons else ()

    def _buttons(self) -> None:
        session, pair = self.session, self.pair
        what = tr("Compare again") if pair in session.comparisons else tr("Compare")
        if comparisons.is_of_another_version(session, pair):
            what = tr("Compare {version}", version=session.version)
        version, given = session.compared_of.get(pair, ("", ""))
        of = version if len(session.versions) > 1 else ""
        self.header.note = " · ".join(filter(None, (of, given, session.clock("comparison", pair))))
        many = [button("many", tr("On many inputs"), why_not=self.waits)]
        self.header.buttons = [
            *(many if self._samples() else []),
            button(
                "compare",
                what,
                primary=True,
                why_not=self.waits,
            ),
        ]
        if not self.strip.comparison:
            self.strip.status = self._empty()

    def _empty(self) -> dict[str, Any]:
        text = tr("Both sides run once, then every layer runs on its own.")
        names = " and ".join(self._named(n) for n in self.pair)
        if self.pending:
            title = tr("Comparing {names}", names=names)
            return {"kind": "empty", "under_way": True, "title": title, "text": text}
        title = tr("{names} are not compared yet", names=names)
        return {"kind": "empty", "title": title, "text": text, "button": tr("Compare"),
                "action": "compare"}  # fmt: skip

    def _switched(self, change: dict[str, Any]) -> None:
        self._offer()  # a dot has the colour of the chosen backend
        self.guard(self._switch)

    def _switch(self) -> None:
        """Shows the chosen pair's comparison; before there is one nothing but the model."""
        if self.pair in self.session.comparisons:
            self._fill()
            return
        self.strip.comparison = self.graph.comparison = self.graph.profile = None
        self.pane.layer = None
        self.pane.layout.display = self.inside.view.layout.display = "none"
        model = self.session.versions.get(self.session.version)
        self.graph.graph = views.graph_data(model.graph if model else self.session.graph)
        self._buttons()

    @property
    def shown(self) -> str:
        at = self.session.clock("comparison", self.pair)
        a, b = map(side_name, self.pair)
        return tr("{a} against {b} at {at}", a=a, b=b, at=at) if at else ""

    def jobs_changed(self) -> None:
        self._buttons()

    def measure(self) -> None:
        """Compares the chosen pair in the background."""
        a, b = self.pair
        image = self._input_image()

        def work() -> None:
            self.recipes.look(image)
            self.session.compare(a, b)

        self.start(tr("Comparing {a} and {b}", a=side_name(a), b=side_name(b)), work)

    def _input_image(self) -> list[np.ndarray] | None:
        """The pixels of the session's image as inputs of their own, if it is one."""
        if self.session.image:
            self._pixels = np.asarray(open_image(self.session.image).convert("RGB"))
            return [self._pixels]
        return None

    def _measure_image(self) -> None:
        """Compares on the same image, prepared in another way."""
        (a, b), pixels = self.pair, self._pixels
        self.start(
            tr("Comparing {a} and {b}", a=side_name(a), b=side_name(b)),
            lambda: self.session.compare(a, b, pixels),
        )

    def _samples(self) -> str:
        """The folder of images or `.npz` beside the model that calibration would take, if any."""
        found = sources(self.session.path, self.session.graph)
        return found[0][0] if found else ""

    def _measure_many(self) -> None:
        """Compares the chosen pair on the samples beside the model: one input may not show what
        another does."""
        (a, b), samples = self.pair, self._samples()
        self.start(
            tr(
                "Comparing {a} and {b} on {samples}",
                a=side_name(a),
                b=side_name(b),
                samples=Path(samples).name,
            ),
            lambda: self.session.compare_many(samples, a, b, limit=MOST_INPUTS),
        )

    def _fill_many(self, made: ComparisonOfInputs) -> None:
        (traits,) = inputs_tables(made)
        with self.many.hold_sync():
            for name, value in traits.items():
                setattr(self.many, name, value)
        self.many.layout.display = None

    def _newest(self) -> None:
        """Shows the pair that was compared last, whoever asked for it."""
        a, b = next(reversed(self.session.comparisons))
        if self.pair != (a, b):
            self.header.values = {"a": a, "b": b}
        else:
            self._fill()

    def _fill(self) -> None:
        if self.pair not in self.session.comparisons:
            return
        graph = comparisons.graph_of(self.session, self.pair)
        missing = comparisons.missing_side(self.session, self.pair)
        self._here = missing is None
        data = views.session_comparison(self.session, self.pair)
        self._buttons()
        with self.strip.hold_sync():
            self.strip.status = {}
            self.strip.tolerance = data["usual_tolerance"]
            self.strip.by_operator, self.strip.op_tolerances = False, {}
            self.strip.comparison = data
        self.graph.graph = views.graph_data(graph)
        last = next(reversed(self.session.profiles), None)
        self.graph.profile = views.session_profile(self.session, last) if last else None
        self.graph.op_tolerances = {}
        self.graph.tolerance = self.pane.tolerance = data["usual_tolerance"]
        self.graph.comparison = data
        self.pane.a, self.pane.b = self.pair
        values = None if self._here else "none"
        self.pane.layout.display = self.inside.view.layout.display = values
        if missing is not None:
            what = tr("**This comparison was made elsewhere**: {reason}", reason=missing.what)
            fix = tr(
                "The values of its layers are not in the file; to see them here, {fix}",
                fix=missing.fix,
            )
            self.tell("warn", what, detail=fix)
        finding = self.session.comparisons[self.pair].finding
        if finding.kind == "layer_fails":
            self.session.selected = finding.layer
        self.pane.layer = None
        self._evidence()
        self.inside.refresh(again=True)

    # ---- one layer

    def _evidence(self) -> None:
        """The picked layer's two outputs, alone or as they came."""
        comparison = self.session.comparisons.get(self.pair)
        picked = self.session.selected[-1:]
        rows = self.strip.comparison["layers"] if comparison and self.strip.comparison else []
        row = next((r for r in rows if r["name"] in picked), None)
        if comparison is None or row is None or not self._here:
            return
        fresh = self.pane.layer is None or self.pane.layer["name"] != row["name"]
        if fresh:
            carried = row["state"] in ("propagated", "differing")
            with self.pane.hold_trait_notifications():
                self.pane.kind = "accumulated" if carried else "isolated"
                self.pane.layer = views.pane_layer(row, comparison)
        a, b = self.pair
        of: dict[str, Any] = {"pair": self.pair, "outputs": views.compared_outputs(row)}
        first = self.session.values(a, row["name"], **of)
        alone = a if self.pane.kind == "isolated" else None
        second = self.session.values(b, row["name"], alone_after=alone, **of)
        self.pane.show(first, second, **({} if fresh else {"channel": self.pane.channel}))

    def _run_on_a(self, payload: dict[str, Any]) -> None:
        """The fix: this layer on the trusted side; measured and compared again."""
        layer, (a, b) = payload["layer"], self.pair

        def work() -> None:
            change = self.session.try_override(layer, a, b)
            self.session.compare(a, b)
            for side in (a, b):
                self.session.run(backend=side)
            self.on_main(lambda: self._fixed(layer, change))

        self.start(tr("Running {layer} on {a}", layer=layer, a=a), work)

    def _fixed(self, layer: str, change: Change) -> None:
        a, b = self.pair
        self.tell(
            "done",
            tr(
                "**{layer} runs on {a}**: {change} on {b}.",
                layer=layer,
                a=self._named(a),
                change=change,
                b=self._named(b),
            ),
            detail=tr("All other layers stay where they were."),
            actions=[["deploy", tr("Deploy"), False]],
        )
