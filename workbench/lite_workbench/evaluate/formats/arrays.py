"""An .npz file of stacked images or inputs, and their labels.

The labels are the array called `labels`, `label`, `y` or (lines of text) `texts`, the samples the
other one, or the one called `images` or `x`; several others are the inputs of a model, by name.
Labels are class numbers or names.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.arrays import array_shapes, read_arrays
from lite_engine.errors import UsageError
from lite_messages import tr

from ..dataset import Dataset, Sample, check_class_number

TASKS = ("classification", "text")
_LABELS = ("labels", "label", "y", "texts")
_SAMPLES = ("images", "x")


def match(path: Path) -> bool:
    return path.is_file() and path.suffix.lower() == ".npz"


def has_labels(path: Path) -> bool:
    """Does an `.npz` hold samples and their labels? Only headers are read."""
    try:
        names = list(array_shapes(path))
    except UsageError:
        return False
    return _parts(names) is not None


def _parts(names: Sequence[str]) -> tuple[str, str] | None:
    """The arrays that are samples and labels."""
    key = next((n for n in _LABELS if n in names), None)
    rest = [n for n in names if n != key]
    chosen = next((n for n in _SAMPLES if n in rest), rest[0] if len(rest) == 1 else None)
    return None if key is None or chosen is None else (chosen, key)


def open(path: Path, task: str | None, images: Path | None) -> Dataset:
    """Raises UsageError."""
    shapes = array_shapes(path)
    parts = _parts(list(shapes))
    key = next((n for n in _LABELS if n in shapes), "")
    inputs = [n for n in shapes if n != key]
    if parts is None and key and inputs:
        return _of_inputs(path, shapes, inputs, key)
    if parts is None:
        raise UsageError(
            tr(
                "expected an array `images` and an array `labels`, found {arrays}",
                arrays=", ".join(shapes) or "none",
            ),
            where=path,
        )
    chosen, key = parts
    try:
        _check_counts(shapes[chosen], shapes[key])  # before the bytes are inflated
        arrays = read_arrays(path)
        return of_arrays(path.stem, arrays[chosen], arrays[key], key == "texts" or task == "text")
    except UsageError as error:
        raise error.within(path) from None


def _of_inputs(
    path: Path, shapes: Mapping[str, Sequence[int]], inputs: Sequence[str], key: str
) -> Dataset:
    """Samples that are feeds of several inputs. Raises UsageError."""
    try:
        for name in inputs:
            _check_counts(shapes[name], shapes[key], least=1)
        arrays = read_arrays(path)
        feeds = [{name: arrays[name][i] for name in inputs} for i in range(shapes[key][0])]
        numbers = np.arange(len(feeds))[:, None]  # in place of the samples
        made = of_arrays(path.stem, numbers, arrays[key], key == "texts")
    except UsageError as error:
        raise error.within(path) from None
    samples = [replace(s, source=feed) for s, feed in zip(made.samples, feeds, strict=True)]
    return replace(made, samples=samples)


def _check_counts(samples: Sequence[int], labels: Sequence[int], least: int = 2) -> None:
    """Raises UsageError unless shapes are (N,…), of rank `least` or more, and (N,)."""
    if len(labels) != 1 or len(samples) < least or labels[0] != samples[0]:
        raise UsageError(
            tr(
                "expected as many labels as samples, found samples of shape {given} "
                "and labels of shape {named}",
                given=samples,
                named=labels,
            )
        )


def of_arrays(name: str, samples: Any, labels: Any, text: bool = False) -> Dataset:
    """(N,…) samples and (N,) labels, which are lines of `text` or classes. Raises UsageError."""
    samples, labels = np.asarray(samples), np.asarray(labels)
    _check_counts(samples.shape, labels.shape)
    if text:
        named = [Sample(str(i), x, str(t)) for i, (x, t) in enumerate(zip(samples, labels))]
        return Dataset(name, "text", named)
    if labels.dtype.kind in "iu":
        check_class_number(int(labels.min(initial=0)))
        named = [Sample(str(i), x, int(n)) for i, (x, n) in enumerate(zip(samples, labels))]
        return Dataset(name, "classification", named)
    if labels.dtype.kind not in "SU":
        raise UsageError(
            tr("expected labels that are integers or names, found {dtype}", dtype=labels.dtype)
        )
    if labels.dtype.kind == "S":
        labels = np.char.decode(labels, "utf-8", "replace")
    classes, numbers = np.unique(labels, return_inverse=True)
    named = [Sample(str(i), x, int(n)) for i, (x, n) in enumerate(zip(samples, numbers))]
    return Dataset(name, "classification", named, classes.tolist())
