"""What META and GRAPH of a `.lite` file may hold: JSON Schema (draft 2020-12) with a limit on every
count and length, and a reader that holds documents to it. docs/lite_format.md shows both."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from lite_messages import tr

from ..documents import Part
from ..errors import ModelFormatError
from .precision import PRECISIONS, TARGETS

Schema = Mapping[str, Any]
#: Objects and lists within each other, the document itself counted.
MAX_DEPTH = 32
_MOST = 1 << 20
_NAME: Schema = {"type": "string", "maxLength": 65535}
_TEXT: Schema = {"type": "string", "maxLength": _MOST}
#: What a model carries along for people and tools: any JSON.
_ANYTHING: Schema = {"type": "object", "maxProperties": 65535}


def _list(items: Schema, most: int = _MOST) -> Schema:
    return {"type": "array", "items": items, "maxItems": most}


def _map(values: Schema, most: int = _MOST) -> Schema:
    return {"type": "object", "additionalProperties": values, "maxProperties": most}


def _record(fields: Mapping[str, Schema], optional: Iterable[str] = ()) -> Schema:
    required = [name for name in fields if name not in set(optional)]
    return {"type": "object", "properties": dict(fields), "required": required,
            "additionalProperties": False}  # fmt: skip


def _one_of(words: Iterable[str]) -> Schema:
    return {"type": "string", "enum": list(words)}


_COUNT: Schema = {"type": "integer", "minimum": 0, "maximum": 2**63 - 1}
_COST = _map(_COUNT, 16)
_PASS = _record({"name": _NAME, "rewrites": _COUNT, "before": _COST, "after": _COST})
_ENTRY = _record(
    {"rule": _NAME, "action": _one_of(["rewrote", "refused"]), "nodes": _list(_NAME),
     "result": _list(_NAME), "reason": _TEXT}
)  # fmt: skip
META = _record(
    {
        "name": _NAME,
        "engine": {"type": "string", "maxLength": 64},
        "targets": _list(_one_of(TARGETS), len(TARGETS)),
        "precisions": _map(_one_of(PRECISIONS), len(TARGETS)),
        "graphs": _map(_NAME, 4),
        "tuning": _map(_map(_NAME), 1024),
        # a precision or a backend, which may be another package's that is not installed here
        "overrides": _map(_map({"type": "string", "maxLength": 64}), len(TARGETS)),
        "notes": _map(_TEXT, len(TARGETS)),
        "padded": {"type": "boolean"},
        "metadata": _ANYTHING,
        "journal": _record({"passes": _list(_PASS), "entries": _list(_ENTRY)}),
    },
    optional=("graphs", "overrides", "padded"),
)
_ARRAY = _record(
    {"dtype": {"type": "string", "maxLength": 8}, "shape": _list(_COUNT, 32), "weight": _COUNT}
)
GRAPH = _record(
    {"text": {"type": "string", "maxLength": 1 << 30}, "arrays": _list(_ARRAY),
     "metadata": _ANYTHING}
)  # fmt: skip


def read(data: bytes, schema: Schema, what: str) -> dict[str, Any]:
    """The document, called `what` in messages. Raises ModelFormatError, naming the place, for what
    is not UTF-8 or JSON, is nested too deeply, names a key twice, or is not what the schema says.
    """
    try:
        value = json.loads(data.decode("utf-8"), object_pairs_hook=_once)
    except RecursionError:
        raise ModelFormatError(tr("nested too deeply")) from None
    except UnicodeDecodeError as error:
        raise ModelFormatError(tr("byte {at} is not UTF-8", at=error.start)) from None
    except ValueError as error:
        raise ModelFormatError(tr("not JSON ({error})", error=error)) from None
    if isinstance(value, dict):
        _check_depth(value)
    check(Part(value, what), schema)
    return dict(value)


def check(part: Part, schema: Schema) -> None:
    """Raises ModelFormatError for a value that is not what the schema says."""
    kind = schema["type"]
    if kind == "object":
        _check_object(part, schema)
    elif kind == "array":
        items = part.items()
        _limit(part, len(items), schema["maxItems"])
        for item in items:
            check(item, schema["items"])
    elif kind == "string":
        text = part.text()
        _limit(part, len(text), schema.get("maxLength", _MOST))
        if text not in schema.get("enum", (text,)):
            allowed = ", ".join(schema["enum"])
            raise ModelFormatError(
                tr("{word!r} is not one of {allowed}", word=text[:64], allowed=allowed),
                where=part.where,
            )
    elif kind == "integer":
        number = part.integer()
        if not schema["minimum"] <= number <= schema["maximum"]:
            raise ModelFormatError(tr("{n} is negative", n=number), where=part.where)
    elif kind == "number":
        part.number()
    elif type(part.value) is not bool:
        raise ModelFormatError(tr("expected true or false"), where=part.where)


def _check_object(part: Part, schema: Schema) -> None:
    fields = part.fields()
    known = schema.get("properties", {})
    others = schema.get("additionalProperties", {})
    for name in schema.get("required", ()):
        if name not in fields:
            raise ModelFormatError(tr("{key!r} is missing", key=name), where=part.where)
    _limit(part, len(fields), schema.get("maxProperties", len(fields)))
    for name, field in fields.items():
        if name not in known and others is False:
            raise ModelFormatError(
                tr("{key!r} is not a known key", key=name[:64]), where=part.where
            )
        inner = known.get(name, others)
        if inner:
            check(field, inner)


def _limit(part: Part, length: int, most: int) -> None:
    if length > most:
        raise ModelFormatError(
            tr("length {length}, at most {most} is allowed", length=length, most=most),
            where=part.where,
        )


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(tr("the key {key!r} occurs twice", key=twice[:64]))
    return made


def _check_depth(value: Any) -> None:
    level = [value]
    for _ in range(MAX_DEPTH):
        inside = [v.values() if isinstance(v, dict) else v for v in level]
        level = [v for values in inside for v in values if isinstance(v, (dict, list))]
        if not level:
            return
    raise ModelFormatError(tr("nested more than {depth} deep", depth=MAX_DEPTH))
