"""Two sides compared on many inputs: here, or in shards on a cluster, with the same result."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.compare import Side, compare
from lite_engine.compare.many import ComparisonOfInputs, InputResult, summarize
from lite_engine.errors import CalibrationError, ShapeError, UsageError
from lite_engine.quantize.samples import read_samples
from lite_messages import tr

from .answers_compared import reader
from .blas import one_blas_thread
from .cluster import Cluster, Progress, Work, run_shards
from .data_sets import is_labeled
from .evaluate import Dataset, Sample, read_dataset
from .evaluate import Side as Packable
from .evaluate.judge import Unreadable
from .evaluate.reading import UnreadableSource, inputs_in, is_input
from .evaluate.remote import is_url, local
from .evaluate.shards import Packed, absolute, packed, resource_of, unpacked
from .inputs import read_source

if TYPE_CHECKING:
    from lite_engine.compare.side import Valued
    from lite_engine.model_file import Model


@dataclass
class Sides:
    """The baseline and the candidate. `model` says how images become inputs; `devices` are the
    names by which a worker finds the device of each side; `options` are those of
    `lite_engine.compare.compare`."""

    a: Valued
    b: Valued
    model: Model
    devices: tuple[str, str] = ("local", "local")
    options: dict[str, Any] = field(default_factory=dict)


def compare_inputs(
    sides: Sides,
    data: Dataset,
    *,
    cluster: Cluster | None = None,
    progress: Progress = lambda done, total: None,
) -> ComparisonOfInputs:
    """Every sample of `data` through both sides. Those that cannot be read are left out and listed.
    Raises UsageError when none can be read or a side cannot be sent to a worker, and LiteError."""
    if cluster is not None and cluster.used:
        found = _on_cluster(cluster, sides, data, progress)
    else:
        found = []
        for number, sample in enumerate(data.samples, 1):
            found.append(_compared(sides, sample))
            progress(number, len(data))
    good = [one for one in found if isinstance(one, InputResult)]
    unreadable = [(one.name, one.error) for one in found if isinstance(one, Unreadable)]
    if not good:
        raise UsageError(
            tr(
                "no sample of {count} can be read (the first: {error})",
                count=len(found),
                error=unreadable[0][1],
            ),
            where=data.name,
        )
    return summarize((sides.a.label, sides.b.label), sides.model.name, good, unreadable)


def _compared(sides: Sides, sample: Sample) -> InputResult | Unreadable:
    try:
        with local(sample) as here:
            feeds, picture = read_source(sides.model, here.source)
    except (UnreadableSource, UsageError, ShapeError, CalibrationError) as error:
        return Unreadable(sample.name, str(error))
    read = reader((sides.a, sides.b), feeds, picture)
    with one_blas_thread():
        found = compare(sides.a, sides.b, feeds, read=read, **sides.options)
    return InputResult.of(sample.name, found)


def _on_cluster(
    cluster: Cluster, sides: Sides, data: Dataset, progress: Progress
) -> list[InputResult | Unreadable]:
    pairs = []
    for side, device in zip((sides.a, sides.b), sides.devices, strict=True):
        if not isinstance(side, Side):
            raise UsageError(
                tr("{side} runs in this process only", side=side.label),
                fix=tr("leave out --workers and --scheduler"),
            )
        pairs.append(packed(Packable(side.label, side.predictor, device=device)))
    shared = [part for part, _ in pairs], sides.options
    models = {part.digest: content for part, content in pairs}
    samples = [replace(s, source=absolute(s.source), label=None) for s in data.samples]
    work = Work(_shard, shared, models, resource=resource_of(sides.devices))
    found = run_shards(cluster, work, samples, progress)
    return [one for shard in found for one in shard]


def _shard(
    shared: tuple[list[Packed], dict[str, Any]], models: Mapping[str, bytes], samples: list[Sample]
) -> list[InputResult | Unreadable]:
    """What a worker does with its part of the inputs."""
    parts, options = shared
    a, b = (Side(unpacked(part, models).predictor, part.name) for part in parts)
    sides = Sides(a, b, a.predictor.model, options=options)
    return [_compared(sides, sample) for sample in samples]


def inputs_of(
    data: Any, model: Model, *, images: str | Path | None = None, limit: int | None = None
) -> Dataset:
    """Inputs without labels: a folder of images and arrays, an `.npz` of inputs, one file, a list
    of images, arrays or feeds; or a data set of `read_dataset`, whose labels are not looked at.
    Raises UsageError."""
    if isinstance(data, list | np.ndarray):
        made = _numbered("arrays", list(data))
    elif isinstance(data, str | Path) and not is_url(data) and not _is_data_set(Path(data)):
        made = _of_path(Path(data), model)
    else:
        made = read_dataset(data, images=images)
    return made.first(limit)


def _is_data_set(path: Path) -> bool:
    return is_labeled(path) if path.is_dir() or is_input(path) else path.exists()


def _of_path(path: Path, model: Model) -> Dataset:
    if not path.exists():
        raise UsageError(tr("no such file or folder"), where=path)
    if path.suffix == ".npz":
        return _numbered(path.stem, list(read_samples(path, model.graph)))
    files = inputs_in(path) if path.is_dir() else [path]
    if not files:
        raise UsageError(
            tr("the folder has no inputs"), where=path, fix=tr("give images, .npy or .npz files")
        )
    root = path if path.is_dir() else path.parent
    return Dataset(path.stem, "", [Sample(str(f.relative_to(root)), f, None) for f in files])


def _numbered(name: str, items: Sequence[Any]) -> Dataset:
    if not items:
        raise UsageError(tr("the data set has no samples"), where=name)
    return Dataset(name, "", [Sample(str(i), item, None) for i, item in enumerate(items)])
