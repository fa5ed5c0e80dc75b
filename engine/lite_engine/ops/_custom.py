"""Operators of users: a function in NumPy is enough to import, plan, run and compare them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from lite_messages import tr

from ..errors import UsageError
from ..ir import TypeInfo
from ._core import _REGISTRY, REQUIRED, OpDef, Reference, define_op

_custom: set[str] = set()


def custom_op(name: str, *, outputs: str = "y", **properties: Any) -> Callable[[Reference], OpDef]:
    """Defines the operator `domain::Name` by its reference, a function of arrays.

    Positional parameters are its inputs (`b=None` an optional one, `*xs` any number), keywords its
    attributes, with their defaults. The result is the OpDef: `@op.infer` adds shape inference
    (without it every output has the type of the first input), `@op.cost` its cost; `properties`
    are further arguments of `define_op`. Defining it again replaces it.
    Raises UsageError for a name without a domain, or one of the engine's own operators.
    """
    domain, separator, word = name.partition("::")
    if not (domain and separator and word) or (name in _REGISTRY and name not in _custom):
        raise UsageError(
            tr("{name!r} cannot be the name of a custom operator", name=name),
            fix=tr("use the domain and the operator of the file, like com.acme::MyOp"),
        )

    def make(reference: Reference) -> OpDef:
        inputs, attrs = _schema(reference)
        _REGISTRY.pop(name, None)
        _custom.add(name)
        op = define_op(
            name,
            inputs=inputs,
            outputs=outputs,
            attrs=attrs,
            source=tr("custom operator"),
            **properties,
        )
        op.reference(reference)
        op.infer(_same_as_first(len(op.outputs)))
        return op

    return make


def is_custom(name: str) -> bool:
    """Whether `custom_op` defined it."""
    return name in _custom


def _schema(reference: Reference) -> tuple[str, dict[str, Any]]:
    """The words of `inputs` and the attributes, from a function's parameters."""
    words, attrs = [], {}
    for parameter in inspect.signature(reference).parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            words.append(f"*{parameter.name}")
        elif parameter.kind is parameter.KEYWORD_ONLY:
            given = parameter.default is not parameter.empty
            attrs[parameter.name] = parameter.default if given else REQUIRED
        elif parameter.kind is not parameter.VAR_KEYWORD:
            optional = parameter.default is not parameter.empty
            words.append(f"{parameter.name}{'?' if optional else ''}")
    return " ".join(words), attrs


def _same_as_first(count: int) -> Callable[..., Any]:
    def infer(*types: TypeInfo | None, **_: Any) -> Any:
        first = next(t for t in types if t is not None)
        return [TypeInfo(first.dtype, first.shape)] * count

    return infer
