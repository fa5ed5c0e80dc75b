"""Sweep: the cells, the Pareto front, and the cell for a goal."""

from __future__ import annotations

import html
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from lite_engine.display import number_text
from lite_engine.runtime import strict_json
from lite_messages import tr

from ..evaluate.display import html_table
from ..evaluate.results import shown
from .cells import Cell

if TYPE_CHECKING:
    import pandas as pd
    from plotly.graph_objects import Figure

HEADS = ("", tr("backend"), tr("precision"), tr("threads"), tr("batch"), tr("streams"),
         tr("latency"), tr("samples/s"), tr("memory, MB"))  # fmt: skip


@dataclass
class Sweep:
    """What `lite sweep` measured. `max_ms` is the latency goal, `min_rate` the throughput goal in
    samples per second, if there are any."""

    model: str
    cells: list[Cell]
    environment: dict[str, Any] = field(default_factory=dict)
    max_ms: float | None = None
    rounds: int = 0
    notes: list[str] = field(default_factory=list)
    min_rate: float | None = None

    @property
    def front(self) -> list[Cell]:
        """The cells that no other one beats, fastest first."""
        return sorted((c for c in self.cells if c.front), key=lambda c: c.latency_ms or 0)

    @property
    def fastest(self) -> Cell | None:
        """The least latency."""
        return min(self._measured(), key=lambda c: c.latency_ms or 0, default=None)

    @property
    def best(self) -> Cell | None:
        """The sweet spot among the cells that reach every goal, None when there is none: the least
        latency for a throughput goal, else the most samples per second."""
        within = [
            c for c in self._measured()
            if (self.max_ms is None or (c.latency_ms or 0) <= self.max_ms)
            and (c.throughput or 0) >= (self.min_rate or 0)
        ]  # fmt: skip
        if self.min_rate is not None:
            return min(within, key=lambda c: c.latency_ms or 0, default=None)
        return max(within, key=lambda c: c.throughput or 0, default=None)

    def _measured(self) -> list[Cell]:
        return [c for c in self.cells if c.status == "measured"]

    @property
    def sentences(self) -> list[str]:
        """The sweet spots in words."""
        fastest, best = self.fastest, self.best
        lines = []
        if fastest is not None:
            lines.append(
                tr("least latency: {choice}, {ms}", choice=fastest.choice, ms=_ms(fastest))
            )
        if best is not None and self.min_rate is not None:
            lines.append(_quickest(best, self.min_rate, self.max_ms))
        elif best is not None:
            lines.append(_highest(best, self.max_ms))
        else:
            lines += self._missed()
        return [*lines, *self.notes]

    def _missed(self) -> list[str]:
        """What no combination reaches, and how near the best one comes."""
        made = []
        if self.max_ms is not None and (self.fastest is None or self._over(self.fastest)):
            made.append(tr("no combination runs within {ms:g} ms", ms=self.max_ms))
        most = max(self._measured(), key=lambda c: c.throughput or 0, default=None)
        if self.min_rate is not None and most is not None and not made:
            if (most.throughput or 0) < self.min_rate:
                made.append(tr("no combination has {rate:g} samples/s", rate=self.min_rate))
                made.append(_highest(most, None))
            else:
                made.append(tr("no combination has {rate:g} samples/s within {ms:g} ms",
                               rate=self.min_rate, ms=self.max_ms))  # fmt: skip
        return made

    def _over(self, cell: Cell) -> bool:
        return self.max_ms is not None and (cell.latency_ms or 0) > self.max_ms

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_json(self, **options: Any) -> str:
        return strict_json.dumps(self.to_dict(), **options)

    def to_dataframe(self) -> pd.DataFrame:
        """A row per cell."""
        import pandas as pd

        rows = [{**asdict(c.choice), **asdict(c)} for c in self.cells]
        return pd.DataFrame(rows).drop(columns="choice")

    def figure(self) -> Figure:
        """A plotly figure: latency and throughput of each cell, the front joined by a line."""
        from lite_engine.figures import new_figure, plotly

        measured, front, go = self._measured(), self.front, plotly()
        cells = go.Scatter(
            x=[c.latency_ms for c in measured], y=[c.throughput for c in measured], mode="markers",
            text=[str(c.choice) for c in measured], name=tr("combinations"),
        )  # fmt: skip
        line = go.Scatter(
            x=[c.latency_ms for c in front], y=[c.throughput for c in front], mode="lines",
            name=tr("Pareto front"), hoverinfo="skip",
        )  # fmt: skip
        heads = tr("latency of a batch, ms"), tr("samples/s")
        return new_figure([cells, line], self.model, *heads)

    def _repr_html_(self) -> str:
        heads, rows = self.table()
        said = "".join(f"<p>{html.escape(s)}</p>" for s in self.sentences)
        return f"<b>{html.escape(self.model)}</b>{html_table(heads, rows)}{said}"

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Headings and a row per cell, best throughput first; ★ marks the front."""
        metric = next((c.metric for c in self.cells if c.metric), "")
        energy = any(c.energy_mj is not None for c in self.cells)
        elsewhere = any(c.choice.device != "local" for c in self.cells)
        machines = len({c.machine for c in self.cells if c.machine}) > 1
        heads = [*HEADS, *([tr("energy, mJ")] if energy else []), *([metric] if metric else []),
                 *([tr("device")] if elsewhere else []), *([tr("machine")] if machines else []),
                 ""]  # fmt: skip
        ordered = sorted(self.cells, key=lambda c: -(c.throughput or 0))
        return heads, [_row(c, energy, bool(metric), elsewhere, machines) for c in ordered]

    def __repr__(self) -> str:
        return f"<Sweep of {self.model}: {len(self.cells)} cells, {len(self.front)} on the front>"


def _quickest(best: Cell, rate: float, limit: float | None) -> str:
    if limit is None:
        return tr("least latency with at least {goal:g} samples/s: {choice}, {ms}, {rate} "
                  "samples/s", goal=rate, choice=best.choice, ms=_ms(best),
                  rate=number_text(best.throughput or 0.0))  # fmt: skip
    return tr(
        "least latency with at least {goal:g} samples/s within {limit:g} ms: {choice}, {ms}, "
        "{rate} samples/s", goal=rate, limit=limit, choice=best.choice, ms=_ms(best),
        rate=number_text(best.throughput or 0.0),
    )  # fmt: skip


def _highest(best: Cell, limit: float | None) -> str:
    if limit is None:
        return tr("highest throughput: {choice}, {rate} samples/s, {ms}",
                  choice=best.choice, ms=_ms(best),
                  rate=number_text(best.throughput or 0.0))  # fmt: skip
    return tr(
        "highest throughput within {limit:g} ms: {choice}, {rate} samples/s, {ms}",
        limit=limit, choice=best.choice, rate=number_text(best.throughput or 0.0), ms=_ms(best),
    )  # fmt: skip


def _row(cell: Cell, energy: bool, metric: bool, elsewhere: bool, machines: bool) -> list[str]:
    c = cell.choice
    memory = "–" if cell.memory_bytes is None else f"{cell.memory_bytes / 1e6:.1f}"
    rate = "–" if cell.throughput is None else number_text(cell.throughput)
    last = ["–" if cell.value is None else shown(cell.metric, cell.value)] if metric else []
    last += [c.device] if elsewhere else []
    last += [cell.machine] if machines else []
    if energy:
        last.insert(0, "–" if cell.energy_mj is None else f"{cell.energy_mj:.3g}")
    said = "" if cell.status == "measured" else f"{cell.status}: {cell.why}"
    return ["★" if cell.front else "", c.backend, c.precision, str(c.threads), str(c.batch),
            str(c.streams), _ms(cell), rate, memory, *last, said]  # fmt: skip


def _ms(cell: Cell) -> str:
    if cell.latency_ms is None:
        return "–"
    margin = f" ± {cell.ci_ms:.2g}" if cell.ci_ms is not None else ""
    return f"{cell.latency_ms:.3g}{margin} ms"
