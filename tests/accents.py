"""A language for tests: English with accents, compiled from every text that the code marks. What
shows no accent did not go through the catalogue."""

from __future__ import annotations

import importlib.util
import re
import string
from functools import cache
from pathlib import Path
from types import ModuleType

from babel.messages.catalog import Catalog

ROOT = Path(__file__).parents[1]
_ACCENTS = str.maketrans("aeiouyAEIOUYcnsz", "áéíóúýÁÉÍÓÚÝçñšž")
#: What stays as it is: options, choices, files, names in capitals.
_CODE = re.compile(r"--?[\w-]+|\{[^}]*\}|\S*[./:=\[\]{}|_…]\S*|\b[A-Z]\w*")


@cache
def messages() -> ModuleType:
    """scripts/messages.py"""
    spec = importlib.util.spec_from_file_location("messages", ROOT / "scripts" / "messages.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def template() -> Catalog:
    """Every text that the code marks."""
    return messages().template()


def accented(text: str) -> str:
    """The text with accents on its letters and none on its fields."""
    out = []
    for literal, name, spec, conversion in string.Formatter().parse(text):
        out.append(literal.replace("{", "{{").replace("}", "}}").translate(_ACCENTS))
        if name is not None:
            out.append("{" + name + (f"!{conversion}" if conversion else ""))
            out.append((f":{spec}" if spec else "") + "}")
    return "".join(out)


def catalogue(folder: Path) -> Path:
    """The compiled language in this folder."""
    made = Catalog("de", messages().DOMAIN)
    for message in template():
        if message.id:
            texts = message.id if isinstance(message.id, tuple) else (message.id,)
            done = tuple(map(accented, texts))
            made.add(message.id, done if isinstance(message.id, tuple) else done[0])
    assert messages().faults(made) == []
    path = folder / "accented.mo"
    messages().compiled(made, path)
    return path


def english(text: str, known: set[str]) -> list[str]:
    """The words of a text that have no accent on any vowel."""
    words = re.findall(r"[^\W\d]+", _CODE.sub(" ", text))
    return [w for w in words if re.search("[aeiou]", w) and len(w) > 2 and w not in known]
