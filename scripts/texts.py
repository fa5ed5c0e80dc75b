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
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = (
    "engine/lite_messages",
    "engine/lite_engine",
    "widgets/lite_widgets",
    "workbench/lite_workbench",
)


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
MARKED = re.compile(r"\btrn?\(\s*\"((?:[^\"\\\n]|\\.)*)\"(?:,\s*\"((?:[^\"\\\n]|\\.)*)\")?")
TAG = re.compile(r"<[^<>]*>")
SPOKEN = re.compile(r"(?:title|aria-label|placeholder|alt)=\"([^\"]+)\"")


def script_texts(path: Path, name: str) -> Iterator[Text]:
    """The strings of a JavaScript file that read like words, templates without their tags."""
    source = COMMENT.sub(
        lambda m: re.sub(r"[^\n]", " ", m.group()), path.read_text(encoding="utf-8")
    )
    for found in MARKED.finditer(source):
        for literal in filter(None, found.groups()):
            yield Text(name, source.count("\n", 0, found.start()) + 1, literal)
    source = MARKED.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), source)
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
    forms = sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml"))
    for path in [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md")), *forms]:
        yield from page_texts(path, str(path.relative_to(ROOT)))


#: One spelling, that of most of the field's texts.
BRITISH = (
    r"\b(col|behavi|neighb|fav|hon)our|(label|model|travel)l(ed|ing)\b|\bcent(re|red|ring)\b|\bgrey"
    r"|\b(catalogue|licence|artefact|judgement|spelt|learnt)s?\b|\b\w*analys(e|ed|ing)\b"
    r"|\b\w*(author|categor|character|custom|equal|general|initial|local|material|maxim|minim"
    r"|normal|optim|organ|parallel|priorit|quant|random|real|recogn|serial|special|stabil|standard"
    r"|summar|synchron|token|util|vector|visual)is(e|ed|er|es|ing|ation)s?\b"
)
#: (what must not be written, what to write). Plain words only where they carry the private meaning.
FORBIDDEN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.I), better)
    for pattern, better in (
        (r"\b(in|of|are|as) halves\b", "fp16"),
        (r"\b(in|of|are|as) shorts\b", "bf16"),
        (r"\btold_precision\b", "display_precision"),
        (r"\bdoubts?\b", "warnings"),
        (r"\bmagnif(ied|ies)\b", "ill-conditioned, amplifies"),
        (r"\bby_hand\b", "overrides"),
        (r"\b(set|put) by hand\b", "overridden"),
        (r"\b(answer|judged?|decided|compared?) (with|by) places\b", "indices"),
        (r"\bhand-?overs?\b", "transfers"),
        (r"\btables? of answers\b", "lookup tables"),
        (r"\bside [AB]\b", "baseline, candidate"),
        (r"\bguilty\b|\bvictims?\b", "failing layer, propagated error"),
        (r"\bislands?\b(?! of int8)", "isolated int8 region"),
        (r"\b(its|the measured|that) roofs?\b(?! \()", "roofline peak"),
        (r"\bkept (runs?|profiles?|devices?|as run)\b|\bruns? are kept\b", "saved"),
        (r"\bpicture'?s?\b(?! of)", "image"),
        (r"\bcentre cut out\b|\bstretched, \b|\bletterboxed\b", "stretch, center crop, letterbox"),
        (r"(?-i:\bTake \d)", "Use"),
        (r"\bsays? the same\b|\bsay different things\b", "outputs agree, outputs differ"),
        (r"\bheld[ -]back\b", "held out"),
        (r"\bnobody reads\b", "unused"),
        (r"\b(runs?|run|\d+|layers?) elsewhere\b", "on another backend"),
        (r"\bHow small (may )?the numbers\b", "Can it run in int8?"),
        (r"\bIn integers already\b", "Already quantized"),
        (r"\bWhy not, and what then\b", "Reason and alternative"),
        (r"\bis off most\b|\bby itself\b", "on its own"),
        (r"\bcarr(y|ies) (the )?error\b", "propagate the error"),
        (r"\btakes? random numbers\b", "random data is used"),
        (r"\bkernel is gone\b", "The kernel was restarted; run this cell again"),
        (r"\bno kernel holds\b", "Static image: no running kernel"),
        (r"\b(reach|copy|fetch) failed\b", "Cannot reach the board"),
        (r"\bas given\b(?! )", "as in the file"),
        (r"\bmends?\b|\bmended\b", "fix"),
        (r"\bis the wrong side\b", "is the one that is wrong"),
        (r"\bWhat does it say\b", "What does it predict?"),
        (r"\blayers? (that )?minds?\b", "loses accuracy"),
        (r"\bare needed$|\b(a|an) \w+ is needed$", "expected …, found …"),
        (r"\bare asked for\b|\bwas asked for;", "name the value that is wrong"),
        (
            r"\bis no (time|multiple|floating|place)\b|\bis none of\b|\bnumbers are none\b",
            "is not a",
        ),
        (r"\bto be had\b", "could not be allocated"),
        (r"\bmakes other numbers\b", "gives different results"),
        (r"\bwith a package more\b", "needs an additional package"),
        (r"\bmood\b|\bhouse's floors?\b|\bno dead end\b", "say what is meant"),
        (r"\bWhat do I ship\b", "What goes to the device?"),
        (r"\b(is|are) spoil(ed|t) on purpose\b", "is made wrong on purpose"),
        (r"\bfloat parents?\b", "float model"),
        (BRITISH, "American spelling"),
    )
)
#: Where a forbidden word has its ordinary meaning.
ALLOWED = (
    r"pictures\.py", r"Pictures", r"`[^`]*`", r"LITE_\w+", r"--[a-z-]+", r"https?://\S+",
    r"images?/\S+", r"\{[^}]*\}", r"ocr_held_back", r"ocr_recogniser", r"picture \?",
    r"^as given$", r"\"as given\"", r"Quantised",
)  # fmt: skip


def findings(listed: Iterable[Text]) -> list[str]:
    """One line per forbidden wording: where it is, what it says, what to write."""
    spared = re.compile("|".join(ALLOWED))
    found = []
    for text in listed:
        plain = spared.sub(" ", text.text)
        for pattern, better in FORBIDDEN:
            if hit := pattern.search(plain):
                found.append(f"{text.file}:{text.line}: {hit.group()!r}; write: {better}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="only list forbidden wordings")
    args = parser.parse_args()
    if args.check:
        found = findings(texts())
        print("\n".join(found))
        return int(bool(found))
    file = None
    for text in texts():
        if text.file != file:
            print(f"\n== {text.file}")
        file = text.file
        print(f"{text.line}: {text.text}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
