"""What README and the manual tell people to type is understood: commands by the verbs' own parsers,
Python by the interpreter and the signatures of what it calls. The notebooks run the same for real.
"""

from __future__ import annotations

import ast
import builtins
import importlib.util
import inspect
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import lite_workbench as lw
import pytest

FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
INDENTED = re.compile(r"^    (lite |python |pytest |make ).*$", re.M)
INLINE = re.compile(r"`((?:lite|python -m|make) [^`]+)`")
OPTION = re.compile(r"`(--[a-z][a-z0-9_-]*)[^`]*`")
ADDED = re.compile(r"add_argument\(\s*\"(--[a-z0-9_-]+)\"")
TARGET = re.compile(r"^([a-z-]+):.*##", re.M)
#: Stands for what the reader puts in.
GAP = re.compile(r"…|\bVERB\b|\|")


def pages() -> list[Path]:
    root = Path(__file__).parents[2]
    named = [root / name for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md")]
    return [
        *named,
        *sorted((root / "docs").glob("*.md")),
        *sorted((root / "docs/lessons").glob("*")),
        *sorted((root / ".github").glob("*.md")),
        *sorted((root / ".github/ISSUE_TEMPLATE").glob("*.yml")),
    ]


def page_id(path: Path) -> str:
    return f"{path.parent.name}/{path.name}"


def commands(text: str) -> Iterator[str]:
    """Whole command lines, continued ones joined, without comments."""
    blocks = [body for language, body in FENCE.findall(text) if language in ("", "sh")]
    blocks += [match.group(0).strip() for match in INDENTED.finditer(text)]
    for line in "\n".join(blocks).replace("\\\n", " ").splitlines():
        if command := line.partition("#")[0].strip():
            yield command


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_commands_are_understood(page: Path, root: Path) -> None:
    from lite_workbench.commands import get_command, parser_for

    text = page.read_text()
    whole = [c for c in commands(text) if not GAP.search(c)]
    for command in whole:
        words = shlex.split(re.sub(r"[\[\]]", "", command))
        if words[:1] == ["lite"]:
            parser_for(get_command(words[1])).parse_args(words[2:])
    makes = set(TARGET.findall((root / "Makefile").read_text()))
    for command in [*whole, *INLINE.findall(text)]:
        words = command.split()
        if words[0] == "lite" and not GAP.search(words[1]):
            known = parser_for(get_command(words[1]))._option_string_actions
            options = {w.split("=")[0] for w in words[2:] if re.match(r"--?[a-z]", w)}
            assert options <= set(known), command
        elif words[0] == "make":
            assert words[1] in makes, command
        elif words[:2] == ["python", "-m"]:
            module = importlib.util.find_spec(words[2])
            assert module, command
            if module.submodule_search_locations:
                assert importlib.util.find_spec(f"{words[2]}.__main__"), command


def test_options_that_are_named_exist(root: Path) -> None:
    from lite_workbench.commands import available, get_command, parser_for

    known = {o for v in available() for o in parser_for(get_command(v))._option_string_actions}
    modules = root / "benchmarks", root / "engine/lite_engine/testing"
    for file in (f for folder in modules for f in folder.rglob("*.py")):
        known.update(ADDED.findall(file.read_text()))
    runner = (root / "engine/native/src/runner/lite_run.cc").read_text()
    known.update(re.findall(r'"(--[a-z-]+)"', runner))
    for page in pages():
        assert set(OPTION.findall(page.read_text())) <= known, page.name


def test_verbs_without_json_are_those_that_the_readme_names(root: Path) -> None:
    from lite_workbench.commands import available, get_command, parser_for

    options = {v: parser_for(get_command(v))._option_string_actions for v in available()}
    without = sorted(v for v, known in options.items() if "--json" not in known)
    (named,) = re.findall("[Aa]ll but (.*) also take `--json -`", (root / "README.md").read_text())
    assert sorted(re.findall("`([a-z]+)`", named)) == without


def test_counts_of_operators_are_those_of_the_importers(root: Path) -> None:
    import lite_engine.importers.paddle.builder  # noqa: F401  fills its table
    from lite_engine.importers.caffe.call import LAYERS
    from lite_engine.importers.paddle.registry import known_types

    text = (root / "docs" / "formats.md").read_text()
    (operators,) = re.findall(r"more than (\d+) operators \|", text)
    assert 0 <= len(known_types()) - int(operators) < 30
    assert f"{len(LAYERS)} types |" in text


@pytest.mark.parametrize("page", pages(), ids=page_id)
def test_python_is_understood(page: Path) -> None:
    """Imports are there, each name was made before, and calls fit the signatures."""
    pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")
    known: dict[str, Any] = dict(vars(builtins))
    for body in (
        body for language, body in FENCE.findall(page.read_text()) if language == "python"
    ):
        code = re.sub(r"^%load_ext.*$", "", body, flags=re.M)
        for statement in ast.parse(re.sub(r"= %lite .*$", "= None", code, flags=re.M)).body:
            understand(statement, known)


def understand(statement: ast.stmt, known: dict[str, Any]) -> None:
    """Checks a statement and adds the names that it makes; None is a value only known in a run."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        known[statement.name] = None  # a page that defines something has a test that runs it
        return
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        exec(compile(ast.Module([statement], []), "<docs>", "exec"), known)
    for node in ast.walk(statement):
        if isinstance(node, (ast.Name, ast.Attribute)) and isinstance(node.ctx, ast.Load):
            reached(node, known)
        if isinstance(node, ast.Call) and (called := reached(node.func, known)) is not None:
            names = {str(word.arg): None for word in node.keywords}
            inspect.signature(called).bind(*[None] * len(node.args), **names)
    if isinstance(statement, ast.Assign):
        for name in (n.id for n in ast.walk(statement.targets[0]) if isinstance(n, ast.Name)):
            known[name] = digits() if name == "session" else None


@cache
def digits() -> lw.Session:
    """Any session has the methods that the pages call."""
    return lw.open(lw.shipped("digits.onnx"))


def reached(node: ast.expr, known: dict[str, Any]) -> Any:
    """What a dotted name stands for. Raises KeyError, AttributeError."""
    if isinstance(node, ast.Name):
        return known[node.id]
    if isinstance(node, ast.Attribute):
        owner = reached(node.value, known)
        return None if owner is None else getattr(owner, node.attr)
    return None
