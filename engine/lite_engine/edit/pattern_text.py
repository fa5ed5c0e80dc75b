"""Patterns as text: `Mul(x, Sigmoid(x))`, `Conv[group=1, strides>1](x, w, b?)`."""

from __future__ import annotations

import re
from typing import Any

from lite_messages import tr

from ..errors import UsageError
from ..ops import find_op
from ..passes._attributes import A, Comparison
from ..passes._core import P

_TOKEN = re.compile(r"\s*(\[[^\]]*\]|[\w.:?+-]+|[(),]|\S)")
#: A condition in square brackets, or a word for the attribute's value.
_CONDITION = re.compile(r"\s*(\w+)\s*(?:(<=|>=|!=|=|<|>)\s*([\w.+-]+)|:\s*([A-Za-z_]\w*))?\s*")


def pattern(text: str) -> P:
    """The pattern that a text describes: an operator with its inputs in brackets, each one again an
    operator, a word that stands for any value (`b?` may be absent) or a number. The same word
    twice is the same value. Square brackets behind an operator say what its attributes must be
    (`group=1`, `alpha<0.2`, `kernel_shape=1x1`, `mode!=linear`), or that the replacement gets them
    (`alpha`, or `alpha:slope` under another name). Raises UsageError with the place where the text
    goes wrong.

        pattern("Mul(x, Sigmoid(x))")
        pattern("LeakyRelu[alpha](x)")
    """
    tokens = [(m[1], m.start(1)) for m in _TOKEN.finditer(text.rstrip())] + [("", len(text))]
    found, at = _part(text, tokens, 0)
    if tokens[at][0] or not isinstance(found, P):
        raise _wrong(text, tokens[at] if isinstance(found, P) else tokens[0])
    return found


def _part(text: str, tokens: list[tuple[str, int]], at: int) -> tuple[P | str | float, int]:
    """What begins at a token, and the token after it."""
    word, place = tokens[at]
    if not re.match(r"[\w.+-]", word):
        raise _wrong(text, (word, place))
    if tokens[at + 1][0][:1] not in ("(", "["):
        return _leaf(text, word, place), at + 1
    if find_op(word) is None:
        raise UsageError(tr("{op} in {text!r} is not a known operator", op=word, text=text))
    args: list[P | str | float] = []
    at += 1
    attrs: dict[str, Any] = {}
    if tokens[at][0].startswith("["):
        attrs = _attributes(text, tokens[at])
        at += 1
        if tokens[at][0] != "(":
            raise _wrong(text, tokens[at])
    while tokens[at][0] != ")":
        if tokens[at][0] not in ("(", ","):
            raise _wrong(text, tokens[at])
        arg, at = _part(text, tokens, at + 1)
        args.append(arg)
    try:
        return P(word, *args, attrs=attrs), at + 1
    except ValueError as error:
        raise UsageError(str(error)) from None


def _attributes(text: str, token: tuple[str, int]) -> dict[str, Any]:
    """`[group=1, alpha]` as the attributes of a `P`."""
    content, place = token
    conditions: dict[str, list[Comparison]] = {}
    words: dict[str, str] = {}
    for part in content.removesuffix("]").removeprefix("[").split(","):
        found = _CONDITION.fullmatch(part)
        if not found or not content.endswith("]"):
            raise _wrong(text, token)
        name, sign, wanted, word = found.groups()
        conditions.setdefault(name, [])
        if not sign:
            words[name] = word or name
            continue
        value = _value(wanted)
        if sign[0] in "<>" and not isinstance(value, (int, float)):
            raise _wrong(text, (wanted, text.index(wanted, place)))
        conditions[name].append(Comparison(sign, value))
    return {name: A(words.get(name, ""), found) for name, found in conditions.items()}


def _value(text: str) -> Any:
    """`0.1`, `3`, `1x1` (a list), or a word."""
    if re.fullmatch(r"\d+(x\d+)+", text):
        return [int(n) for n in text.split("x")]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _leaf(text: str, word: str, place: int) -> str | float:
    try:
        return float(word)
    except ValueError:
        if re.fullmatch(r"[A-Za-z_]\w*\??", word):
            return word
        raise _wrong(text, (word, place)) from None


def _wrong(text: str, token: tuple[str, int]) -> UsageError:
    rest = text[token[1] :]
    return UsageError(
        tr("cannot read the pattern {text!r} at {rest!r}", text=text, rest=rest)
        if rest
        else tr("the pattern {text!r} ends too early", text=text),
        fix=tr("write it like {example}", example="Mul(x, Sigmoid(x))"),
    )
