"""Collects the texts that `tr` and `trn` translate, for translators.

    python scripts/messages.py        # build/lite_workbench.pot: every text
    python scripts/messages.py de     # and German: its catalogue brought up to date and compiled

A language is two files under `engine/lite_messages/languages/de/LC_MESSAGES`: `lite_workbench.po`,
which a person translates with any editor for gettext catalogues, and `lite_workbench.mo`, which the
program reads. Both are committed; the template is not, because it follows from the code and would
change with every line.
"""

from __future__ import annotations

import argparse
import ast
import re
import string
import sys
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import BinaryIO

from babel import Locale, UnknownLocaleError
from babel.messages.catalog import Catalog, Message
from babel.messages.extract import extract_from_dir
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("engine/lite_messages", "engine/lite_engine", "widgets/lite_widgets",
           "workbench/lite_workbench")  # fmt: skip
LANGUAGES = ROOT / "engine/lite_messages/languages"
DOMAIN = "lite_workbench"
TEMPLATE = ROOT / "build" / f"{DOMAIN}.pot"
KEYWORDS: dict[str, tuple[int, ...] | None] = {"tr": None, "trn": (1, 2)}

_LITERAL = r'\s*"((?:[^"\\\n]|\\.)*)"\s*'
_CALL = re.compile(rf"(?<![\w.$])(trn?)\({_LITERAL}(?:,{_LITERAL})?(?=[,)])")


def javascript(file: BinaryIO, keywords: object, comments: object, options: object) -> Iterator[
    tuple[int, str, str | tuple[str, ...], list[str]]
]:  # fmt: skip
    """The calls in a JavaScript file, for Babel, whose own reader loses its way in templates that
    hold templates."""
    source = file.read().decode("utf-8")
    for found in _CALL.finditer(source):
        texts = tuple(re.sub(r"\\(.)", r"\1", t) for t in found.groups()[1:] if t is not None)
        line = source.count("\n", 0, found.start()) + 1
        yield line, found[1], texts if found[1] == "trn" else texts[0], []


def python(file: BinaryIO, keywords: object, comments: object, options: object) -> Iterator[
    tuple[int, str, str | tuple[str, ...], list[str]]
]:  # fmt: skip
    """The calls in a Python file, also inside f-strings, which Babel's own reader takes whole."""
    for node in ast.walk(ast.parse(file.read())):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            name = node.func.id
            texts = [a.value for a in node.args if isinstance(a, ast.Constant)]
            found = tuple(t for t in texts if isinstance(t, str))
            if name == "tr" and found:
                yield node.lineno, name, found[0], []
            elif name == "trn" and len(found) > 1:
                yield node.lineno, name, found[:2], []


def template() -> Catalog:
    """Every text of the packages, with the lines it stands in."""
    catalog = Catalog(domain=DOMAIN, project="Lite Workbench", charset="utf-8")
    methods = [("**/static/**", "ignore"), ("**.py", python), ("**.js", javascript)]
    for folder in FOLDERS:
        found = extract_from_dir(
            ROOT / folder, methods, keywords=KEYWORDS,
            directory_filter=lambda _: True,  # by default Babel leaves out folders such as _shared
        )  # fmt: skip
        for file, line, message, comments, _ in found:
            catalog.add(
                message, None, [(f"{folder}/{file}", line)],
                flags={"python-brace-format"} if fields(message) else (), auto_comments=comments,
            )  # fmt: skip
    return catalog


def fields(message: str | Iterable[str]) -> set[str]:
    """The names of the fields of a text, or of its plural forms."""
    texts = [message] if isinstance(message, str) else message
    parts = (part for text in texts for part in string.Formatter().parse(text))
    return {re.split(r"[.\[]", name)[0] for _, name, _, _ in parts if name is not None}


def faults(catalog: Catalog) -> list[str]:
    """One line for each translation whose fields are not those of the text."""
    return [
        f"{message.id!r}: {fault}"
        for message in catalog
        if message.id and (fault := _fault(message))
    ]


def _fault(message: Message) -> str:
    done = [message.string] if isinstance(message.string, str) else list(message.string or ())
    known = fields(message.id)
    for text in filter(None, done):
        try:
            extra = fields(text) - known
        except ValueError as error:
            return f"{text!r} is not a valid format: {error}"
        if extra:
            return f"the field {sorted(extra)[0]!r} is not in the text"
        if isinstance(message.string, str) and fields(text) != known:
            return f"the field {sorted(known - fields(text))[0]!r} is missing"
    return ""


def compiled(catalog: Catalog, path: Path) -> None:
    """Writes the form that the program reads."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_mo(file, catalog)


def _new(locale: Locale) -> Catalog:
    """A catalogue whose header has no placeholders for a translator to fill in."""
    team = "the contributors of Lite Workbench"
    return Catalog(
        locale,
        DOMAIN,
        header_comment=f"# Lite Workbench: its texts in {locale.english_name}.",
        project="Lite Workbench",
        version="1",
        msgid_bugs_address="the issues of Lite Workbench",
        revision_date=datetime.now(timezone.utc),
        last_translator=team,
        language_team=team,
        fuzzy=False,
    )


def update(language: str) -> list[str]:
    """Brings a language's two files up to date; returns its faults, with which it is not compiled.
    Raises UnknownLocaleError and ValueError for a language that does not exist."""
    locale = Locale.parse(language)
    # gettext looks for zh_CN, then zh, and knows nothing of the script in Babel's zh_Hans_CN.
    folder = "_".join(filter(None, [locale.language, locale.territory]))
    path = LANGUAGES / folder / "LC_MESSAGES" / f"{DOMAIN}.po"
    catalog = _new(locale)
    if path.exists():
        with path.open("rb") as file:
            catalog = read_po(file, locale, DOMAIN)
    catalog.update(template(), no_fuzzy_matching=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        write_po(file, catalog, omit_header=False, sort_output=True)
    found = faults(catalog)
    if not found:
        compiled(catalog, path.with_suffix(".mo"))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("language", nargs="?", help="like de or pt_BR")
    args = parser.parse_args()
    TEMPLATE.parent.mkdir(exist_ok=True)
    with TEMPLATE.open("wb") as file:
        write_po(file, template(), sort_by_file=True)
    print(TEMPLATE.relative_to(ROOT))
    if not args.language:
        return 0
    try:
        found = update(args.language)
    except (UnknownLocaleError, ValueError) as error:
        print(f"error: {args.language}: {error}", file=sys.stderr)
        return 2
    print("\n".join(found), file=sys.stderr)
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main())
