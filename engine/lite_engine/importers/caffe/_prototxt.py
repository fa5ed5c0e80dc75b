"""Parser of protobuf's text format, as far as Caffe's prototxt uses it.

    net = parse("name: 'x' layer { bottom: 'a' }")
    net.text("name"); net.blocks("layer"); net.ints("dim")

Field: `name: value`, `name: [v, v]`, `name { … }` or `name < … >`; comments start with #. Repeated
fields keep their order. Nesting, tokens and file size are bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from lite_messages import tr

from ...errors import ModelFormatError

MAX_DEPTH = 32
MAX_BYTES = 1 << 26

_TOKEN = re.compile(
    r"""\s+|\#[^\n]*
    |(?P<string>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    |(?P<word>[A-Za-z_][A-Za-z0-9_.\-/]*)
    |(?P<number>[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?|-?(?:inf|nan)f?)
    |(?P<mark>[{}<>:;,\[\]])""",
    re.VERBOSE,
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


class Block:
    """The fields of one message; values are text or Blocks."""

    def __init__(self) -> None:
        self.fields: dict[str, list[str | Block]] = {}

    def add(self, name: str, value: str | Block) -> None:
        self.fields.setdefault(name, []).append(value)

    def has(self, name: str) -> bool:
        return name in self.fields

    def texts(self, name: str) -> list[str]:
        values = self.fields.get(name, [])
        if any(isinstance(v, Block) for v in values):
            raise ModelFormatError(
                tr("prototxt: {name} holds a message where a value is expected", name=name)
            )
        return [v for v in values if isinstance(v, str)]

    def blocks(self, name: str) -> list[Block]:
        values = self.fields.get(name, [])
        if any(isinstance(v, str) for v in values):
            raise ModelFormatError(
                tr("prototxt: {name} holds a value where a message is expected", name=name)
            )
        return [v for v in values if isinstance(v, Block)]

    def block(self, name: str) -> Block:
        """The last message of that name, an empty one when absent."""
        found = self.blocks(name)
        return found[-1] if found else Block()

    def text(self, name: str, default: str = "") -> str:
        values = self.texts(name)
        return values[-1] if values else default

    def ints(self, name: str) -> list[int]:
        return [int(_number(name, v)) for v in self.texts(name)]

    def floats(self, name: str) -> list[float]:
        return [_number(name, v) for v in self.texts(name)]

    def int(self, name: str, default: int) -> int:
        values = self.ints(name)
        return values[-1] if values else default

    def float(self, name: str, default: float) -> float:
        values = self.floats(name)
        return values[-1] if values else default

    def flag(self, name: str, default: bool) -> bool:
        value = self.text(name)
        if not value:
            return default
        if value.lower() not in ("true", "false", "1", "0", "t", "f"):
            raise ModelFormatError(
                tr("prototxt: {name} is {value!r}, not true or false", name=name, value=value)
            )
        return value.lower() in ("true", "1", "t")


def _number(name: str, text: str) -> float:
    try:
        value = float(text.rstrip("fF") if text[-1:] in "fF" and "inf" not in text else text)
    except ValueError:
        raise ModelFormatError(
            tr("prototxt: {name} is {text!r}, not a number", name=name, text=text)
        ) from None
    if not -1e18 < value < 1e18:
        raise ModelFormatError(
            tr("prototxt: {name} is {text!r}, out of range", name=name, text=text)
        )
    return value


def parse(text: str) -> Block:
    """The whole file. Raises ModelFormatError naming the line."""
    return _Parser(text).block(0)


class _Parser:
    def __init__(self, text: str) -> None:
        self.line = 1
        self._tokens = self._scan(text)
        self._kind, self._token = "", ""
        self._next()

    def _scan(self, text: str) -> Iterator[tuple[str, str]]:
        at = 0
        while at < len(text):
            m = _TOKEN.match(text, at)
            if m is None:
                raise self._fail(tr("unexpected {text!r}", text=text[at : at + 20]))
            at = m.end()
            if m.lastgroup:
                yield m.lastgroup, m.group()
            self.line += m.group().count("\n")

    def _next(self) -> None:
        self._kind, self._token = next(self._tokens, ("end", ""))

    def _fail(self, message: str) -> ModelFormatError:
        return ModelFormatError(
            tr("prototxt, line {line}: {message}", line=self.line, message=message)
        )

    def _take(self, mark: str) -> bool:
        if self._token == mark and self._kind == "mark":
            self._next()
            return True
        return False

    def block(self, depth: int, closing: str = "") -> Block:
        if depth > MAX_DEPTH:
            raise self._fail(tr("nested deeper than {max_depth} messages", max_depth=MAX_DEPTH))
        out = Block()
        while True:
            if self._kind == "end":
                if closing:
                    raise self._fail(tr("a message is not closed by {closing}", closing=closing))
                return out
            if closing and self._take(closing):
                return out
            if self._kind != "word":
                raise self._fail(tr("expected a field name, found {token!r}", token=self._token))
            name = self._token
            self._next()
            self._value(out, name, depth)
            while self._take(";") or self._take(","):
                pass

    def _value(self, out: Block, name: str, depth: int) -> None:
        colon = self._take(":")
        if self._take("{"):
            out.add(name, self.block(depth + 1, "}"))
        elif self._take("<"):
            out.add(name, self.block(depth + 1, ">"))
        elif not colon:
            raise self._fail(
                tr("expected : or {{ after {name!r}, found {found!r}", name=name, found=self._token)
            )
        elif self._take("["):
            while not self._take("]"):
                out.add(name, self._scalar(name))
                if not self._take(",") and self._token != "]":
                    raise self._fail(tr("the list {name!r} is not closed", name=name))
        else:
            out.add(name, self._scalar(name))

    def _scalar(self, name: str) -> str:
        if self._kind not in ("string", "word", "number"):
            raise self._fail(tr("{name!r} has no value", name=name))
        kind, token = self._kind, self._token
        self._next()
        if kind != "string":
            return token
        text = _unquoted(token)
        while self._kind == "string":  # neighbouring strings are one
            text += _unquoted(self._token)
            self._next()
        return text


def _unquoted(token: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), token[1:-1])
