"""What the Evaluate step measures besides accuracy: the sweep and the recommendation."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lite_engine.errors import UsageError
from lite_messages import tr
from lite_widgets import DataTable, Form, Notice, SweepChart

from ..answer_tables import recommendation_tables, sweep_chart, sweep_tables
from ..evaluate import Drop
from ..sweep.cells import counts_of
from ._base import stack

if TYPE_CHECKING:
    from ..recommend import Recommendation
    from ..sweep import Sweep

T = TypeVar("T")

#: Starts long work of the step: title, work.
Start = Callable[[str, Callable[[], object]], object]


class SweepPanel:
    """Threads, batch sizes and streams to measure; the matrix, its Pareto front and the best
    combination for a latency goal."""

    def __init__(self) -> None:
        self.form = Form(
            title=tr("Sweep the choices"), closable=False, button=tr("Sweep"),
            fields=[
                {"name": "backends", "label": tr("Backends"), "hint": "auto"},
                {"name": "precisions", "label": tr("Precisions"), "hint": "fp32,int8"},
                {"name": "threads", "label": tr("Threads"), "hint": "1, 2, 4"},
                {"name": "batches", "label": tr("Batch sizes"), "hint": "1, 4"},
                {"name": "streams", "label": tr("Streams"), "hint": "1, 2"},
                {"name": "max_ms", "label": tr("Latency goal, ms"), "optional": True},
                {"name": "min_rate", "label": tr("Throughput goal, samples/s"), "optional": True},
            ],
            values={"backends": "auto", "precisions": "auto", "threads": "1", "batches": "1",
                    "streams": "1"},
            note=tr("Combinations are measured in turns; with a data set, each backend and "
                    "precision is evaluated, too."),
        )  # fmt: skip
        self.chart, self.table = SweepChart(), DataTable()
        self.table.layout.display = "none"
        self.box = stack(self.form, self.chart, self.table)

    def asked(self, values: Mapping[str, str]) -> dict[str, Any]:
        """The options of `Session.sweep`. Raises UsageError, and marks the wrong field."""
        made: dict[str, Any] = {}
        for name in ("threads", "batches", "streams"):
            made[name] = self._read(name, values, counts_of)
        for name in ("backends", "precisions"):
            made[name] = [w.strip() for w in values[name].split(",") if w.strip()]
        for name in ("max_ms", "min_rate"):
            made[name] = self._read(name, values, _positive)
        self.form.errors = {}
        return made

    def _read(self, name: str, values: Mapping[str, str], read: Callable[[str], T]) -> T | None:
        return _marked(self.form, name, values, read)

    def fill(self, made: Sweep) -> None:
        for name, value in sweep_chart(made).items():
            setattr(self.chart, name, value)
        _show(self.table, sweep_tables(made)[0])


class RecommendPanel:
    """Budgets of accuracy, latency and size; every candidate with why it was not chosen."""

    def __init__(self) -> None:
        self.form = Form(
            title=tr("Recommend a version"), closable=False, button=tr("Recommend"),
            fields=[
                {"name": "max_drop", "label": tr("The metric may lose: %, dB or hundredths"),
                 "hint": "0.5"},
                {"name": "max_ms", "label": tr("Latency limit, ms"), "optional": True},
                {"name": "max_mb", "label": tr("Size limit of the file, MB"), "optional": True},
                {"name": "device", "label": tr("Device"), "hint": "local", "optional": True},
                {"name": "output", "label": tr("File to write"), "hint": "best.lite",
                 "optional": True},
            ],
            values={"max_drop": "0.5"},
            note=tr("fp32, fp16, bf16, int8 (several methods, with layers in float where needed), "
                    "weights in 8 and 4 bits, fewer channels and zeros in weights are measured on "
                    "every backend that works; a fifth of the data set calibrates, the rest "
                    "measures the loss."),
        )  # fmt: skip
        self.said, self.table = Notice(), DataTable()
        for widget in (self.said, self.table):
            widget.layout.display = "none"
        self.box = stack(self.form, self.said, self.table)

    def asked(self, values: Mapping[str, str]) -> dict[str, Any]:
        """The options of `Session.recommend`. Raises UsageError, and marks the wrong field."""
        made = {name: _marked(self.form, name, values, _positive)
                for name in ("max_drop", "max_ms", "max_mb")}  # fmt: skip
        self.form.errors = {}
        options: dict[str, Any] = {n: value for n, value in made.items() if value is not None}
        options["max_drop"] = Drop(made["max_drop"] or 0.0, hundredths=True)
        if output := values.get("output"):  # where it is now: the job may begin in another folder
            options["output"] = str(Path(output).expanduser().absolute())
        return {**options, **({"device": d} if (d := values.get("device")) else {})}

    def fill(self, made: Recommendation) -> None:
        self.said.set_trait("kind", "warn" if made.chosen is None else "done")
        self.said.what = f"**{made.sentence}**"
        self.said.detail = " · ".join(made.notes)
        self.said.where = made.file
        self.said.layout.display = None
        _show(self.table, recommendation_tables(made)[0])


def _show(table: DataTable, traits: Mapping[str, Any]) -> None:
    with table.hold_sync():
        for name, value in traits.items():
            setattr(table, name, value)
    table.layout.display = None


def _marked(form: Form, name: str, values: Mapping[str, str], read: Callable[[str], T]) -> T | None:
    """The value of a field; None for an empty one. Raises UsageError after marking the field."""
    text = values.get(name, "").strip()
    if not text:
        return None
    try:
        return read(text)
    except UsageError as error:
        form.values, form.errors = dict(values), {name: error.what}
        raise


def _positive(text: str) -> float:
    """Raises UsageError."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number < float("inf"):
        raise UsageError(tr("{text!r} is not a number of 0 or more", text=text))
    return number
