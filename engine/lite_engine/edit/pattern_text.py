"""Patterns as text: `Mul(x, Sigmoid(x))`."""

from __future__ import annotations

import re

from lite_messages import tr

from ..errors import UsageError
from ..ops import find_op
from ..passes._core import P

_TOKEN = re.compile(r"\s*([\w.:?+-]+|[(),]|\S)")


def pattern(text: str) -> P:
    """The pattern that a text describes: an operator with its inputs in brackets, each one again an
    operator, a word that stands for any value (`b?` may be absent) or a number. The same word
    twice is the same value. Raises UsageError with the place where the text goes wrong.

        pattern("Mul(x, Sigmoid(x))")
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
    if tokens[at + 1][0] != "(":
        return _leaf(text, word, place), at + 1
    if find_op(word) is None:
        raise UsageError(tr("{op} in {text!r} is not a known operator", op=word, text=text))
    args: list[P | str | float] = []
    at += 1
    while tokens[at][0] != ")":
        if tokens[at][0] not in ("(", ","):
            raise _wrong(text, tokens[at])
        arg, at = _part(text, tokens, at + 1)
        args.append(arg)
    return P(word, *args), at + 1


def _leaf(text: str, word: str, place: int) -> str | float:
    try:
        return float(word)
    except ValueError:
        if re.fullmatch(r"[A-Za-z_]\w*\??", word):
            return word
        raise _wrong(text, (word, place)) from None


def _wrong(text: str, token: tuple[str, int]) -> UsageError:
    return UsageError(
        tr("cannot read the pattern {text!r} at {rest!r}", text=text, rest=text[token[1] :]),
        fix=tr("write it like {example}", example="Mul(x, Sigmoid(x))"),
    )
