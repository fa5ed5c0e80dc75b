"""Samples in shards on a cluster: models as bytes, one Predictor of each per worker."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_engine.model_file import open_model
from lite_engine.runtime import Predictor
from lite_messages import tr

from ..cluster import Cluster, Progress, run_shards
from .side import Side

if TYPE_CHECKING:
    from .dataset import Dataset, Sample
    from .judge import Judge, Unreadable
    from .tasks._base import Outcome


@dataclass(frozen=True)
class Packed:
    """A side as bytes: the `.lite` file of its model, and how its Predictor was made."""

    name: str
    version: str
    model: bytes
    metadata: dict[str, Any]
    options: dict[str, Any]

    @property
    def key(self) -> str:
        digest = hashlib.sha256(self.model)
        digest.update(repr((self.name, sorted(self.options.items()))).encode())
        return digest.hexdigest()


#: Sides of this worker, by what they were made of.
_sides: dict[str, Side] = {}


def packed(side: Side) -> Packed:
    """Raises UsageError for a side that only this process has."""
    used = side.predictor
    if used.device is not None or used.faults:
        raise UsageError(
            tr("{side} runs on a device of this machine, not on a cluster", side=side.name)
        )
    with tempfile.TemporaryDirectory() as folder:
        data = side.model.save(Path(folder) / "side.lite").read_bytes()
    overrides, tuning = used._given
    options = {"backend": used.backend, "precision": used.precision, "overrides": overrides,
               "tuning": tuning}  # fmt: skip
    return Packed(side.name, side.version, data, dict(side.model.metadata), options)


def unpacked(part: Packed) -> Side:
    """The worker's own, made when it is first needed: one thread, as each worker has one CPU."""
    if part.key not in _sides:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "side.lite"
            path.write_bytes(part.model)
            model = open_model(path)
            model.metadata.update(part.metadata)
            made = Predictor(model, threads=1, **part.options)
            made.graph  # noqa: B018  read while the file is there
        _sides[part.key] = Side(part.name, made, part.version)
    return _sides[part.key]


def work(
    shared: tuple[Judge, list[Packed]], samples: list[Sample]
) -> list[list[Outcome] | Unreadable]:
    """What a worker does with a shard."""
    judge, parts = shared
    sides = [unpacked(part) for part in parts]
    return [judge.outcomes(sides, sample) for sample in samples]


def run_on_cluster(
    cluster: Cluster,
    judge: Judge,
    sides: Sequence[Side],
    dataset: Dataset,
    progress: Progress,
) -> list[list[Outcome] | Unreadable]:
    """As `run_samples`. Paths are those that the workers see: they are made absolute here."""
    samples = [
        replace(s, source=_absolute(s.source), label=_absolute(s.label)) for s in dataset.samples
    ]
    shared = judge, [packed(side) for side in sides]
    found = run_shards(cluster, work, shared, samples, progress)
    return [outcome for shard in found for outcome in shard]


def _absolute(value: Any) -> Any:
    return value.resolve() if isinstance(value, Path) else value
