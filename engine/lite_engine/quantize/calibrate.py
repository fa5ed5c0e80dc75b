"""Calibration: samples through the float graph → statistics of every activation → `Ranges`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr, trn

from .. import settings
from ..arrays import read_arrays
from ..errors import CalibrationError, UsageError
from ..files import writing
from ..ir import Graph
from ._run import Run, reference_run
from .observers import Range, range_of
from .samples import read_samples
from .statistics import Statistics

#: progress(done, total); total is 0 when the number of samples is not known
Progress = Callable[[int, int], None]


@dataclass
class Calibration:
    """Statistics by value name. `samples` is how many samples they come from."""

    statistics: dict[str, Statistics] = field(default_factory=dict)
    samples: int = 0
    cancelled: bool = False

    def ranges(self, method: str = "kl") -> Ranges:
        values = {name: range_of(s, method) for name, s in self.statistics.items()}
        seen = {name: range_of(s, "minmax") for name, s in self.statistics.items()}
        return Ranges(values, seen, method, self.samples)

    def save(self, path: str | Path) -> None:
        """One `.npz`, from which `load` resumes. Raises LiteError."""
        arrays: dict[str, np.ndarray] = {"samples": np.array(self.samples)}
        for name, statistics in self.statistics.items():
            arrays.update({f"{k}/{name}": v for k, v in statistics.arrays().items()})
        with writing(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    @staticmethod
    def load(path: str | Path) -> Calibration:
        """Raises CalibrationError when the file is not a calibration."""
        try:
            data = read_arrays(path)
            parts: dict[str, dict[str, np.ndarray]] = {}
            for key, array in data.items():
                kind, _, name = key.partition("/")
                if name:
                    parts.setdefault(name, {})[kind] = array
            found = {name: Statistics.from_arrays(p) for name, p in parts.items()}
            count = data["samples"]
            if count.shape != () or count.dtype.kind != "i" or count < 0:
                raise ValueError(tr("the number of samples is missing"))
            return Calibration(found, int(count))
        except UsageError as error:
            raise CalibrationError(
                tr("not a saved calibration: {what}", what=error.what), where=path
            ) from None
        except KeyError as error:
            raise CalibrationError(
                tr("not a saved calibration ({error} is missing)", error=error), where=path
            ) from None
        except ValueError as error:
            raise CalibrationError(
                tr("not a saved calibration ({error})", error=error), where=path
            ) from None


@dataclass
class Ranges:
    """Value name → (low, high), each holding 0; `seen` is all that occurred."""

    values: dict[str, Range]
    seen: dict[str, Range] = field(default_factory=dict)
    method: str = ""
    samples: int = 0

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "samples": self.samples,
            "values": {k: list(v) for k, v in self.values.items()},
            "seen": {k: list(v) for k, v in self.seen.items()},
        }

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Ranges:
        values, seen = (
            {k: (float(v[0]), float(v[1])) for k, v in data.get(key, {}).items()}
            for key in ("values", "seen")
        )
        return Ranges(values, seen, data.get("method", ""), int(data.get("samples", 0)))


def activations(graph: Graph) -> list[str]:
    """Names of the floating-point values that are computed or fed."""
    return [
        v.name
        for v in graph.values()
        if not v.is_const and v.dtype is not None and v.dtype.is_float
    ]


def calibrate(
    graph: Graph,
    source: Any,
    *,
    run: Run = reference_run,
    taps: Sequence[str] | None = None,
    progress: Progress | None = None,
    cancel: Callable[[], bool] | None = None,
    resume: Calibration | None = None,
    limit: int | None = None,
) -> Calibration:
    """Runs samples through the float graph and keeps statistics of `taps`, or of all activations.

    Memory does not grow with the number of samples. `resume` continues an interrupted calibration:
    as many samples as it holds are passed over. Raises CalibrationError for fewer than two samples,
    samples that are all the same, or NaN and infinity in any value.
    """
    samples = read_samples(source, graph)
    names = list(taps) if taps is not None else activations(graph)
    out = resume or Calibration()
    out.cancelled = False
    total = min(len(samples), limit) if limit else len(samples)
    done, first, differ = 0, None, False
    with ThreadPoolExecutor(settings.threads()) as pool:
        for index, feed in enumerate(samples):
            if limit is not None and index >= limit:
                break
            mark = [zlib.crc32(np.ascontiguousarray(x).view(np.uint8).data) for x in feed.values()]
            first = first or mark
            differ = differ or mark != first
            done = index + 1
            if done <= out.samples:
                continue
            if cancel is not None and cancel():
                out.cancelled = True
                return out
            _observe(graph, run(graph, feed, names), names, out, done, pool)
            if progress is not None:
                progress(done, total)
    _check(graph, out, done, differ)
    return out


def _observe(
    graph: Graph,
    found: dict[str, np.ndarray],
    names: Sequence[str],
    out: Calibration,
    index: int,
    pool: ThreadPoolExecutor,
) -> None:
    """Adds one sample's values; each tensor's statistics are a task of their own."""
    present = [n for n in names if n in found]
    for name in present:
        out.statistics.setdefault(name, Statistics())
    usable = pool.map(lambda name: out.statistics[name].update(found[name]), present)
    for name, good in zip(present, usable):
        if not good:
            raise CalibrationError(
                tr(
                    "NaN or infinity in {where} with calibration sample {index}",
                    where=_where(graph, name),
                    index=index,
                ),
                fix=tr("check the sample and the preprocessing"),
            )
    out.samples = index


def _where(graph: Graph, name: str) -> str:
    producer = graph.find(name).producer
    return (
        tr("{name} (input)", name=name)
        if producer is None
        else tr(
            "{name} (made by {op} {producer})",
            name=name,
            op=producer.op,
            producer=producer.name,
        )
    )


def _check(graph: Graph, out: Calibration, count: int, differ: bool) -> None:
    if count < 2:
        raise CalibrationError(
            trn("{n} calibration sample", "{n} calibration samples", count),
            fix=tr("use at least 2; 20 to 500 are usual"),
        )
    if not differ:
        raise CalibrationError(
            tr("all {count} calibration samples are the same", count=count),
            fix=tr("use different samples"),
        )
    for value in graph.inputs:
        statistics = out.statistics.get(value.name)
        if statistics is not None and statistics.is_constant:
            raise CalibrationError(
                tr("input {name} is {low:g} in every sample", name=value.name, low=statistics.low),
                fix=tr("check the preprocessing"),
            )
