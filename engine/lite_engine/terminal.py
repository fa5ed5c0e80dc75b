"""Text from elsewhere on its way to a terminal: no control characters, and no longer than a
person reads."""

from __future__ import annotations

import unicodedata

from lite_messages import tr

#: Cc: C0, DEL, C1 (ESC, CSI, OSC). Cf: marks that reorder or hide text. Cs: lone surrogates.
#: Zl, Zp: line breaks.
_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
#: Format characters that only join letters, which several scripts need.
_JOINERS = frozenset("\u200c\u200d")


def shortened(text: str, limit: int) -> str:
    """Text of at most `limit` characters: the middle is left out where it is longer."""
    if len(text) <= limit:
        return text
    mark = " … "
    tail = (limit - len(mark)) // 3
    return text[: limit - len(mark) - tail] + mark + text[len(text) - tail :]


def printable(text: str) -> str:
    """Text with every character that a terminal would obey written as its escape: ``\\x1b``."""
    if text.isprintable():
        return text
    return "".join(c if _is_harmless(c) else _escape(c) for c in text)


def screen(text: str) -> str:
    """Text of several lines: each is printable."""
    return "\n".join(map(printable, text.split("\n")))


def one_line(text: str) -> str:
    """The same on one line: each run of spaces and line breaks is one space."""
    return printable(" ".join(text.split()))


def error_line(error: object) -> str:
    """What a terminal shows of an error."""
    return tr("error: {what}", what=one_line(str(error)))


def _is_harmless(character: str) -> bool:
    return character in _JOINERS or unicodedata.category(character) not in _CATEGORIES


def _escape(character: str) -> str:
    code = ord(character)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
