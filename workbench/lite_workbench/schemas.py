"""The JSON Schema (draft 2020-12) of the document that each verb writes with `--json`.

A document names its schema, like ``"schema": "lite/profile/2"``. The number grows whenever a key is
added, renamed or removed. Schemas are made from the types of the results; numbers that are not
finite are null in JSON.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, is_dataclass
from typing import (
    Any,
    Literal,
    TypedDict,
    Union,
    get_args,
    get_origin,
    get_type_hints,
    is_typeddict,
)

from lite_engine.errors import ErrorData, LiteError
from lite_messages import tr

Schema = dict[str, Any]

#: The version of each verb's document.
VERSIONS = {"doctor": 1, "info": 1, "convert": 2, "quantize": 3, "prune": 1, "run": 2, "profile": 3,
            "tune": 2, "compare": 5, "evaluate": 1, "sweep": 2, "recommend": 1, "devices": 1,
            "export": 2, "edit": 1, "diff": 1, "pipeline": 2, "runs": 3, "get": 1}  # fmt: skip
_SCALARS: dict[Any, Schema] = {
    Any: {}, bool: {"type": "boolean"}, int: {"type": "integer"}, str: {"type": "string"},
    float: {"type": ["number", "null"]}, type(None): {"type": "null"},
}  # fmt: skip


def schema_name(verb: str) -> str:
    """What a document of this verb has under "schema"."""
    return f"lite/{verb}/{VERSIONS[verb]}"


def schema(verb: str) -> Schema:
    """The schema of what `lite VERB --json` writes: its result, or an error. Raises KeyError."""
    name = {"schema": {"const": schema_name(verb)}}
    documents = [_with(document, name) for document in _DOCUMENTS[verb]()]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"lite {verb} --json",
        "anyOf": [*documents, _object({"error": schema_of(ErrorData)})],
    }


def schema_of(kind: Any) -> Schema:
    """The schema of a type: scalars, containers, dataclasses, named tuples and typed dicts."""
    if kind in _SCALARS:
        return _SCALARS[kind]
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, types.UnionType):
        return {"anyOf": [schema_of(one) for one in inner]}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin in (dict, Mapping):
        return {"type": "object", "additionalProperties": schema_of(inner[1])}
    if origin is tuple and inner[-1] is not ...:
        return {"type": "array", "prefixItems": [schema_of(one) for one in inner],
                "minItems": len(inner), "maxItems": len(inner)}  # fmt: skip
    if origin in (list, tuple, frozenset, Sequence):
        return {"type": "array", "items": schema_of(inner[0])}
    if isinstance(kind, type) and issubclass(kind, LiteError):
        return schema_of(ErrorData)
    hints = get_type_hints(kind)
    if is_dataclass(kind):
        return _object({own.name: schema_of(hints[own.name]) for own in fields(kind)})
    if is_typeddict(kind) or hasattr(kind, "_fields"):
        return _object({name: schema_of(hint) for name, hint in hints.items()})
    raise TypeError(tr("{kind} has no JSON schema", kind=kind))


def _object(properties: Mapping[str, Schema]) -> Schema:
    return {"type": "object", "properties": dict(properties), "required": list(properties),
            "additionalProperties": False}  # fmt: skip


def _with(document: Schema, more: Mapping[str, Schema]) -> Schema:
    """An object with these properties besides its own."""
    return _object({**more, **document["properties"]})


# ---- documents that are not simply a dataclass


class Statistics(TypedDict):
    """One output of `lite run`; of numbers also their range."""

    shape: list[int]
    dtype: str


class Answer(TypedDict):
    """What the outputs of a run mean."""

    kind: Literal["values", "top", "boxes", "text"]
    text: str
    items: list[dict[str, Any]]


class Top(TypedDict):
    """One class of a classifier's result."""

    index: int
    label: str
    score: float


class Loss(TypedDict):
    """How far an output in fp16 or bf16 is from fp32."""

    rel_l2: float
    max_abs: float


class Sizes(TypedDict):
    """Layers before and after the conversion."""

    source: int
    optimized: int


class JournalDocument(TypedDict):
    """What the passes did."""

    passes: list[dict[str, Any]]
    entries: list[dict[str, Any]]


class Conversion(TypedDict):
    """`lite convert`."""

    file: str
    bytes: int
    targets: list[str]
    precisions: dict[str, str]
    layers_set: dict[str, dict[str, str]]
    layers: Sizes
    precision_loss: dict[str, str | dict[str, Loss]]
    notes: dict[str, str]
    journal: JournalDocument


class WeightsOnly(TypedDict):
    """`lite quantize --weights-only`."""

    file: str
    bytes: int
    float_weight_bytes: int
    parts: dict[str, int]
    weights_only: int


class Int4Layer(TypedDict):
    """A layer with 4-bit weights."""

    name: str
    sqnr_db: float
    group: int
    bytes: int


class Int4Weights(WeightsOnly):
    """`lite quantize --weights-only int4`."""

    group: int
    symmetric: bool
    method: str
    tried_db: dict[str, float]
    layers: list[Int4Layer]
    float_layers: dict[str, str]
    guard: dict[str, Any] | None


class ShippedFile(TypedDict):
    """One file of an exported folder."""

    file: str
    bytes: int
    what: str


class OpenCLPrograms(TypedDict):
    """Kinds of devices that an exported model has OpenCL programs for, and their precision."""

    devices: list[str]
    precision: str


class Export(TypedDict):
    """`lite export`."""

    folder: str
    target: str
    files: list[ShippedFile]
    bytes: int
    kernels: list[str]
    opencl: OpenCLPrograms


def _doctor() -> list[Schema]:
    from lite_engine.doctor import Examination, FieldReport

    report = _with(schema_of(FieldReport), {"format": {}, "version": {}})
    return [schema_of(Examination), report]


def _info() -> list[Schema]:
    from lite_engine.runtime.support import ModelInfo

    return [schema_of(ModelInfo)]


def _convert() -> list[Schema]:
    from lite_engine.runtime.warm import Warmed

    return [_with(schema_of(Conversion), {"warmed": schema_of(Warmed | None)})]


def _quantize() -> list[Schema]:
    from lite_engine.quantize import Options

    from .budget import Budget

    calibrated = {
        "file": str, "bytes": int, "float_weight_bytes": int, "parts": dict[str, int],
        "options": Options, "samples": int, "tried_db": dict[str, float], "rounding": str,
        "trade_off": list[dict[str, Any]],
        "ranges": dict[str, Any] | None, "integer_nodes": list[str], "float_nodes": dict[str, str],
        "conversions": list[list[str]], "dead_channels": dict[str, list[int]],
        "guard": dict[str, Any] | None, "missed": str, "budget": Budget | None,
        "same_answers": float | None,
    }  # fmt: skip
    return [
        schema_of(WeightsOnly),
        schema_of(Int4Weights),
        _object({name: schema_of(kind) for name, kind in calibrated.items()}),
    ]


def _prune() -> list[Schema]:
    from lite_engine.prune import PruneOptions

    from .budget import Budget
    from .pruned_points import TradeOff
    from .pruning import Gain

    keys = {
        "file": str, "bytes": int, "options": PruneOptions, "layers": list[dict[str, Any]],
        "channels": list[dict[str, Any]], "whole_layers": dict[str, str],
        "dense_layers": dict[str, str], "guard": dict[str, Any],
        "curves": list[dict[str, Any]], "gains": list[Gain], "latency": dict[str, float | None],
        "budget": Budget | None, "trade_off": TradeOff | None,
    }  # fmt: skip
    return [_object({name: schema_of(kind) for name, kind in keys.items()})]


def _run() -> list[Schema]:
    from lite_engine.runtime.shares import Share

    from .recipes import RecipeAnswer

    figures = schema_of(Statistics)
    numbers = {key: schema_of(float) for key in ("min", "max", "mean", "std")}
    figures["properties"] |= {"not_finite": schema_of(int), **numbers}
    values = {"type": "object", "additionalProperties": figures}
    recipes = schema_of(list[RecipeAnswer])
    shares = schema_of(dict[str, Share])
    own = {"model": schema_of(str), "backend": schema_of(str), "shares": shares, "outputs": values,
           "taps": values, "answer": schema_of(Answer), "recipes": recipes,
           "top": schema_of(list[Top])}  # fmt: skip
    return [_object(own)]


def _profile() -> list[Schema]:
    from lite_engine.profile import Profile
    from lite_engine.profile.advice import Advice

    more = {"advice": list[Advice], "run": int | None, "placement": str}
    return [_with(schema_of(Profile), {key: schema_of(kind) for key, kind in more.items()})]


def _tune() -> list[Schema]:
    from lite_engine.backends import Measured
    from lite_engine.doctor.field_report import Adopted

    measured = {"known": schema_of(int), "measured": schema_of(list[Measured]),
                "file": schema_of(str | None)}  # fmt: skip
    return [_object(measured), schema_of(Adopted)]


def _compare() -> list[Schema]:
    from lite_engine.compare.comparison import Comparison
    from lite_engine.compare.many import ComparisonOfInputs

    return [schema_of(Comparison), schema_of(ComparisonOfInputs)]


def _evaluate() -> list[Schema]:
    from .evaluate import Evaluation

    return [schema_of(Evaluation)]


def _sweep() -> list[Schema]:
    from .sweep import Sweep

    return [schema_of(Sweep)]


def _recommend() -> list[Schema]:
    from .recommend import Recommendation

    return [schema_of(Recommendation)]


def _diff() -> list[Schema]:
    from lite_engine.compare.graph_diff import GraphDiff

    return [schema_of(GraphDiff)]


def _pipeline() -> list[Schema]:
    """The answer is as docs/pipelines.md has it, empty where there is none."""
    from lite_engine.pipeline import Guess, PipelineComparison, PipelineProfile, Rates

    from .pipelines.quantizing import PipelineQuantization

    hints = get_type_hints(PipelineQuantization)
    chosen = {key: schema_of(kind) for key, kind in hints.items() if key != "pipeline"}
    keys = {
        "pipeline": str, "models": list[str], "stages": list[dict[str, Any]], "file": str,
        "answer": dict[str, Any], "comparison": PipelineComparison | None, "guesses": list[Guess],
        "profile": PipelineProfile | None, "stream": Rates | None,
    }  # fmt: skip
    own = {name: schema_of(kind) for name, kind in keys.items()}
    return [_object({**own, "quantization": {"anyOf": [_object(chosen), schema_of(type(None))]}})]


def _edit() -> list[Schema]:
    from .editing import Edited

    return [schema_of(Edited)]


def _get() -> list[Schema]:
    from .starters import Starters

    return [schema_of(Starters)]


def _devices() -> list[Schema]:
    from lite_engine.devices import DeviceCheck, Entry

    known = {"devices": schema_of(list[Entry]), "hint": schema_of(str)}
    return [_object(known), _with(schema_of(DeviceCheck), {"error": schema_of(str)})]


def _runs() -> list[Schema]:
    from lite_engine.history._history import Run
    from lite_engine.history.changes import ProfileChange
    from lite_engine.profile import Profile

    run = _with(schema_of(Run), {"when": schema_of(str)})
    change = schema_of(ProfileChange)
    rows = change["properties"]["changes"]
    rows["items"] = _with(rows["items"], {"delta_ns": schema_of(int)})
    listed = _object({"runs": {"type": "array", "items": run}})
    saved = _object({"run": run, "document": {"type": "object"}})
    return [listed, _object({"run": run, "profile": schema_of(Profile)}), saved, change]


_DOCUMENTS: dict[str, Callable[[], list[Schema]]] = {
    "doctor": _doctor, "info": _info, "convert": _convert,
    "quantize": _quantize, "prune": _prune, "run": _run, "profile": _profile,
    "tune": _tune, "compare": _compare, "evaluate": _evaluate, "sweep": _sweep,
    "recommend": _recommend,
    "pipeline": _pipeline, "edit": _edit, "diff": _diff,
    "devices": _devices, "export": lambda: [schema_of(Export)], "runs": _runs,
    "get": _get,
}  # fmt: skip
