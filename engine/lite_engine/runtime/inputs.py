"""Files, images, arrays or random numbers → the feeds of a model."""

from __future__ import annotations

import math
import shlex
import wave
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
from lite_messages import tr

from ..arrays import read_array, read_arrays, read_numbers
from ..errors import ShapeError, UsageError, reason_of
from ..files import exists
from ..images import IMAGE_SUFFIXES, is_image
from ..ir import DType, Graph, Value, fits
from ..ir.bfloat16 import stored
from ..model_file import Model
from ..preprocess import Preprocess
from ..whole_numbers import checked_whole
from .feeds import converted
from .input_ranges import Range, input_range


def read_feeds(
    model: Model, files: Sequence[str | Path], names: Sequence[str] = ()
) -> dict[str, np.ndarray]:
    """`X.npy`, `X.npz`, `X.csv`, `X.wav`, an image, each optionally as `name=file`.
    With the inputs' `names` arrays are read without the graph. Raises UsageError, ShapeError."""
    feeds: dict[str, np.ndarray] = {}
    waiting = list(names) or [v.name for v in model.graph.inputs]
    for item in files:
        name, path = _named(str(item), waiting)
        kind = path.suffix.lower()
        if not exists(path):
            raise UsageError(tr("no such file"), where=path)
        if kind == ".npz":
            feeds.update(read_arrays(path, partial(_expected, model, path)))
            continue
        target = name or next((n for n in waiting if n not in feeds), None)
        if target is None:
            raise UsageError(
                tr("the model has only {inputs} inputs", inputs=len(waiting)), where=path
            )
        if kind == ".npy":
            feeds[target] = read_array(path)
        elif is_image(path):
            feeds[target] = image_feed(model, _input(model, target), path)
        elif kind == ".wav":
            feeds[target] = sound_feed(_input(model, target), path)
        elif kind == ".csv":
            feeds[target] = numbers_feed(_input(model, target), path)
        else:
            known = ", ".join((*IMAGE_SUFFIXES, ".npy", ".npz", ".csv", ".wav"))
            raise UsageError(
                tr("expected a file that ends in one of {known}", known=known), where=path
            )
    return feeds


def _input(model: Model, name: str) -> Value:
    return next(v for v in model.graph.inputs if v.name == name)


def _expected(model: Model, path: Path, name: str, shape: tuple[int, ...]) -> None:
    """Raises UsageError, ShapeError for a large array that no input of the model takes."""
    value = next((v for v in model.graph.inputs if v.name == name), None)
    if value is None:
        known = ", ".join(v.name for v in model.graph.inputs)
        raise UsageError(
            tr("{name!r} is not an input of the model", name=name),
            where=path,
            fix=tr("its inputs: {known}", known=known),
        )
    if value.shape is not None and not fits(value.shape, shape):
        raise ShapeError(
            tr(
                "{name!r} has shape {shape}, but the input is {type}",
                name=name,
                shape=shape,
                type=value.type,
            ),
            where=path,
        )


def _named(item: str, names: Sequence[str]) -> tuple[str, Path]:
    for name in names:
        if item.startswith(f"{name}="):
            return name, Path(item[len(name) + 1 :])
    if "=" in item and not exists(item):
        name = item.partition("=")[0]
        raise UsageError(
            tr("there is no input {name!r}", name=name),
            fix=tr("inputs: {names}", names=", ".join(names)),
        )
    return "", Path(item)


def image_feed(model: Model, value: Value, image: str | Path | np.ndarray) -> np.ndarray:
    """An image through the model's own preprocessing, quantised when the input is integer. Where
    its numbers are not said, floats are pixels scaled to 0…1 and 8-bit integers the pixels
    themselves."""
    spec = Preprocess.of(model.metadata).fitted(value.shape or ())
    x = spec.apply(image)
    dtype = value.type.dtype
    if dtype.is_float:
        return stored(x, dtype)
    info = np.iinfo(dtype.np)
    if spec.mean is None:
        x = np.round(x * np.float32(255.0)) + info.min
    elif value.quant is not None:
        x = np.round(x / value.quant.scale) + value.quant.zero_point
    return np.clip(x, info.min, info.max).astype(dtype.np)


def numbers_feed(value: Value, path: Path) -> np.ndarray:
    """The numbers of a `.csv` file, in the shape of the input; one open size follows from their
    count. Raises UsageError, ShapeError."""
    numbers = read_numbers(path)
    dims = [d if isinstance(d, int) else -1 for d in value.shape or (-1,)]
    fixed = math.prod(d for d in dims if d >= 0)
    opens = dims.count(-1)
    whole = numbers.size == fixed if not opens else fixed > 0 and numbers.size % fixed == 0
    if not whole or opens > 1:
        raise ShapeError(
            tr("{count} numbers do not fit input {name} ({type})", count=numbers.size,
               name=value.name, type=value.type),
            where=path,
        )  # fmt: skip
    try:
        return converted(value, numbers.reshape(dims), numbers)
    except ShapeError as error:
        raise error.within(path) from None


def sound_feed(value: Value, path: Path) -> np.ndarray:
    """The file's bytes for a graph that decodes them itself (u8, rank 1), else 16-bit mono samples
    in −1…1. Raises UsageError, ShapeError."""
    rank = len(value.shape or ())
    try:
        if value.dtype is DType.U8 and rank == 1:
            return np.fromfile(path, np.uint8)
        with wave.open(str(path)) as file:
            if (file.getnchannels(), file.getsampwidth()) != (1, 2):
                raise UsageError(tr("give 16-bit mono sound"), where=path)
            pcm = np.frombuffer(file.readframes(file.getnframes()), "<i2")
    except (OSError, EOFError, ValueError, RuntimeError, wave.Error) as error:
        raise UsageError(
            tr("not a .wav file that can be read ({reason})", reason=reason_of(error)), where=path
        ) from None
    dims = [d for d in value.shape or () if isinstance(d, int)]
    if value.dtype is None or not value.dtype.is_float or dims[1:] not in ([], [pcm.size]):
        raise ShapeError(
            tr("input {name} ({type}) cannot be sound samples", name=value.name, type=value.type),
            where=path,
            fix=tr("compute its features and give them as a .npy file"),
        )
    x = pcm.astype(np.float32) / np.float32(32768)
    return stored(x[None] if rank == 2 else x, value.dtype)


def random_feeds(
    model: Model | Graph,
    seed: int = 0,
    shapes: dict[str, tuple[int, ...]] | None = None,
    *,
    others: Sequence[Model | Graph] = (),
) -> dict[str, np.ndarray]:
    """Seeded inputs: floats within the range that the model, else one of the `others` that get the
    same input, says (`input_range`), else standard normal; full-range 8-bit integers, small other
    integers.

    Raises ShapeError when an input shape is not fixed, or too large for this machine, UsageError
    for a seed that is no whole number of 0 or more.
    """
    graph = model if isinstance(model, Graph) else model.graph
    rng = np.random.default_rng(checked_whole(seed, 0))
    feeds: dict[str, Any] = {}
    for value in graph.inputs:
        shape = (shapes or {}).get(value.name, value.shape)
        if not _is_fixed(shape):
            raise _open_sizes(graph, shapes, value)
        known = (input_range(m, graph.inputs, value) for m in (model, *others))
        within = next((found for found in known if found is not None), None)
        try:
            feeds[value.name] = _random(rng, value.type.dtype, tuple(shape), within)
        except (MemoryError, ValueError):
            raise ShapeError(
                tr(
                    "input {name} is {type}: more memory than is available",
                    name=value.name,
                    type=value.type,
                )
            ) from None
    return feeds


def _is_fixed(shape: Sequence[int | str | None] | None) -> TypeGuard[Sequence[int]]:
    return shape is not None and all(isinstance(d, int) for d in shape)


def _open_sizes(
    graph: Graph, given: Mapping[str, Sequence[int]] | None, first: Value
) -> ShapeError:
    """Of an input without fixed sizes: the fix names every such input: one try is enough."""
    from .assumed import assumed_shapes

    likely = assumed_shapes(graph.inputs, given=given)
    sizes = {
        value.name: likely[value.name]
        for value in graph.inputs
        if value.name in likely and not _is_fixed(value.shape)
    }
    options = [f"{name}:{'x'.join(map(str, dims))}" for name, dims in sizes.items()]
    return ShapeError(
        tr("the sizes of input {name} are open: {type}", name=first.name, type=first.type),
        fix=tr(
            "fix them, like {options} or shapes={shapes}",
            options=" ".join(f"--shape {shlex.quote(option)}" for option in options),
            shapes=sizes,
        ),
    )


def _random(
    rng: np.random.Generator, dtype: DType, shape: tuple[int, ...], within: Range | None
) -> np.ndarray:
    if dtype.is_float and within is not None:
        return stored(rng.uniform(*within, shape), dtype)
    if dtype.is_float:
        return stored(rng.standard_normal(shape), dtype)
    if dtype is DType.BOOL:
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in (DType.I8, DType.U8):
        info = np.iinfo(dtype.np)
        return rng.integers(info.min, info.max + 1, shape).astype(dtype.np)
    return rng.integers(0, 2, shape).astype(dtype.np)
