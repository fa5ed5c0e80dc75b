"""Samples in shards on a cluster: models as bytes, one Predictor of each per worker."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from lite_engine.devices import BUILT_IN, find_device
from lite_engine.errors import UsageError
from lite_engine.model_file import open_model
from lite_engine.runtime import Predictor
from lite_messages import tr

from ..blas import one_blas_thread
from ..cluster import Cluster, Progress, Work, run_shards
from ..cluster_resources import BOARD
from .side import Side

if TYPE_CHECKING:
    from lite_engine.model_file import Model

    from .dataset import Dataset, Sample
    from .judge import Judge, Unreadable
    from .tasks._base import Outcome

T = TypeVar("T")

#: Devices that any worker has.
_EVERYWHERE = {entry.name for entry in BUILT_IN}
#: Sides that a worker keeps: their weights stay in its memory.
MOST_SIDES = 8


@dataclass(frozen=True)
class Packed:
    """A side without its model, whose `.lite` file has this SHA-256, and how its Predictor was
    made; `device` is a name or address that the worker knows, too."""

    name: str
    version: str
    digest: str
    targets: list[str]
    metadata: dict[str, Any]
    options: dict[str, Any]
    device: str = "local"

    @property
    def key(self) -> str:
        made = sorted(self.options.items())
        return repr((self.name, self.digest, self.targets, made, self.device))


#: Sides of this worker, by what they were made of.
_sides: dict[str, Side] = {}


def file_of(model: Model) -> tuple[str, bytes]:
    """(SHA-256, bytes) of the `.lite` file of a model, without targets: each worker makes the
    programs that it uses."""
    with tempfile.TemporaryDirectory() as folder:
        data = model.but(targets=[]).save(Path(folder) / "side.lite").read_bytes()
    return hashlib.sha256(data).hexdigest(), data


@contextmanager
def opened(data: bytes, targets: Sequence[str], metadata: Mapping[str, Any]) -> Iterator[Model]:
    """The model of a file's bytes; its weights can be read while the block lasts."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "side.lite"
        path.write_bytes(data)
        model = open_model(path)
        model.targets[:] = targets
        model.metadata.update(metadata)
        yield model


def packed(side: Side) -> tuple[Packed, bytes]:
    """Raises UsageError for a side that only this process has."""
    used = side.predictor
    if used.faults:
        raise UsageError(
            tr("{side} has planted faults and runs in this process only", side=side.name)
        )
    digest, data = file_of(side.model)
    overrides, tuning = used._given
    options = {"backend": used.backend, "precision": used.precision, "overrides": overrides,
               "tuning": tuning}  # fmt: skip
    meta = dict(side.model.metadata)
    targets = list(side.model.targets)
    return Packed(side.name, side.version, digest, targets, meta, options, side.device), data


def resource_of(devices: Iterable[str]) -> str:
    """The resource that a worker needs for these devices: a board, or "" for none. Raises
    UsageError for several boards."""
    boards = sorted({name for name in devices if name.partition(":")[0] not in _EVERYWHERE})
    if len(boards) > 1:
        raise UsageError(
            tr("the sides run on {boards}: one board at a time", boards=", ".join(boards))
        )
    return BOARD + boards[0] if boards else ""


def unpacked(part: Packed, models: Mapping[str, bytes]) -> Side:
    """The worker's own, made when it is first needed: one thread, as each worker has one CPU."""
    if part.key not in _sides:
        while len(_sides) >= MOST_SIDES:
            _sides.pop(next(iter(_sides)))
        with opened(models[part.digest], part.targets, part.metadata) as model:
            made = Predictor(model, threads=1, device=find_device(part.device), **part.options)
            made.graph  # noqa: B018  read while the file is there
        _sides[part.key] = Side(part.name, made, part.version)
    return _sides[part.key]


def _judged(
    shared: tuple[Judge, list[Packed]], models: Mapping[str, bytes], samples: list[Sample]
) -> list[list[Outcome] | Unreadable]:
    """What a worker does with a shard."""
    judge, parts = shared
    sides = [unpacked(part, models) for part in parts]
    with one_blas_thread():
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
        replace(s, source=absolute(s.source), label=absolute(s.label)) for s in dataset.samples
    ]
    pairs = [packed(side) for side in sides]
    parts = [part for part, _ in pairs]
    models = {part.digest: data for part, data in pairs}
    work = Work(_judged, (judge, parts), models, resource=resource_of(p.device for p in parts))
    found = run_shards(cluster, work, samples, progress)
    return [outcome for shard in found for outcome in shard]


def absolute(value: T) -> T | Path:
    """A path that does not depend on the working folder; anything else as it is."""
    return value.absolute() if isinstance(value, Path) else value
