"""Every text that a person reads, in that person's language.

    raise UsageError(tr("cannot open {path}: {reason}", path=path, reason=reason))
    title = trn("{n} layer", "{n} layers", len(layers))

The English text in the code is the key; a language is one compiled gettext catalogue. `{…}` are the
fields of `str.format`, filled after the translation; a brace that is no field is doubled. Both
functions are found by name when the texts are collected (`make messages`), so they are called with
literals only.

The language is that of LITE_LANGUAGE (`de`, `pt_BR`, or the path of a compiled catalogue, `x.mo`),
else, in a notebook, the one chosen in JupyterLab, else the one that the system's variables name
(LANGUAGE, LC_ALL, LC_MESSAGES, LANG), else English.
It is read once, when this package is imported, so that texts at module level follow it too.
JSON keys, names of things and log messages stay English. Neither function is called `_`, which is
gettext's usual name, because the rules in `ops/` are.
"""

from __future__ import annotations

import gettext
import os
import re
from pathlib import Path

DOMAIN = "lite_workbench"
LANGUAGES = Path(__file__).with_name("languages")


def find_catalogue(language: str) -> gettext.NullTranslations:
    """The catalogue of a language or of a `.mo` file; "" asks the system's variables.

    Raises OSError or ValueError where there is none, or none that can be read.
    """
    if language.endswith(".mo"):
        with Path(language).open("rb") as file:
            try:
                return gettext.GNUTranslations(file)
            except (IndexError, UnicodeDecodeError) as error:
                raise ValueError(f"{language} is damaged: {error}") from None
    if language in ("en", "C"):
        return gettext.NullTranslations()
    return gettext.translation(DOMAIN, LANGUAGES, [language] if language else None)


def jupyterlab_language() -> str | None:
    """What JupyterLab's *Language* setting names where this process is a notebook's kernel, None
    where it is not or the setting was never changed. JupyterLab keeps it as JSON with comments."""
    if "JPY_SESSION_NAME" not in os.environ:
        return None
    config = os.environ.get("JUPYTER_CONFIG_DIR") or Path.home() / ".jupyter"
    folder = os.environ.get("JUPYTERLAB_SETTINGS_DIR") or Path(config, "lab", "user-settings")
    file = Path(folder, "@jupyterlab", "translation-extension", "plugin.jupyterlab-settings")
    try:
        text = re.sub(r"(?m)^\s*//.*$", "", file.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    found = re.search(r'"locale"\s*:\s*"(\w{2,20})"', text)
    return found[1] if found and found[1] != "default" else None


def _catalogue() -> gettext.NullTranslations:
    asked = os.environ.get("LITE_LANGUAGE")
    for language in [asked] if asked else [jupyterlab_language(), ""]:
        try:
            if language is not None:
                return find_catalogue(language)
        except (OSError, ValueError):  # `lite doctor` and the settings say so
            continue
    return gettext.NullTranslations()


_texts = _catalogue()


def language() -> str:
    """The language of the texts, as a page's `lang`."""
    return _texts.info().get("language", "en").replace("_", "-")


def tr(message: str, /, **fields: object) -> str:
    """The text in the person's language, with its fields filled in."""
    return _filled(_texts.gettext(message), message, fields)


def trn(one: str, many: str, n: int, /, **fields: object) -> str:
    """The form of the text for `n` things; `{n}` is the number."""
    english = one if n == 1 else many
    return _filled(_texts.ngettext(one, many, n), english, {"n": n, **fields})


def _filled(text: str, english: str, fields: dict[str, object]) -> str:
    try:
        return text.format(**fields)
    except (LookupError, ValueError, AttributeError, TypeError):
        if text == english:
            raise
        return english.format(**fields)  # the translation names a field that there is not


def translations(source: str) -> dict[str, object]:
    """The translations that a program in JavaScript needs for its own `tr` and `trn`: of each text
    among its literals, a list of forms where it has a plural; "" holds the index of the form for
    the numbers 0 to 199 (from 200 on, the one of 100 + n modulo 100). Empty in English."""
    words: dict[str, object] = {}
    catalogue = getattr(_texts, "_catalog", {})
    for key, text in catalogue.items():
        english, form = key if isinstance(key, tuple) else (key, None)
        if not english or english not in source:
            continue
        if form is None:
            words[english] = text
        else:
            forms = words.setdefault(english, [])
            assert isinstance(forms, list)
            forms.append(text)
    if words:
        words[""] = [_texts.plural(n) for n in range(200)]  # type: ignore[attr-defined]
    return words
