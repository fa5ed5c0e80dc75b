"""Quantize: how small may the numbers be?"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.errors import UsageError
from lite_engine.ir import Graph, Node, format_shape
from lite_engine.quantize import in_integers
from lite_messages import tr
from lite_widgets import DropZone, RangePlot, SensitivityList, TradeOff, columns

from ..inputs import save_upload, takes_images
from ..quantizing import NOTHING, fits, labeled
from ._base import Step, backend_options, button
from ._picture import choices, chosen, prepare
from ._recipes import RecipesPanel

#: Samples that calibrate from the page: more change little and take longer.
LIMIT = 24
#: Labeled samples that judge the versions.
JUDGING = 400
_NOT_YET = {
    "kind": "empty",
    "title": tr("Not quantized yet"),
    "button": tr("Quantize"),
    "action": "start",
    "text": tr(
        "Calibrates on the samples, then measures several versions of the model. The "
        "remaining time is known after two samples."
    ),
}
_INTEGERS = {
    "kind": "empty", "title": tr("Already quantized"),
    "text": tr("To choose other ranges or layers, open the original float model."),
}  # fmt: skip
_QUANTIZING = {
    "kind": "empty", "under_way": True, "title": tr("Quantizing"),
    "text": tr("The remaining time is known after two samples."),
}  # fmt: skip
_NO_SAMPLES = {
    "kind": "empty",
    "title": tr("Not quantized yet"),
    "text": tr("int8 needs the value range of each layer: add typical inputs to measure it on."),
}
_NO_RANGES = {
    "kind": "empty", "title": tr("No value ranges yet"),
    "text": tr("The distribution of a layer's values, and what is clipped."),
}  # fmt: skip
_PICK: dict[str, Any] = {}  # the plot's own words
#: The first is what the page begins with; "auto" compares several and takes longer.
METHODS = ("mse", "auto", "kl", "minmax", "hist", "avg")
#: What a quantization depends on, besides how images become inputs.
_SETTINGS = ("samples", "method", "judged", "backend")
_JUDGED = [["float", tr("same result as float")], ["labels", tr("labels of the samples")]]


class QuantizeStep(Step):
    """Calibrate, measure versions that keep the worst layers in float, keep one."""

    name = "Quantize"
    title = tr("Can it run in int8?")

    def build(self) -> None:
        self._asked: dict[str, Any] = {}  # the settings that a run here was begun with
        self._made_with: dict[str, Any] = {}  # those of what is on show
        self._look()
        self.header.observe(lambda _: self.guard(self._prepare), ["values"])
        self.on(self.header, "run", lambda _: self._run())
        self.on(self.notice, "again", lambda _: self._look_again())
        self.on(self.header, "keep", lambda _: self._keep())
        self.trade = TradeOff(metric=tr("same result as float"))
        self.layers = SensitivityList(
            note=tr("relative error of the outputs when only this layer is int8, in %"), unit="%"
        )
        self.range = RangePlot()
        self.on(self.trade, "start", lambda _: self._run())
        self.trade.observe(lambda _: self._kept(), names=["best"])
        self.link(self.layers)
        self.follow("prepared", lambda _: self._look_again())
        self.follow("targets", lambda _: self._retarget())
        self.follow("quantization", lambda _: self._fill())
        self.follow("selected", lambda _: self._ranges())
        self.drop = DropZone(label=tr("Drop or choose samples (.npz)…"), accept=".npz")
        self.drop.on_file(lambda name, data: self.guard(lambda: self._arrived(name, data)))
        self.recipes = RecipesPanel(self, self._run, self._pictures, only_images=True)
        self.show(
            self.drop, self.recipes.view, columns(self.trade, self.range, kind="wide"), self.layers
        )
        self._buttons()
        if self.session.quantization is not None:
            self._fill()

    def _pictures(self) -> str | None:
        """The folder of images that calibrates: arrays are prepared already."""
        samples = self.header.values.get("samples", "")
        return samples if samples and not samples.endswith(".npz") else None

    def _arrived(self, name: str, data: bytes) -> None:
        """Samples lie where they are looked for."""
        path = save_upload(name, data)
        self._look_again()
        if not self.header.values["samples"]:
            shapes = ", ".join(
                f"{v.name} {format_shape(v.shape)}" for v in self.session.graph.inputs
            )
            raise UsageError(
                tr("{file} does not hold samples for this model", file=path.name),
                fix=tr("save several inputs under the model's names: {shapes}", shapes=shapes),
            )

    def _look(self) -> None:
        """What there is to calibrate with."""
        options, values = self._sources(), self.header.values
        places = backend_options(self.session)
        self.header.segments = {"name": "backend", "label": tr("Measured on"), "options": places}
        known = values.get("samples") in [value for value, _ in options]
        samples = values["samples"] if known else options[0][0] if options else ""
        self.header.selects = self._selects(options, samples)
        self.header.values = {
            "method": METHODS[0], "judged": "float", "backend": places[0][0], **values,
            **chosen(self.session), "samples": samples,
        }  # fmt: skip

    def _retarget(self) -> None:
        """The versions are measured on one of the targets as they are now."""
        places = backend_options(self.session)
        if self.header.values["backend"] not in [name for name, *_ in places]:
            self.header.values = {**self.header.values, "backend": places[0][0]}
        if self.header.segments:  # a model in integers has none
            self.header.segments = {**self.header.segments, "options": places}

    def _sources(self) -> list[list[str]]:
        return sources(self.session.path, self.session.graph)

    def _selects(self, options: list[list[str]], samples: str) -> list[dict[str, Any]]:
        """What can be chosen; arrays are inputs already, pictures have to become some."""
        return [
            *([{"name": "samples", "label": tr("Samples"), "options": options}] if options else []),
            {"name": "method", "label": tr("Clipping"), "options": [[m, m] for m in METHODS]},
            *(
                [{"name": "judged", "label": tr("Accuracy"), "options": _JUDGED}]
                if labeled(samples)
                else []
            ),
            *(choices(self.session) if not samples.endswith(".npz") else []),
        ]

    def _prepare(self) -> None:
        try:
            prepare(self.session, self.header.values)
        finally:
            values = {**self.header.values, **chosen(self.session)}
            if self.header.selects:
                options = self._sources()
                self.header.selects = self._selects(options, values.get("samples", ""))
            self.header.values = values
            self.recipes.refresh()
            self._buttons()

    def _look_again(self) -> None:
        self.quiet()
        self._look()
        self.recipes.refresh()
        self._buttons()

    @property
    def shown(self) -> str:
        return tr("the version quantized before") if self.trade.points else ""

    def jobs_changed(self) -> None:
        self._look()
        self._buttons()

    def _buttons(self) -> None:
        read = self.session.versions.get(self.session.base, self.session)
        self.drop.layout.display = "none"
        if in_integers(read.graph):
            self.header.selects, self.header.buttons, self.header.segments = [], [], {}
            self.trade.status = _INTEGERS
            self.range.layout.display = self.layers.layout.display = "none"  # nothing to measure
            return
        points = bool(self.trade.points)
        no_samples = not self.header.values.get("samples")
        # What is on show was made with other settings than those that are chosen now.
        stale = points and any(self.header.values.get(k) != v for k, v in self._made_with.items())
        what = tr("Quantize with these settings") if stale else tr("Run again")
        self.header.buttons = [
            button("run", what if points else tr("Quantize"), primary=stale or not points,
                   why_not=self.waits or (tr("There are no samples yet.") if no_samples else "")),
            *([button("keep", tr("Keep this version"), primary=not stale, why_not=self.waits)]
              if points else []),
        ]  # fmt: skip
        if not self.range.layer:
            self.range.status = _PICK if points else _NO_RANGES
        if not points:
            self.trade.status = (
                _QUANTIZING if self.pending else _NO_SAMPLES if no_samples else self._unmeasured()
            )
        if no_samples:
            self.drop.layout.display = None
            images = takes_images(self.session.graph)
            where = tr(
                "Put a folder with at least two images, or an `.npz` of inputs, "
                "beside the model or into `{cwd}`.",
                cwd=Path.cwd(),
            ) if images else tr(
                "Put an `.npz` of inputs beside the model or into `{cwd}`.", cwd=Path.cwd()
            )  # fmt: skip
            self.tell(
                "warn",
                tr("**There are no calibration samples.**"),
                again=tr("Search again"),
                detail=where,
            )

    def _unmeasured(self) -> dict[str, Any]:
        """What stands in place of the versions: code may have quantized without measuring them."""
        made = self.session.quantization
        if made is None:
            return _NOT_YET
        said = tr("int8 against the float model: {decibels} dB.",
                  decibels=f"{made.verdict.sqnr_db:.0f}")  # fmt: skip
        return {**_NOT_YET, "title": tr("Quantized; other versions are not measured yet"),
                "text": f"{said} {_NOT_YET['text']}"}  # fmt: skip

    def _run(self) -> None:
        session, values = self.session, self.header.values
        self._asked = {name: values.get(name) for name in _SETTINGS}

        def work() -> None:
            self.recipes.look(values["samples"])
            session.quantize(values["samples"], method=values["method"], limit=LIMIT)
            judging = values["judged"] == "labels" and labeled(values["samples"])
            given = {"data": values["samples"], "limit": JUDGING} if judging else {}
            session.explore(values["backend"], **given)

        self.start(tr("Quantizing"), work)

    def _fill(self) -> None:
        made = self.session.quantization
        if made is None or not made.points:
            return
        with self.trade.hold_sync():
            self.trade.status = {}
            self.trade.method = made.method
            self.trade.metric = made.accuracy_name
            self.trade.float_ = made.float_point
            self.trade.points = made.points
        self.layers.layers = made.layers
        self.layers.status = {} if made.layers else {"kind": "empty", "title": NOTHING, "text": ""}
        if not self._asked:  # made in Python: the settings are those that it was made with
            given = {"judged": "labels" if made.metric else "float"}
            given |= {"method": made.method} if made.method in METHODS else {}
            self.header.values = {**self.header.values, **given}
        self._made_with = self._asked or {n: self.header.values.get(n) for n in _SETTINGS}
        self._asked = {}
        samples = made.made.calibration.samples
        said = tr(
            "{samples} samples, checked on {held} held-out samples",
            samples=samples,
            held=made.judged or len(made.made.held),
        )
        self.header.note = f"{made.method} · {said}"
        self._buttons()
        self._kept()
        names = {row["name"] for row in made.layers}
        if made.layers and not names.intersection(self.session.selected):
            self.session.selected = made.layers[0]["name"]
        self._ranges()

    def _kept(self) -> None:
        """Marks the layers that the best version keeps in float."""
        best = self.trade.best
        if 0 <= best < len(self.trade.points):
            self.layers.kept = self.trade.points[best]["kept"]

    def _ranges(self) -> None:
        """Histogram and clipping of the picked layer's output."""
        made = self.session.quantization
        if made is None or not self.session.selected:
            return
        name = self.session.selected[-1]
        node = next((n for n in made.made.parent.nodes if n.name == name), None)
        statistics = node and made.made.calibration.statistics.get(node.output.name)
        chosen = node and made.made.finished().ranges.values.get(node.output.name)
        if node is None or not statistics or not chosen:
            return
        counts = _binned(statistics.counts)
        self.range.status = {}
        self.range.layer = {
            "name": name, "kept": name in self.layers.kept, "cost": None,
            "low": float(statistics.centres[0]), "high": float(statistics.centres[-1]),
            "counts": counts, "clip_low": float(chosen[0]), "clip_high": float(chosen[1]),
            "method": made.made.finished().ranges.method, "weights": _weights(node),
        }  # fmt: skip

    def _keep(self) -> None:
        session, values, made = self.session, self.header.values, self.session.quantization
        kept = self.trade.points[self.trade.best]["kept"] if self.trade.best >= 0 else []
        if kept and made is not None:
            self.start(
                tr("Quantizing"),
                lambda: session.quantize(
                    values["samples"],
                    made.method,
                    keep_float=kept,
                    limit=LIMIT,
                    equalize=made.made.options.equalize,
                ),
            )
        else:
            session.use("int8")
        self.go("Run")


def _binned(counts: np.ndarray, bins: int = 64) -> list[int]:
    return [int(part.sum()) for part in np.array_split(counts, min(bins, len(counts)))]


def _weights(node: Node) -> list[list[float]] | None:
    """(low, high) per output channel, or None."""
    weight = node.inputs[1].const if len(node.inputs) > 1 and node.inputs[1] is not None else None
    if weight is None or weight.ndim < 2:
        return None
    flat = weight.reshape(len(weight), -1)
    return [[float(row.min()), float(row.max())] for row in flat[:256]]


def sources(model: Path, graph: Graph) -> list[list[str]]:
    """[[path, text]]: `.npz` files that fit the model's inputs and folders of images, beside the
    model and here."""
    from lite_engine.images import is_image

    found: dict[Path, str] = {}
    for folder in {p.resolve(): p for p in (model.parent, Path())}.values():
        own = sorted(p for p in folder.glob("*.npz") if fits(graph, p))
        own.sort(key=lambda p: not p.name.startswith(model.stem))
        found |= {p: p.name for p in own}
        inside = folder.iterdir() if takes_images(graph) else ()
        for inner in sorted(p for p in inside if p.is_dir() and os.access(p, os.R_OK)):
            if any(is_image(p) for p in list(inner.iterdir())[:50]):
                found[inner] = f"{inner.name}/"
    return [[str(path), text] for path, text in found.items()]
