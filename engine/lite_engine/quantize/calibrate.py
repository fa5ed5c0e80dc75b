"""Calibration: samples through the float graph → statistics of every activation → `Ranges`."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Sequence
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
from .samples import Feed, HoldOut, read_samples
from .select import infinite_values
from .statistics import Statistics

#: Before the kinds of arrays of an unfinished block.
_OPEN = "open-"
#: progress(done, total); total is 0 when the number of samples is not known
Progress = Callable[[int, int], None]


#: Consecutive samples whose statistics are made on their own and then merged: floating-point sums
#: depend on their order, so that only equal parts give equal bits on any number of workers.
BLOCK = 32


@dataclass
class Calibration:
    """Statistics by value name. `samples` is how many samples they come from, with those of `open`,
    the block that a cancelled calibration left unfinished. `mark` is the checksum of the first
    sample, `differ` tells whether another one had a different checksum."""

    statistics: dict[str, Statistics] = field(default_factory=dict)
    samples: int = 0
    cancelled: bool = False
    open: Calibration | None = None
    mark: tuple[int, ...] = ()
    differ: bool = False

    def merge(self, block: Calibration) -> None:
        """Adds the block that comes next; its samples count already if it is the open one."""
        for name, statistics in block.statistics.items():
            self.statistics.setdefault(name, Statistics()).merge(statistics)
        if block is not self.open:
            self.samples += block.samples
        self.open = None
        if block.mark:
            self.see(block.mark)
        self.differ = self.differ or block.differ

    def see(self, mark: tuple[int, ...]) -> None:
        """A sample with this checksum passes by."""
        self.mark = self.mark or mark
        self.differ = self.differ or mark != self.mark

    def ranges(self, method: str = "kl") -> Ranges:
        values = {name: range_of(s, method) for name, s in self.statistics.items()}
        seen = {name: range_of(s, "minmax") for name, s in self.statistics.items()}
        return Ranges(values, seen, method, self.samples)

    def save(self, path: str | Path) -> None:
        """One `.npz`, from which `load` resumes. Raises LiteError."""
        arrays: dict[str, np.ndarray] = {"samples": np.array(self.samples)}
        for part, prefix in ((self, ""), (self.open, _OPEN)):
            for name, statistics in (part.statistics if part else {}).items():
                arrays.update({f"{prefix}{k}/{name}": v for k, v in statistics.arrays().items()})
        with writing(path) as file:
            np.savez_compressed(file, **arrays)  # type: ignore[arg-type]

    @staticmethod
    def load(path: str | Path) -> Calibration:
        """Raises CalibrationError when the file is not a calibration."""
        try:
            data = read_arrays(path)
            parts: dict[str, dict[str, np.ndarray]] = {}
            unfinished: dict[str, dict[str, np.ndarray]] = {}
            for key, array in data.items():
                kind, _, name = key.partition("/")
                if name:
                    to = unfinished if kind.startswith(_OPEN) else parts
                    to.setdefault(name, {})[kind.removeprefix(_OPEN)] = array
            found, opened = (
                {name: Statistics.from_arrays(p) for name, p in made.items()}
                for made in (parts, unfinished)
            )
            count = data["samples"]
            if count.shape != () or count.dtype.kind != "i" or count < 0:
                raise ValueError(tr("the number of samples is missing"))
            inner = max((x.samples for x in opened.values()), default=0)
            return Calibration(
                found, int(count), open=Calibration(opened, inner) if opened else None
            )
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


#: (float graph, samples of which some are held out, limit, progress) → statistics of the others
Calibrator = Callable[[Graph, HoldOut, int | None, Progress | None], Calibration]


def activations(graph: Graph) -> list[str]:
    """Names of the floating-point values that are computed or fed, and may have a range."""
    endless = infinite_values(graph)
    return [
        v.name
        for v in graph.values()
        if not v.is_const and v.dtype is not None and v.dtype.is_float and id(v) not in endless
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
    done = 0
    with ThreadPoolExecutor(settings.threads()) as pool:
        for index, feed in enumerate(samples):
            if limit is not None and index >= limit:
                break
            out.see(mark_of(feed))
            done = index + 1
            if done <= out.samples:
                continue
            if cancel is not None and cancel():
                out.cancelled = True
                return out
            block = out.open = out.open or Calibration()
            _observe(graph, run(graph, feed, names), names, block, index, pool)
            out.samples = done
            if block.samples == BLOCK:
                out.merge(block)
            if progress is not None:
                progress(done, total)
    if out.open is not None:
        out.merge(out.open)
    check(graph, out, done)
    return out


def calibrate_block(
    graph: Graph, samples: Iterable[Feed], start: int, run: Run, names: Sequence[str]
) -> Calibration:
    """At most BLOCK consecutive samples, which `start` others come before: what `merge` adds.
    Raises CalibrationError for NaN and infinity."""
    block = Calibration()
    with ThreadPoolExecutor(1) as pool:
        for index, feed in enumerate(samples, start):
            block.see(mark_of(feed))
            _observe(graph, run(graph, feed, names), names, block, index, pool)
    return block


def mark_of(feed: Feed) -> tuple[int, ...]:
    """A checksum of each array of a sample."""
    return tuple(zlib.crc32(np.ascontiguousarray(x).view(np.uint8).data) for x in feed.values())


def _observe(
    graph: Graph,
    found: dict[str, np.ndarray],
    names: Sequence[str],
    block: Calibration,
    index: int,
    pool: ThreadPoolExecutor,
) -> None:
    """Adds one sample's values; each tensor's statistics are a task of their own."""
    present = [n for n in names if n in found]
    for name in present:
        if name not in block.statistics:
            block.statistics[name] = Statistics(start=index)
    usable = pool.map(lambda name: block.statistics[name].update(found[name]), present)
    for name, good in zip(present, usable):
        if not good:
            raise CalibrationError(
                tr(
                    "NaN or infinity in {where} with calibration sample {index}",
                    where=_where(graph, name),
                    index=index + 1,
                ),
                fix=tr("check the sample and the preprocessing"),
            )
    block.samples += 1


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


def check(graph: Graph, out: Calibration, count: int) -> None:
    """Raises CalibrationError for a whole calibration that says nothing."""
    if count < 2:
        raise CalibrationError(
            trn("{n} calibration sample", "{n} calibration samples", count),
            fix=tr("use at least 2; 20 to 500 are usual"),
        )
    if not out.differ:
        raise CalibrationError(
            tr("all {count} calibration samples are the same", count=count),
            fix=tr("use different samples"),
        )
    for value in graph.inputs:
        statistics = out.statistics.get(value.name)
        if statistics is not None and statistics.is_constant:
            raise CalibrationError(
                tr(
                    "input {name} is {low:g} in every sample",
                    name=value.name,
                    low=statistics.low + 0.0,
                ),
                fix=tr("check the preprocessing"),
            )
