"""JSON that somebody else wrote, read with checks: a part knows its place in the document.

    document = parse(data, "PIR program")
    document["program"]["regions"][0]["blocks"].items()

What is missing, or of another kind than asked for, raises ModelFormatError with the place, like
`PIR program.regions[0]: 'blocks' is missing`.
"""

from __future__ import annotations

import json
from dataclasses import MISSING, fields, is_dataclass
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from lite_messages import tr

from .errors import ModelFormatError

T = TypeVar("T")
_KINDS = {
    dict: tr("an object"),
    list: tr("a list"),
    str: tr("a string"),
    int: tr("an integer"),
    float: tr("a number"),
    bool: tr("true or false"),
    type(None): "null",
}


def parse(data: str | bytes, what: str) -> Part:
    """The document; `what` names it in messages. Raises ModelFormatError when it is not JSON."""
    try:
        return Part(json.loads(data), what)
    except RecursionError:
        raise ModelFormatError(tr("nested too deeply"), where=what) from None
    except ValueError as error:
        raise ModelFormatError(
            tr("not a valid JSON document of a {what} ({error})", what=what, error=error)
        ) from None


#: Metadata of a dataclass field: the key that documents of an older version have.
_OLD_KEY = "old_key"


def renamed(old_key: str) -> dict[str, str]:
    """The metadata of a dataclass field that older documents call `old_key`."""
    return {_OLD_KEY: old_key}


class Part:
    """One value of a document: `value` is what `json` made of it, `where` its place."""

    __slots__ = ("value", "where")

    def __init__(self, value: Any, where: str) -> None:
        self.value, self.where = value, where

    def __getitem__(self, key: str | int) -> Part:
        """A key of an object, or an index (not negative) of a list."""
        if isinstance(key, int):
            items = self._as(list)
            if not 0 <= key < len(items):
                raise ModelFormatError(
                    tr(
                        "expected at least {key} items, found {count}",
                        key=key + 1,
                        count=len(items),
                    ),
                    where=self.where,
                )
            return Part(items[key], f"{self.where}[{key}]")
        if key not in self._as(dict):
            raise ModelFormatError(tr("{key!r} is missing", key=key), where=self.where)
        return Part(self.value[key], f"{self.where}.{key}")

    def get(self, key: str) -> Part | None:
        """A key of an object; None where it is missing or null."""
        return None if self._as(dict).get(key) is None else self[key]

    def items(self) -> list[Part]:
        """The parts of a list."""
        return [Part(v, f"{self.where}[{i}]") for i, v in enumerate(self._as(list))]

    def fields(self) -> dict[str, Part]:
        """The parts of an object."""
        return {k: Part(v, f"{self.where}.{k}") for k, v in self._as(dict).items()}

    def text(self) -> str:
        return str(self._as(str))

    def integer(self) -> int:
        """An integer that fits 64 bits, truth values aside."""
        if type(self.value) is not int or not -(1 << 63) <= self.value < 1 << 63:
            raise self._another(int)
        return self.value

    def number(self) -> float:
        if type(self.value) is int and abs(self.value) >= 1 << 63:
            raise self._another(float)
        return float(self._as(float) if type(self.value) is not int else self.value)

    def truth(self) -> bool:
        """True or false, also written as 1 or 0."""
        return bool(self.value) if self.value in (0, 1) else bool(self._as(bool))

    def into(self, kind: type[T]) -> T:
        """The value as a Python type: numbers, texts, `X | None`, list[X], dict[str, X],
        frozenset[X], tuple[X, …], Literal, a dataclass, Any. Keys that a dataclass does not have
        are left out; a field with the metadata of `renamed` is also read under its old key."""
        made: T = self._read(kind)
        return made

    def _read(self, kind: Any) -> Any:
        if kind in _SCALARS:
            return _SCALARS[kind](self)
        inner = get_args(kind)
        if NoneType in inner:
            return None if self.value is None else self._read(inner[0])
        if is_dataclass(kind):
            return self._made(kind)
        if get_origin(kind) is Literal:
            if self.value not in inner:
                raise ModelFormatError(
                    tr("expected one of {choices}", choices=", ".join(map(repr, inner))),
                    where=self.where,
                )
            return self.value
        if get_origin(kind) is tuple:
            return tuple(part._read(inner[0]) for part in self.items())
        if get_origin(kind) is dict:
            return {key: part._read(inner[1]) for key, part in self.fields().items()}
        return get_origin(kind)(part._read(inner[0]) for part in self.items())

    def _made(self, kind: Any) -> Any:
        hints, known = get_type_hints(kind), self.fields()
        given = {}
        for own in fields(kind):
            free = own.default is not MISSING or own.default_factory is not MISSING
            old = own.metadata.get(_OLD_KEY, "")
            key = old if old in known and own.name not in known else own.name
            if key in known or not free:
                given[own.name] = self[key]._read(hints[own.name])
        return kind(**given)

    def _as(self, kind: type) -> Any:
        if type(self.value) is not kind:
            raise self._another(kind)
        return self.value

    def _another(self, kind: type) -> ModelFormatError:
        found = str(self.value)
        shown = f"{found:.40}" if type(self.value) in (str, int, float) else ""
        is_a = _KINDS.get(type(self.value), "bytes")  # only a database has any
        shown = f"{is_a} {shown!r}" if shown else is_a
        return ModelFormatError(
            tr("expected {kinds}, found {shown}", kinds=_KINDS[kind], shown=shown), where=self.where
        )


_SCALARS: dict[Any, Any] = {str: Part.text, int: Part.integer, float: Part.number,
                            bool: Part.truth, Any: lambda part: part.value}  # fmt: skip
