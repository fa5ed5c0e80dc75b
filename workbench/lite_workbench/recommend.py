"""What goes to the device? Versions, backends and threads are measured, and the fastest that keeps
the budgets of accuracy, latency and size is written with its evidence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from lite_engine.devices import find_device
from lite_engine.errors import LiteError
from lite_engine.model_file import in_float, parse_targets
from lite_engine.runtime import host_target, strict_json, usability
from lite_messages import tr, trn

from .budget import split, too_few
from .evaluate.display import html_table
from .evaluate.results import Metric, limit_of, readable, shown, unit_of, with_unit
from .names import with_ending
from .recommend_versions import KINDS, Kept, Version, versions
from .sweep import Cell, sweep
from .sweep.measure import not_timed
from .sweep.saved import key_of

if TYPE_CHECKING:
    from lite_engine.model_file import Model

    from .evaluate import Dataset


@dataclass
class Candidate:
    """One measured way to run the model. `why` is empty for one that keeps every budget."""

    cell: Cell
    version: str
    file_bytes: int
    drop: float
    why: str = ""


@dataclass
class Recommendation:
    """The candidates, those within the budgets first and fastest first. A candidate's `drop` and
    `max_drop` are differences of the metric; `file` is what was written, "" for nothing."""

    model: str
    metric: str
    baseline: float
    samples: int
    max_drop: float
    max_ms: float | None
    max_mb: float | None
    candidates: list[Candidate]
    file: str = ""
    notes: list[str] = field(default_factory=list)

    @property
    def chosen(self) -> Candidate | None:
        """The fastest within the budgets."""
        return next((c for c in self.candidates if not c.why), None)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def _repr_html_(self) -> str:
        heads, rows = self.table()
        return f"<p>{escape(self.sentence)}</p>{html_table(heads, rows)}"

    def __repr__(self) -> str:
        return f"<Recommendation for {self.model}: {self.sentence}>"

    def to_json(self, **options: Any) -> str:
        return strict_json.dumps(self.to_dict(), **options)

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Headings and a row for each candidate."""
        heads = ["", tr("version"), tr("backend"), tr("threads"), tr("latency, ms"), self.metric,
                 _drop_head(self.metric), tr("file, MB"), ""]  # fmt: skip
        return heads, [_row(c, self.metric, c is self.chosen) for c in self.candidates]

    @property
    def sentence(self) -> str:
        """What goes to the device, and why."""
        chosen = self.chosen
        if chosen is None:
            return tr("no version is within the budgets; the reason is next to each")
        return tr(
            "{version} on {backend} with {threads}: {latency:.3g} ms, {metric} "
            "{value} ({drop}), {size:.2f} MB",
            version=chosen.version, backend=chosen.cell.choice.backend,
            threads=trn("{n} thread", "{n} threads", chosen.cell.choice.threads),
            latency=chosen.cell.latency_ms or 0,
            metric=self.metric, value=shown(self.metric, chosen.cell.value or 0.0),
            drop="+" * (chosen.drop <= 0) + with_unit(self.metric, 0.0 - chosen.drop),
            size=chosen.file_bytes / 1e6,
        )  # fmt: skip


def _drop_head(metric: str) -> str:
    heads = {"%": tr("drop, points"), "dB": tr("drop, dB")}
    return heads.get(unit_of(metric), tr("drop"))


def _row(made: Candidate, metric: str, chosen: bool) -> list[str]:
    cell = made.cell
    value = "–"
    if cell.value is not None and cell.low is not None and cell.high is not None:
        value = Metric(cell.metric, cell.value, cell.low, cell.high, cell.higher_is_better).figure
    latency = "–" if cell.latency_ms is None else f"{cell.latency_ms:.3g}"
    lost, size = readable(metric, made.drop), f"{made.file_bytes / 1e6:.2f}"
    return ["→" if chosen else "", made.version, cell.choice.backend, str(cell.choice.threads),
            latency, value, lost, size, made.why]  # fmt: skip


def recommend(
    model: Model,
    data: Dataset,
    *,
    max_drop: float,
    max_ms: float | None = None,
    max_mb: float | None = None,
    backends: Sequence[str] = (),
    threads: Sequence[int] = (1,),
    device: str = "local",
    labels: Sequence[str] | None = None,
    output: str | Path | None = None,
    resume: str | Path | None = None,
    kinds: Collection[str] = KINDS,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> Recommendation:
    """Measures the versions of a float model, those of `recommend_versions` (these `kinds`), on
    these backends of `device` (default: all that work there), and writes the fastest within the
    budgets to `output`. A fifth of the data calibrates, all versions are judged on the same others.
    `resume` names a folder that keeps what is finished. `progress` counts versions; the total is
    not known before the end. Raises LiteError."""
    model, names = in_float(model), parse_targets(list(backends) or _backends(device))
    _, judging = split(data, None)
    notes: list[str] = []
    found: list[Candidate] = []
    known: dict[str, Version] = {}
    with TemporaryDirectory() as passing:
        kept = Kept(Path(resume or passing), _key(model, data, max_drop, names), names)
        for made in versions(model, data, max_drop, labels, kept, notes, kinds):
            measured = sweep(
                made.model, backends=names, precisions=[made.precision], threads=threads,
                devices=[device], data=judging, labels=labels, resume=kept.cells(made.name),
            )  # fmt: skip
            sizes = {target: made.bytes_on(target) for target in names}
            found += [Candidate(c, made.name, sizes[c.choice.backend], 0.0) for c in measured.cells]
            known[made.name] = made
            progress(len(known), 0)
        best = [c.cell for c in found if c.version == "fp32" and c.cell.value is not None]
        if not best:
            why = next((c.cell.why for c in found if c.cell.why), "; ".join(notes))
            raise LiteError(
                tr("the float model could not be evaluated ({reason})", reason=why),
                where=model.name,
            )
        if few := too_few(best[0].metric, max_drop, len(judging)):
            notes.append(few)
        for candidate in found:
            _judge(candidate, best[0], max_drop, max_ms, max_mb)
        out = Recommendation(
            model.name, best[0].metric, best[0].value or 0.0, len(judging), max_drop, max_ms,
            max_mb, _ordered(found), notes=notes,
        )  # fmt: skip
        if output is not None:
            _write(out, known, with_ending(output, ".lite"))
    return out


def _ordered(found: Sequence[Candidate]) -> list[Candidate]:
    """Those within the budgets first, fastest first."""
    return sorted(found, key=lambda c: (bool(c.why), c.cell.latency_ms or float("inf")))


def _write(made: Recommendation, known: Mapping[str, Version], path: Path) -> None:
    """Writes the chosen version, for the backend that it was chosen on, with its evidence. That is
    a part of the file, too: one that then is too large makes way for the next."""
    while (chosen := made.chosen) is not None:
        own = known[chosen.version].on(chosen.cell.choice.backend)
        own.metadata["evidence"] = _evidence(made, chosen)
        with TemporaryDirectory() as passing:
            chosen.file_bytes = own.save(Path(passing) / path.name).stat().st_size
        chosen.why = _too_large(chosen, made.max_mb)
        if chosen.why:
            made.candidates = _ordered(made.candidates)
            continue
        made.file = str(own.save(path))
        return


def _key(model: Model, data: Dataset, max_drop: float, targets: Sequence[str]) -> str:
    """What a folder of versions belongs to."""
    names = [sample.name for sample in data.samples]
    meta = model.metadata.get("preprocess"), model.metadata.get("adapter")
    return key_of(
        model.path, [],
        repr((data.name, names, max_drop, meta, sorted(targets), *filter(None, [data.metric]))),
    )  # fmt: skip


def _backends(device: str) -> list[str]:
    """What works there: the CPU, and OpenCL here. Raises LiteError."""
    board = find_device(device)
    if board is not None and not board.times_meaningful:
        raise not_timed(device)
    if board is not None:
        return [board.target()]
    return [b for b in (host_target(), "opencl") if usability(b).usable]


def _evidence(made: Recommendation, chosen: Candidate) -> dict[str, Any]:
    """What the file says of how it was chosen."""
    cell = chosen.cell
    return {
        "sentence": made.sentence, "metric": made.metric, "samples": made.samples,
        "value": cell.value, "low": cell.low, "high": cell.high, "latency_ms": cell.latency_ms,
        "device": cell.choice.device,
        "rejected": [
            {"version": c.version, "backend": c.cell.choice.backend, "why": c.why}
            for c in made.candidates if c.why
        ],
    }  # fmt: skip


def _judge(
    made: Candidate, best: Cell, max_drop: float, max_ms: float | None, max_mb: float | None
) -> None:
    """Sets what a candidate loses, and which budgets it exceeds."""
    cell = made.cell
    if cell.status != "measured" or cell.value is None or best.value is None:
        made.why = cell.why or cell.status
    if cell.value is None or best.value is None:
        return
    gain = cell.value - best.value
    made.drop = (-gain if cell.higher_is_better else gain) or 0.0  # not -0.0
    if made.why:
        return
    wrong = []
    if made.drop > max_drop:
        wrong.append(tr("loses more than {limit}", limit=limit_of(best.metric, max_drop)))
    if max_ms is not None and (cell.latency_ms or 0) > max_ms:
        wrong.append(tr("slower than {limit:g} ms", limit=max_ms))
    made.why = ", ".join(filter(None, [*wrong, _too_large(made, max_mb)]))


def _too_large(made: Candidate, max_mb: float | None) -> str:
    if max_mb is None or made.file_bytes <= max_mb * 1e6:
        return ""
    return tr("larger than {limit:g} MB", limit=max_mb)
