"""Calibration samples: a folder of images or `.npy` files, a `.npy` or `.npz` file, arrays, or
feeds → one feed at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ..arrays import read_array, read_arrays
from ..errors import CalibrationError, ShapeError, UsageError
from ..images import is_image
from ..ir import Graph, Value
from ..preprocess import Preprocess

Feed = dict[str, np.ndarray]

#: Of this many samples one is held out for the comparison, at most HELD_MAX.
HELD_EVERY = 5
HELD_MAX = 16


def _forms() -> str:
    return tr("give a folder of images or .npy files, or a .npy or .npz file")


class Samples:
    """An iterable of feeds that knows its length when that can be known.

    `names` are file names where the samples are files. It can be iterated several times unless it
    was made of a generator, and after `keep` in any case.
    """

    def __init__(self, items: Iterable[Any], graph: Graph, names: list[str] | None = None) -> None:
        self.items, self.graph, self.names = items, graph, names or []

    def keep(self) -> Samples:
        """These samples, for several iterations: those of a generator stay in memory."""
        if iter(self.items) is self.items:
            self.items = list(self.items)
        return self

    def __len__(self) -> int:
        try:
            return len(self.items)  # type: ignore[arg-type]
        except TypeError:
            return 0

    def __iter__(self) -> Iterator[Feed]:
        for item in self.items:
            yield feed_of(self.graph, item)


class HoldOut:
    """Passes samples on and keeps every HELD_EVERYth, at most HELD_MAX, for the comparison."""

    def __init__(self, samples: Samples) -> None:
        self.samples = samples
        self.held: list[Feed] = []
        self.spare: list[Feed] = []

    def __len__(self) -> int:
        n = len(self.samples)
        return n - min(HELD_MAX, n // HELD_EVERY)

    def unread(self, items: Sequence[Any], read: Callable[[Any], Feed]) -> list[Any]:
        """The `items` that calibrate, for whoever reads them elsewhere; those that are held out are
        read here."""
        self.held, self.spare = [], []
        passed = []
        for index, item in enumerate(items):
            if index % HELD_EVERY == HELD_EVERY - 1 and len(self.held) < HELD_MAX:
                self.held.append(read(item))
                continue
            if len(self.spare) < 2:
                self.spare.append(read(item))
            passed.append(item)
        return passed

    def __iter__(self) -> Iterator[Feed]:
        self.held, self.spare = [], []
        for index, feed in enumerate(self.samples):
            if index % HELD_EVERY == HELD_EVERY - 1 and len(self.held) < HELD_MAX:
                self.held.append(feed)
                continue
            if len(self.spare) < 2:  # too few to hold any back: compare on what there is
                self.spare.append(feed)
            yield feed


def read_samples(source: Any, graph: Graph) -> Samples:
    """A folder of images or `.npy` files, a `.npy` or `.npz` path, a dict of stacked arrays, or an
    iterable of feeds, arrays, images.

    Raises CalibrationError when there is nothing usable.
    """
    if isinstance(source, Samples):
        return source
    if isinstance(source, (str, Path)):
        return _from_path(Path(source), graph)
    if isinstance(source, Mapping):
        return Samples(_unstack(dict(source), graph), graph)
    if isinstance(source, np.ndarray):
        return Samples(_unstack({_only_input(graph).name: source}, graph), graph)
    if not isinstance(source, Iterable):
        raise CalibrationError(
            tr("calibration data cannot be a {kind}", kind=type(source).__name__),
            fix=tr("give a folder of images, a .npz file or an iterable of inputs"),
        )
    return Samples(source, graph)


def _from_path(path: Path, graph: Graph) -> Samples:
    if path.is_dir():
        every = sorted(p for p in path.rglob("*") if p.is_file())
        files = [p for p in every if is_image(p)] or [p for p in every if p.suffix == ".npy"]
        if not files:
            raise CalibrationError(
                tr("{path} holds no images (.png .jpg .bmp …) or .npy files", path=path)
            )
        return Samples(files, graph, [p.name for p in files])
    if not path.exists():
        raise CalibrationError(tr("{path} does not exist", path=path), fix=_forms())
    if path.suffix == ".npy":
        name, array = _only_input(graph).name, _array(path)
        _expected(graph, path, name, array.shape)
        return Samples(_unstack({name: array}, graph), graph)
    if path.suffix == ".npz":
        try:
            arrays = read_arrays(path, partial(_expected, graph, path))
        except UsageError as error:
            raise CalibrationError.of(error) from None
        return Samples(_unstack(arrays, graph), graph)
    if is_image(path):
        return Samples([path], graph, [path.name])
    raise CalibrationError(
        tr("not a folder, an image, a .npy or .npz file"), where=path, fix=_forms()
    )


def _array(path: Path) -> np.ndarray:
    try:
        return read_array(path)
    except UsageError as error:
        raise CalibrationError.of(error) from None


def are_samples(own: Sequence[Any], got: Sequence[int]) -> bool:
    """Is this the shape of one input, or of several stacked along its first axis or a new one?"""
    return any(
        len(own) - cut == len(have)
        and all(not isinstance(a, int) or a == b for a, b in zip(own[cut:], have, strict=True))
        for cut, have in ((0, got), (0, got[1:]), (1, got[1:]))
    )


def _expected(graph: Graph, path: Path, name: str, shape: tuple[int, ...]) -> None:
    """Raises CalibrationError for a large array that holds no samples of its input."""
    only = graph.inputs[0] if len(graph.inputs) == 1 else None
    value = next((v for v in graph.inputs if v.name == name), only)
    if value is not None and value.shape is not None and not are_samples(value.shape, shape):
        raise CalibrationError(
            tr("{name!r} has shape {shape}, but the input is {type}", name=name, shape=shape,
               type=value.type),
            where=path,
        )  # fmt: skip


def _unstack(arrays: dict[str, np.ndarray], graph: Graph) -> list[Feed]:
    """Arrays with a leading sample axis, or as many samples as their batch axis holds.

    Unknown names are allowed when there is one array and one input.
    """
    inputs = {v.name: v for v in graph.inputs}
    if len(arrays) == 1 and len(inputs) == 1:
        arrays = {next(iter(inputs)): next(iter(arrays.values()))}
    missing = [n for n in inputs if n not in arrays]
    if missing:
        there = ", ".join(arrays) or "none"
        raise CalibrationError(
            tr("no array called {missing!r}", missing=missing[0]),
            fix=tr("there are: {there}", there=there),
        )
    samples = {name: _each(arrays[name], value) for name, value in inputs.items()}
    counts = {name: len(found) for name, found in samples.items() if found is not None}
    if len(set(counts.values())) > 1:
        there = ", ".join(f"{name} {count}" for name, count in counts.items())
        raise CalibrationError(
            tr("the arrays differ in their number of samples ({there})", there=there),
            fix=tr("stack as many samples of each along a new first axis"),
        )
    return [
        {name: arrays[name] if found is None else found[i] for name, found in samples.items()}
        for i in range(next(iter(counts.values()), 1))
    ]


def _each(x: np.ndarray, value: Value) -> list[np.ndarray] | None:
    """The samples of an array: along an axis in front, or as many rows as the input has; None for
    what all samples share: a single number, or one array of an input of several rows."""
    own = value.shape or ()
    if x.ndim == len(own) + 1:
        return list(x)
    if x.ndim == 0:
        return None
    rows = own[0] if own and isinstance(own[0], int) else 1
    rows = rows if rows > 0 and len(x) % rows == 0 else 1
    if rows > 1 and len(x) == rows:
        return None
    return [x[i : i + rows] for i in range(0, len(x), rows)]


def _only_input(graph: Graph) -> Value:
    if len(graph.inputs) != 1:
        names = ", ".join(v.name for v in graph.inputs)
        raise CalibrationError(
            tr("the model has several inputs ({names}): give each sample as a dict", names=names)
        )
    return graph.inputs[0]


def feed_of(graph: Graph, item: Any) -> Feed:
    """One sample as a feed. Raises CalibrationError."""
    if isinstance(item, Mapping):
        missing = [v.name for v in graph.inputs if v.name not in item]
        if missing:
            raise CalibrationError(
                tr("a calibration sample has no {missing!r}", missing=missing[0])
            )
        return {v.name: np.asarray(item[v.name]) for v in graph.inputs}
    value = _only_input(graph)
    if isinstance(item, (str, Path)) and Path(item).suffix == ".npy":
        item = _array(Path(item))
    try:
        if isinstance(item, (str, Path)) or _is_picture(item, value):
            return {value.name: _image(graph, value, item)}
    except (UsageError, ShapeError) as error:
        raise CalibrationError.of(error, where=tr("calibration image {item}", item=item)) from None
    x = np.asarray(item[0] if isinstance(item, tuple) else item)
    if x.dtype.kind not in "fiub":
        raise CalibrationError(
            tr("a calibration sample is a {kind}, not an array", kind=type(item).__name__)
        )
    x = x[None] if x.ndim + 1 == len(value.shape or ()) else x
    wanted = value.dtype
    return {value.name: x.astype(wanted.np, copy=False) if wanted is not None else x}


def _is_picture(item: Any, value: Value) -> bool:
    """An (H,W,3) uint8 array for a model that takes floats."""
    return (
        isinstance(item, np.ndarray)
        and item.dtype == np.uint8
        and item.ndim == 3
        and item.shape[2] in (1, 3)
        and value.dtype is not None
        and value.dtype.is_float
    )


def _image(graph: Graph, value: Value, item: Any) -> np.ndarray:
    """An image through the model's own preprocessing (`metadata["preprocess"]`)."""
    return Preprocess.of(graph.metadata).fitted(value.shape or ()).apply(item)
