"""Every command that a hint, an error or a widget names, in Python or JavaScript, is one that its
verb understands, and every option that a text names exists: read by the verbs' own parsers."""

from __future__ import annotations

import argparse
import ast
import io
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
from lite_workbench.commands import available, get_command, parser_for

from scripts.messages import javascript

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine/lite_engine", "widgets/lite_widgets", "workbench/lite_workbench")
VERBS = ROOT / "workbench/lite_workbench/commands"
#: A command in a sentence: between backticks, or after a colon to the end of the text.
QUOTED = re.compile(r"`(lite [^`]+)`")
AFTER_COLON = re.compile(r": (lite [a-z]+(?: \S+)*)$")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9_-]*")
#: What stands for a field of a message, by the field's name; other fields become a word.
FIELDS = {"backend": "x86", "target": "x86", "precision": "fp32", "n": "2", "batch": "2"}
#: Options of programs that texts name besides ours.
FOREIGN = {"--resources": "dask worker", "--upgrade": "pip", "--help": "qemu, and all of our verbs"}


@cache
def texts() -> tuple[tuple[str, str, bool], ...]:
    return tuple(_read())


def _read() -> Iterator[tuple[str, str, bool]]:
    """(place, text, whether it is a command by itself) of every text in Python that is not a
    docstring; fields are filled in."""
    for path in sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if not re.search(r"lite [a-z]|--[a-z]", source):
            continue
        tree = ast.parse(source)
        nodes = list(ast.walk(tree))
        parts = {id(p) for node in nodes if isinstance(node, ast.JoinedStr) for p in node.values}
        bare = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
        own = {id(value) for node in nodes for value in _commands(node)}
        for node in nodes:
            if id(node) in parts | bare or not (text := _text(node)):
                continue
            yield f"{path.relative_to(ROOT)}:{node.lineno}", text, id(node) in own
    for path in sorted((ROOT / "widgets/lite_widgets").glob("*/*.js")):
        if path.parent.name != "static":
            yield from _in_javascript(path.read_text(encoding="utf-8"), path.relative_to(ROOT))


def _in_javascript(source: str, place: object) -> Iterator[tuple[str, str, bool]]:
    """The texts that `tr` and `trn` translate, and commands to paste: `fix: "lite …"`."""
    for line, _, said, _ in javascript(io.BytesIO(source.encode()), None, None, None):
        for text in (said,) if isinstance(said, str) else said:
            yield f"{place}:{line}", _filled(text), False
    for found in re.finditer(r"""\b(?:fix|command) ?[:=] ?["'`](lite [^"'`]*)["'`]""", source):
        line = source.count("\n", 0, found.start()) + 1
        yield f"{place}:{line}", _filled(found[1].replace("${", "{")), True


def _filled(text: str) -> str:
    return re.sub(r"\{(\w+)[^}]*\}", lambda m: FIELDS.get(m[1], "x"), text)


def _commands(node: ast.AST) -> Iterator[ast.expr]:
    """The expressions that are a command for the user to paste."""
    if isinstance(node, ast.keyword) and node.arg == "command":
        yield from (n for n in ast.walk(node.value) if isinstance(n, ast.Constant | ast.JoinedStr))
    if isinstance(node, ast.Assign) and any(
        "command" in (getattr(t, "attr", ""), getattr(t, "id", "")) for t in node.targets
    ):
        yield node.value


def _text(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return _filled(node.value)
    if isinstance(node, ast.JoinedStr):
        return "".join(
            part.value if isinstance(part, ast.Constant) else _field(part) for part in node.values
        )
    return ""


def _field(part: ast.expr) -> str:
    value = part.value if isinstance(part, ast.FormattedValue) else part
    return FIELDS.get(getattr(value, "id", ""), "x")


@cache
def parser(verb: str) -> argparse.ArgumentParser:
    return parser_for(get_command(verb))


def options_of(verb: str) -> set[str]:
    return set(parser(verb)._option_string_actions)


@cache
def runner_options() -> set[str]:
    source = ROOT / "engine/native/src/runner/lite_run.cc"
    return set(re.findall(r'"(--[a-z-]+)"', source.read_text(encoding="utf-8")))


def check_named(command: str) -> str:
    """'' or what is wrong with a command that a sentence names; it may lack its arguments."""
    words = shlex.split(command.replace("…", ""))
    if len(words) < 2 or not re.fullmatch("[a-z]+", words[1]):
        return ""  # the program itself, or `lite VERB`
    if words[1] not in available():
        return f"{words[1]} is no verb"
    unknown = {w.split("=")[0] for w in words[2:] if w.startswith("--")} - options_of(words[1])
    return f"lite {words[1]} has no {', '.join(sorted(unknown))}" if unknown else ""


def check_pasted(command: str) -> str:
    """'' or what the verb's parser says to a command that can be pasted as it is."""
    for part in command.split(" && "):
        words = shlex.split(part)
        if words[:1] != ["lite"]:
            continue
        if wrong := check_named(part):
            return wrong
        try:
            parser(words[1]).parse_args(words[2:])
        except Exception as error:  # noqa: BLE001  the parser's own sentence
            return str(error)
    return ""


def test_every_command_in_a_text_is_understood() -> None:
    found, wrong = 0, []
    for place, text, pasted in texts():
        named = [*QUOTED.findall(text), *AFTER_COLON.findall(text)]
        found += len(named)
        wrong += [f"{place}: {said}" for command in named if (said := check_named(command))]
        if pasted and text.startswith("lite ") and text != "lite get":
            found += 1
            wrong += [f"{place}: {said}"] if (said := check_pasted(text)) else []
    assert found > 50 and not wrong, "\n".join(wrong)


def test_commands_of_javascript_are_read() -> None:
    """In a translated text, in one of several forms, and by themselves; a class is none."""
    source = """tr("run `lite profile {model} --remeasure-roof`");
trn("{n} layer: lite compare m.onnx", "{n} layers: lite compare m.onnx --backend x86", n);
notice({ fix: "lite profile m.onnx --runs two" }); notice({ fix: `lite profil ${name}` });
root.className = `lite-${name}`;"""
    texts = list(_in_javascript(source, "x.js"))
    assert [place for place, *_ in texts] == ["x.js:1", "x.js:2", "x.js:2", "x.js:3", "x.js:3"]
    said = [text for _, text, _ in texts]
    assert "no --remeasure-roof" in check_named(QUOTED.findall(said[0])[0])
    assert not check_named(AFTER_COLON.findall(said[1])[0])
    assert "no --backend" in check_named(AFTER_COLON.findall(said[2])[0])
    assert "two" in check_pasted(said[3]) and "profil is no verb" in check_pasted(said[4])


def test_every_option_in_a_text_exists() -> None:
    from lite_engine.compat import opt

    every = {option for verb in available() for option in options_of(verb)} | runner_options()
    old = set(OPTION.findall(Path(opt.__file__).read_text(encoding="utf-8")))
    wrong = []
    for place, text, _ in texts():
        if " " not in text:  # a flag for another program, not a sentence
            continue
        known = every | set(FOREIGN) | (old if "compat/" in place or "/opt.py" in place else set())
        wrong += [f"{place}: {option}" for option in set(OPTION.findall(text)) - known]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("verb", available())
def test_a_verb_names_its_own_options(verb: str) -> None:
    """In the texts of lite VERB an option is one that it has, unless another command is named."""
    wrong = []
    for place, text, _ in texts():
        if not place.startswith(f"{VERBS.relative_to(ROOT)}/{verb}.py"):
            continue
        if re.search(r"\blite(_run)? [a-z-]|of the other verbs", text):
            continue
        wrong += [
            f"{place}: {option}"
            for option in set(OPTION.findall(text)) - options_of(verb) - {"--help"}
            if " " in text and verb != "opt"
        ]
    assert not wrong, "\n".join(wrong)
