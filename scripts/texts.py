"""Every text that a person reads, on one page, and what WORDS forbids in it.

    python scripts/texts.py            # the page
    python scripts/texts.py --check    # what should be worded differently

Texts are the strings of the packages that read like words (errors, labels, help, reports), the text
of the widgets' JavaScript, the notebooks' prose, the README, the documentation and the newest part
of the changelog. Docstrings and comments are for readers of the code and are not listed.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("engine/lite_engine", "widgets/lite_widgets", "workbench/lite_workbench")


class Text(NamedTuple):
    """A text and where it stands."""

    file: str
    line: int
    text: str


#: Reads like words: two of them, or one with a capital letter.
WORDED = re.compile(r"[A-Za-z][a-z’']*[,:;]? +[a-zA-Z(]|^[A-Z][a-z]{2,}[.…?]?$")
#: Is code of some language, not prose.
CODE = re.compile(
    r"^\s*(#include|#define|import |from \w+ import|<\w|__kernel|def |class )|\(\?[:P!=<]|\\[sdwb]"
)


def python_texts(path: Path, name: str) -> Iterator[Text]:
    """The literals of a module that read like words, f-strings with their gaps as {…}."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    skipped = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            skipped.update(id(part) for part in node.values)
    for node in ast.walk(tree):
        if id(node) in skipped or not isinstance(node, ast.Constant | ast.JoinedStr):
            continue
        text = _literal(node)
        if text and WORDED.search(text) and not CODE.search(text):
            yield Text(name, node.lineno, text)


def _literal(node: ast.expr) -> str:
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if isinstance(node, ast.JoinedStr):
        return "".join(
            _literal(part)
            if isinstance(part, ast.Constant)
            else "{" + ast.unparse(part.value) + "}"
            for part in node.values
            if isinstance(part, ast.Constant | ast.FormattedValue)
        )
    return ""


COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`\w])//[^\n]*", re.S)
STRING = re.compile(r"\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`", re.S)
TAG = re.compile(r"<[^<>]*>")
SPOKEN = re.compile(r"(?:title|aria-label|placeholder|alt)=\"([^\"]+)\"")


def script_texts(path: Path, name: str) -> Iterator[Text]:
    """The strings of a JavaScript file that read like words, templates without their tags."""
    source = COMMENT.sub(
        lambda m: re.sub(r"[^\n]", " ", m.group()), path.read_text(encoding="utf-8")
    )
    for found in STRING.finditer(source):
        body = found.group()[1:-1]
        line = source.count("\n", 0, found.start()) + 1
        for text in [*SPOKEN.findall(body), *re.split(r"\n\s*\n|(?<=>)\s*\n", TAG.sub("\n", body))]:
            text = " ".join(text.split())
            if WORDED.search(text) and not CODE.search(text):
                yield Text(name, line, text)


def page_texts(path: Path, name: str) -> Iterator[Text]:
    """The prose of a Markdown file by paragraph, without its code blocks."""
    source = path.read_text(encoding="utf-8")
    if path.name == "CHANGELOG.md":
        source = re.split(r"^(?=## )", source, flags=re.M)[1]
    plain = re.sub(
        r"^```.*?^```", lambda m: "\n" * m.group().count("\n"), source, flags=re.M | re.S
    )
    for found in re.finditer(r"(?:[^\n]+\n?)+", plain):
        yield Text(name, plain.count("\n", 0, found.start()) + 1, found.group().strip())


def notebook_texts(path: Path, name: str) -> Iterator[Text]:
    """The Markdown cells of a notebook and the comments of its code cells."""
    for number, cell in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], 1):
        source = "".join(cell["source"])
        if cell["cell_type"] == "code":
            source = "\n".join(re.findall(r"#\s*(.+)", source))
        if source:
            yield Text(name, number, source)


def help_texts() -> Iterator[Text]:
    """What `lite VERB --help` prints."""
    from lite_workbench.commands import available, get_command, parser_for

    for verb in available():
        yield Text(f"lite {verb} --help", 0, parser_for(get_command(verb)).format_help())


def texts() -> Iterator[Text]:
    """All of them."""
    yield from help_texts()
    for folder in PACKAGES:
        for path in sorted((ROOT / folder).rglob("*")):
            name = str(path.relative_to(ROOT))
            if path.suffix == ".py":
                yield from python_texts(path, name)
            elif path.suffix == ".js" and "static" not in path.parts:
                yield from script_texts(path, name)
    for path in sorted((ROOT / "notebooks").glob("*.ipynb")):
        yield from notebook_texts(path, str(path.relative_to(ROOT)))
    named = [ROOT / n for n in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "ARCHITECTURE.md")]
    for path in [*named, *sorted((ROOT / "docs").rglob("*.md"))]:
        yield from page_texts(path, str(path.relative_to(ROOT)))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.parse_args()
    file = None
    for text in texts():
        if text.file != file:
            print(f"\n== {text.file}")
        file = text.file
        print(f"{text.line}: {text.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
