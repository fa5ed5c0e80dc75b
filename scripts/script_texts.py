"""The texts in JavaScript: a scanner that tells strings, templates and comments apart, also where
templates hold templates."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

#: Where a `/` begins a regular expression and not a division: after these, or after a keyword.
_BEFORE_REGEX = re.compile(r"(?:^|[(,=:\[!&|?{};+\-*%<>~^]|\b(?:return|typeof|case|of|in))\s*$")
_REGEX = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
_MARK = re.compile(r"(?<![\w.$])(tr|trn)\(\s*(?:\"(?:[^\"\\\n]|\\.)*\",\s*)?$")
_TAG = re.compile(r"(?<![\w.$])(html|svg)$")
_ATTRIBUTE = re.compile(r"\b(?:title|aria-label|placeholder|alt|data-tip)=\"([^\"]*)")
_MARKUP = re.compile(r"<style.*?</style>|<!--.*?-->|<[a-z/][^<>]*>?|^[^<>]*\">", re.S)


@dataclass
class Literal:
    """A string, or a template with its gaps as {…}; `tag` is html, svg or "", `marked` whether it
    is the text of a `tr` or `trn`."""

    line: int
    text: str
    tag: str = ""
    marked: bool = False

    @property
    def markup(self) -> bool:
        return bool(self.tag) or "<" in self.text

    def read(self) -> Iterator[str]:
        """What of it a person can read: of markup the text and the spoken attributes."""
        if not self.markup:
            yield _unescaped(self.text)
            return
        yield from _ATTRIBUTE.findall(self.text)
        for part in _MARKUP.sub("\n", self.text).split("\n"):
            if part.strip():
                yield _unescaped(" ".join(part.split()))


def _unescaped(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: " " if m[1] == "n" else m[1], text)


@dataclass
class _Open:
    """A template under way: where it began, its text so far, and the braces open in its gap."""

    line: int
    tag: str
    parts: list[str] = field(default_factory=list)
    braces: int = 0


def literals(source: str) -> list[Literal]:
    """Every string and template of a program, in the order in which they end."""
    found: list[Literal] = []
    stack: list[_Open] = []
    at, text_begins = 0, -1  # text_begins: inside a template's text, where that began
    while at < len(source):
        here = source[at]
        if text_begins >= 0:  # the text of a template
            if here == "\\":
                at += 2
            elif here == "`":
                done = stack.pop()
                text = "".join([*done.parts, source[text_begins:at]])
                found.append(Literal(done.line, text, done.tag))
                at, text_begins = at + 1, -1
            elif source.startswith("${", at):
                stack[-1].parts += [source[text_begins:at], "{…}"]
                stack[-1].braces = 1
                at, text_begins = at + 2, -1
            else:
                at += 1
            continue
        before = source[max(0, at - 300) : at]
        if (comment := _COMMENT.match(source, at)) and here == "/":
            at = comment.end()
        elif here == "/" and _BEFORE_REGEX.search(before) and (regex := _REGEX.match(source, at)):
            at = regex.end()
        elif here in "\"'" and (string := _STRING.match(source, at)):
            line = source.count("\n", 0, at) + 1
            marked = bool(_MARK.search(before))
            found.append(Literal(line, string.group()[1:-1], marked=marked))
            at = string.end()
        elif here == "`":
            tag = _TAG.search(before)
            stack.append(_Open(source.count("\n", 0, at) + 1, tag[1] if tag else ""))
            at += 1
            text_begins = at
        elif here in "{}" and stack:
            stack[-1].braces += 1 if here == "{" else -1
            at += 1
            if stack[-1].braces == 0:  # the gap is closed
                text_begins = at
        else:
            at += 1
    return found
