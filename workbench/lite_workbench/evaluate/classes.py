"""Which class of the model is which class of the data set?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from lite_engine.errors import UsageError
from lite_messages import tr, trn

if TYPE_CHECKING:
    from .dataset import Dataset

_SYNSET = re.compile(r"^n\d{8}\b[\s,_]*")


def class_numbers(dataset: Dataset, labels: Sequence[str], classes: int | None) -> dict[int, int]:
    """Label of the data set → class number of the model, for labels that have a name; empty where
    labels are the model's own numbers.

    Names are looked for among the model's labels (case does not matter; of "tench, Tinca tinca"
    either name counts, of "n01440764 tench" also the synset). Names that are numbers are class
    numbers. Without labels, as many names as classes are counted in alphabetical order.
    Raises UsageError for labels that are more or fewer than its classes, names that the model does
    not have, and numbers beyond its classes.
    """
    if dataset.classes and labels and classes is not None and len(labels) != classes:
        raise UsageError(
            tr("there are {labels} labels for {classes} classes of the model",
               labels=len(labels), classes=classes),
            fix=tr("pass the model's own labels with --labels, one line for each class"),
        )  # fmt: skip
    numbers = _named(dataset.classes, labels, classes) if dataset.classes else {}
    for sample in dataset.samples:
        number = numbers.get(sample.label, sample.label)
        if classes is not None and not 0 <= number < classes:
            raise UsageError(
                tr(
                    "label {number}, but the model has {classes} classes, counted from 0",
                    number=number,
                    classes=classes,
                ),
                where=f"{dataset.name}: {sample.name}",
                fix=_offset_that_fits(
                    [numbers.get(s.label, s.label) for s in dataset.samples],
                    classes,
                    dataset.offset,
                ),
            )
    return numbers


def _offset_that_fits(found: Sequence[int], classes: int, given: int) -> str:
    """The advice for numbers, of which `given` is the offset so far, that lie beyond a model's
    classes."""
    least, most = min(found), max(found)
    if most - least >= classes:
        return tr("evaluate the model that the data set was made for, or leave out these samples")
    offset = given + (-least if least < 0 else classes - 1 - most)
    if not offset:
        return tr("the labels fit without --label-offset")
    return tr("the labels fit if --label-offset shifts them by {offset}", offset=offset)


def _named(names: Sequence[str], labels: Sequence[str], classes: int | None) -> dict[int, int]:
    known: dict[str, int] = {}
    for number, label in enumerate(labels):
        for name in _spellings(label):
            known.setdefault(name, number)
    found = {i: known[_plain(n)] for i, n in enumerate(names) if _plain(n) in known}
    if len(found) == len(names):
        return found
    if not found and all(name.isdecimal() for name in names):
        return {i: int(name) for i, name in enumerate(names)}
    if not found and classes == len(names) and not labels:
        return {i: i for i in range(len(names))}
    missing = [n for i, n in enumerate(names) if i not in found]
    more = tr(" and {count} more", count=len(missing) - 3) if len(missing) > 3 else ""
    has = (
        trn("{n} label", "{n} labels", len(labels))
        if labels
        else tr("no labels and {classes} classes", classes=classes or "unknown")
    )
    raise UsageError(
        tr(
            "the model has no class {missing}{more} ({has})",
            missing=", ".join(map(repr, missing[:3])),
            more=more,
            has=has,
        ),
        fix=tr("name the classes of the data set as in the model's labels, or pass --labels FILE"),
    )


def _spellings(label: str) -> list[str]:
    """The names that one line of a label file has."""
    synset = _SYNSET.match(label)
    rest = label[synset.end() :] if synset else label
    names = [label, rest, *rest.split(",")]
    return [_plain(n) for n in [*names, *([label[:9]] if synset else [])] if n.strip()]


def _plain(name: str) -> str:
    return re.sub(r"[\s_]+", " ", name).strip().casefold()
