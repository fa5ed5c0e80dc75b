"""What the answers about a model have in common: the JSON that `--json` prints and the layers as a
table."""

from __future__ import annotations

import copy
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from ..display import Displayed
from . import strict_json

if TYPE_CHECKING:
    import pandas as pd


A = TypeVar("A", bound="Answer")


class Answer(Displayed):
    """A dataclass with `layers`, one dataclass each."""

    layers: list[Any]
    #: The Graph that the layers are of, in the process that asked; no part of the document.
    graph: Any = None

    def of(self: A, graph: Any) -> A:
        """This answer, which from now on knows what its layers are of."""
        object.__setattr__(self, "graph", graph)  # some answers are frozen
        return self

    def to_dict(self) -> dict[str, Any]:
        return as_dict(self)

    def to_json(self, **options: Any) -> str:
        return strict_json.dumps(self.to_dict(), **options)

    def to_dataframe(self) -> pd.DataFrame:
        """The layers as a pandas DataFrame (needs the `lab` extra)."""
        import pandas as pd

        return pd.DataFrame([as_dict(x) for x in self.layers])


def as_dict(answer: Any) -> dict[str, Any]:
    """`dataclasses.asdict`, at a fraction of its time: an answer about a large model has a million
    numbers and texts, which need no copy."""
    return {
        name: item if type(item := getattr(answer, name)) in _AS_IS else _copied(item)
        for name in _names(type(answer))
    }


#: Types whose values nobody can change.
_AS_IS = frozenset((str, int, float, bool, type(None)))


def _copied(value: Any) -> Any:
    kind = type(value)
    if kind in _AS_IS:
        return value
    if kind is list:
        return [item if type(item) in _AS_IS else _copied(item) for item in value]
    if kind is dict:
        return {
            _copied(key): item if type(item) in _AS_IS else _copied(item)
            for key, item in value.items()
        }
    if kind is tuple:
        return tuple([item if type(item) in _AS_IS else _copied(item) for item in value])
    if _names(kind):
        return as_dict(value)
    return copy.deepcopy(value)


_NAMES: dict[type, tuple[str, ...]] = {}


def _names(kind: type) -> tuple[str, ...]:
    """Of a dataclass's fields; none of any other type."""
    if kind not in _NAMES:
        _NAMES[kind] = tuple(f.name for f in fields(kind)) if is_dataclass(kind) else ()
    return _NAMES[kind]
