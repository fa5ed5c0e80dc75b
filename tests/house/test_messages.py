"""Texts for people go through one catalogue: they are found, translated and filled in."""

from __future__ import annotations

import ast
import gettext
import io
import os
import re
import subprocess
import sys
from collections.abc import Iterator

import lite_messages
import pytest
from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from lite_engine import errors
from lite_workbench.commands import VERBS
from rich.cells import cell_len

from tests.accents import catalogue, english, messages, template


@pytest.fixture(scope="session")
def pseudo(tmp_path_factory):
    return catalogue(tmp_path_factory.mktemp("languages"))


def python(source: str, **variables: str) -> str:
    env = {k: v for k, v in os.environ.items() if k not in ("LANGUAGE", "LC_ALL", "LC_MESSAGES")}
    done = subprocess.run([sys.executable, "-c", source], env={**env, **variables},
                          capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


SAY = """
from lite_engine.errors import UsageError
from lite_engine import settings
try:
    settings.threads(0)
except UsageError as error:
    print(error)
"""


def test_english_needs_no_catalogue():
    for variables in ({"LANG": "C"}, {"LANG": "xx_YY.UTF-8"}, {"LITE_LANGUAGE": "en"}):
        assert python(SAY, **variables) == "threads must be between 1 and 256, got 0"


def test_another_language_is_a_file(pseudo):
    said = python(SAY, LITE_LANGUAGE=str(pseudo))
    assert said == "thréádš múšt bé bétwééñ 1 áñd 256, gót 0"


def test_the_systems_language_is_found_beside_the_package(pseudo, tmp_path):
    """Where LITE_LANGUAGE is not set, LANG decides, with its territory or without it."""
    folder = tmp_path / "de" / "LC_MESSAGES"
    folder.mkdir(parents=True)
    (folder / "lite_workbench.mo").write_bytes(pseudo.read_bytes())
    source = f"""
import lite_messages, pathlib
lite_messages.LANGUAGES = pathlib.Path({str(tmp_path)!r})
for language in ("", "de", "de_AT", "en"):
    print(lite_messages.find_catalogue(language).gettext("no such file"))
"""
    told = python(source, LANG="de_CH.UTF-8").split("\n")
    assert told == ["ñó šúçh fílé"] * 3 + ["no such file"]


def test_a_notebook_follows_jupyterlabs_language(tmp_path):
    """The file as JupyterLab 4 writes it; only where a kernel has a session's name."""
    folder = tmp_path / "lab" / "user-settings" / "@jupyterlab" / "translation-extension"
    folder.mkdir(parents=True)
    file = folder / "plugin.jupyterlab-settings"
    lab = {"JUPYTER_CONFIG_DIR": str(tmp_path), "JPY_SESSION_NAME": "a.ipynb", "LANG": "C"}
    said = "import lite_messages; print(lite_messages.tr('no such file'))"
    for setting, want in (
        ('{\n    // Language\n    // "locale": "en"\n    "locale": "zh_CN"\n}', "没有这个文件"),
        ('{"locale": "en"}', "no such file"),
        ('{"locale": "default"}', "no such file"),
        ('{"locale": "xx"}', "no such file"),
    ):
        file.write_text(setting)
        assert python(said, **lab, PYTHONIOENCODING="utf-8") == want
    file.write_text('{"locale": "zh_CN"}')
    assert python(said, **{**lab, "LITE_LANGUAGE": "en"}) == "no such file"
    assert python(said, JUPYTER_CONFIG_DIR=str(tmp_path), LANG="C") == "no such file"


def test_what_a_model_carries_is_said_in_chinese():
    """No word of the line is left in English but what the file itself says."""
    source = """
from lite_workbench.commands.info import _carried
print(_carried({"colour": "grey", "layout": "nchw", "mean": [0.0], "size": [32, 32], "std": [1]}))
from lite_engine.errors import with_command
print(with_command("", "lite doctor"))
"""
    told = python(source, LITE_LANGUAGE="zh", PYTHONIOENCODING="utf-8")
    assert set(re.findall("[A-Za-z]+", told)) == {"nchw", "lite", "doctor"}


def shipped() -> list[str]:
    return sorted(p.parts[-3] for p in messages().LANGUAGES.glob("*/LC_MESSAGES/*.po"))


@pytest.mark.parametrize("language", shipped())
def test_a_shipped_language_lacks_no_text(language):
    """`make messages LOCALE=…` brings a catalogue up to date and marks what to translate."""
    path = messages().LANGUAGES / language / "LC_MESSAGES" / "lite_workbench.po"
    with path.open("rb") as file:
        known = read_po(file, language, messages().DOMAIN)
    missing = []
    for message in template():
        done = known.get(message.id) if message.id else message
        texts = done.string if done and isinstance(done.string, tuple) else [done and done.string]
        if message.id and (not all(texts) or done.fuzzy):
            missing.append(message.id)
    assert not missing, f"{len(missing)} texts to translate, like {missing[0]!r}"
    assert messages().faults(known) == []
    compiled = io.BytesIO()
    write_mo(compiled, known)
    written = gettext.GNUTranslations(io.BytesIO(compiled.getvalue()))._catalog
    shipped = dict(lite_messages.find_catalogue(str(path.with_suffix(".mo")))._catalog)
    shipped[""] = written[""]  # the header names the version of Babel
    assert written == shipped, "run `make messages` again"


def test_chinese_is_among_them_and_keeps_codes_as_they_are():
    """Commands, options, paths and fields are the same in every language."""
    assert "zh" in shipped()
    chinese = lite_messages.find_catalogue("zh_CN")
    code = re.compile(r"(?<![\w-])--[a-z][\w-]+|`[^`]+`|https?://\S+|LITE_[A-Z_]+")
    for message in template():
        english = message.id[0] if isinstance(message.id, tuple) else message.id
        if english and isinstance(message.id, str):
            assert sorted(code.findall(english)) == sorted(code.findall(chinese.gettext(english)))


def test_a_language_with_one_form_has_a_catalogue(tmp_path, monkeypatch):
    """Chinese has no plural, and gettext knows it as zh_CN, Babel as zh_Hans_CN."""
    monkeypatch.setattr(messages(), "LANGUAGES", tmp_path)
    assert messages().update("zh_CN") == []
    assert (tmp_path / "zh_CN" / "LC_MESSAGES" / "lite_workbench.mo").is_file()


def test_tables_count_the_places_of_wide_characters():
    from lite_workbench.commands._table import table

    first, rule, *rows = table(["算子", "n"], [["Conv", 1], ["卷积层", 10]], right=[1]).split("\n")
    assert [cell_len(x) for x in (first, rule, *rows)] == [10] * 4


def test_a_catalogue_that_is_not_there_or_damaged_is_english_and_named(tmp_path):
    damaged = tmp_path / "x.mo"
    damaged.write_bytes(b"\xde\x12\x04\x95" + b"\xff" * 40)
    source = """
from lite_engine import settings
from lite_engine.errors import UsageError
try:
    settings.get("LITE_LANGUAGE")
except UsageError as error:
    print(error.what)
"""
    for value in ("xx", str(tmp_path / "absent.mo"), str(damaged)):
        assert python(source, LITE_LANGUAGE=value).startswith(f"LITE_LANGUAGE={value!r}: ")


def test_plural_forms_are_the_languages_own(monkeypatch):
    catalog = Catalog("pl", messages().DOMAIN)
    catalog.add(("{n} layer", "{n} layers"), ("{n} warstwa", "{n} warstwy", "{n} warstw"))
    file = io.BytesIO()
    write_mo(file, catalog)
    file.seek(0)
    monkeypatch.setattr(lite_messages, "_texts", lite_messages.gettext.GNUTranslations(file))
    said = [lite_messages.trn("{n} layer", "{n} layers", n) for n in (1, 2, 5, 22)]
    assert said == ["1 warstwa", "2 warstwy", "5 warstw", "22 warstwy"]


def test_fields_are_filled_after_the_translation_and_a_wrong_one_falls_back(monkeypatch):
    class Wrong(lite_messages.gettext.NullTranslations):
        def gettext(self, message: str) -> str:
            return {"cannot open {path}": "öffnet nicht: {pfad}", "in {b} of {a}": "{a}: {b}"}[
                message
            ]

    monkeypatch.setattr(lite_messages, "_texts", Wrong())
    assert lite_messages.tr("in {b} of {a}", a=1, b=2) == "1: 2"
    assert lite_messages.tr("cannot open {path}", path="{x}") == "cannot open {x}"


def test_a_translation_with_other_fields_is_not_compiled():
    catalog = Catalog("de")
    catalog.add("cannot open {path}: {reason}", "{path} geht nicht auf")
    catalog.add("no {thing}", "kein {ding}")
    catalog.add("half {x}", "halb {x")
    catalog.add("right {x!r:.3f}", "recht {x!r:.3f}")
    told = "\n".join(messages().faults(catalog))
    assert "'reason' is missing" in told and "'ding' is not in the text" in told
    assert "not a valid format" in told and "right" not in told


def test_texts_of_every_package_are_collected():
    files = {file.split("/")[0] for message in template() for file, _ in message.locations}
    assert files == {"engine", "widgets", "workbench"}
    everywhere = {file for message in template() for file, _ in message.locations}
    assert "widgets/lite_widgets/_shared/parts.js" in everywhere  # Babel leaves such folders out
    assert "threads must be between 1 and {max_threads}, got {asked!r}" in template()


def test_javascript_is_read_through_its_templates():
    source = b"""
        html`<b title=${tr("Close")}>${open ? html`${tr("{n} of {all}", { n, all })}` : ""}</b>`;
        trn("{n} layer", "{n} layers", n); other.tr("no"); tr(
          "two \\"quoted\\" words",
        );"""
    found = [m[2] for m in messages().javascript(io.BytesIO(source), None, None, None)]
    assert found == ["Close", "{n} of {all}", ("{n} layer", "{n} layers"), 'two "quoted" words']


def test_python_is_read_through_its_f_strings():
    source = b"""f"<{tr('Close')}>{', '.join(x) or tr('no {x}', x=tr('in it'))}"
trn("{n} layer", "{n} " "layers", n); other.tr("no"); tr(text)"""
    found = [m[2] for m in messages().python(io.BytesIO(source), None, None, None)]
    assert sorted(found, key=str) == [("{n} layer", "{n} layers"), "Close", "in it", "no {x}"]


HELP = """
from lite_workbench import cli, commands
print(cli.usage())
for verb in commands.VERBS:
    print(commands.parser_for(commands.get_command(verb)).format_help())
"""


def test_another_language_shows_no_english_in_the_help(pseudo):
    told = python(HELP, LITE_LANGUAGE=str(pseudo), COLUMNS="400")
    assert "óptíóñš" in told and "íñféréñçé" in told
    assert english(told, {"lite", "arm", "opencl", *VERBS}) == []


def test_another_language_says_an_error(pseudo, tmp_path):
    source = f"from lite_workbench.cli import main; main(['info', {str(tmp_path / 'a.onnx')!r}])"
    env = {**os.environ, "LITE_LANGUAGE": str(pseudo)}
    command = [sys.executable, "-c", source]
    done = subprocess.run(command, capture_output=True, text=True, env=env, check=False)
    assert "ñó šúçh fílé" in done.stderr


ERRORS = [n for n, kind in vars(errors).items() if isinstance(kind, type) and n.endswith("Error")]
#: Calls whose words a person reads: the positional arguments and keywords that hold them.
SPOKEN = {
    **dict.fromkeys(ERRORS, (1, ("what", "fix"))),
    "add_argument": (0, ("help",)),
    **dict.fromkeys(("skip", "fail", "unsupported", "refuse"), (1, ())),
}


def test_no_error_help_or_refusal_bypasses_the_catalogue(root):
    found = []
    for package in ("lite_engine", "lite_widgets", "lite_workbench"):
        for path in sorted(root.glob(f"*/{package}/**/*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call):
                    found += [f"{path.name}:{x.lineno}" for x in unmarked(node)]
    assert found == []


def unmarked(call: ast.Call) -> Iterator[ast.expr]:
    """The literals with words that a call shows."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    first, keywords = SPOKEN.get(name, (0, ()))
    shown = [*call.args[:first], *(k.value for k in call.keywords if k.arg in keywords)]
    for value in shown:
        for text in (value.body, value.orelse) if isinstance(value, ast.IfExp) else (value,):
            parts = text.values if isinstance(text, ast.JoinedStr) else [text]
            words = [p.value for p in parts if isinstance(p, ast.Constant)]
            sentence = r"\b[a-z]{2,}" + ("" if isinstance(text, ast.JoinedStr) else " ")
            if any(re.search(sentence, w) for w in words if isinstance(w, str)):
                yield text


def test_a_literal_that_bypasses_the_catalogue_is_seen():
    def seen(source: str) -> int:
        return len(list(unmarked(ast.parse(source).body[0].value)))

    assert seen('UsageError("no such thing")') == seen('UsageError(f"no {x}", where=y)') == 1
    assert seen('ShapeError(tr("a b"), fix="give it" if a else tr("take it"))') == 1
    assert (
        seen('UsageError(tr("no {x}", x=x))') == seen("UsageError(text)") == seen('f("a b")') == 0
    )


def test_fields_are_those_of_the_text(root):
    """Every field of a text is given, and nothing else; texts are literals."""
    found = []
    for package in ("lite_engine", "lite_widgets", "lite_workbench"):
        for path in sorted(root.glob(f"*/{package}/**/*.py")):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("tr", "trn"):
                    plural = node.func.id == "trn"
                    texts = [getattr(t, "value", None) for t in node.args[: 1 + plural]]
                    given = {k.arg for k in node.keywords} | ({"n"} if plural else set())
                    if None in texts or messages().fields(texts) - {"n"} != given - {"n"}:
                        found.append(f"{path.name}:{node.lineno}")
    assert found == []
