"""What README and the documentation tell people to type runs as it stands there, page by page from
top to bottom. `pages.py` says what cannot run here, and `test_snippets.py` parses that too."""

from __future__ import annotations

import ast
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lite_engine._native import runner_path

from tests.house import pages
from tests.house.pages import (
    ELSEWHERE,
    LESSONS,
    LONG,
    MODELS,
    NOT_RUN,
    NOT_RUN_PYTHON,
    ROOT,
    Step,
)

pytestmark = [pytest.mark.cpu, pytest.mark.opencl]
NAMES = [str(p.relative_to(ROOT)) for p in pages.pages()]


def typed(name: str) -> list[tuple[str, str]]:
    """What a page has people type, as far as it runs here; a translation's comments differ."""
    return [
        (step.language, ast.dump(ast.parse(step.text)) if step.language == "python" else step.text)
        for step, why in pages.steps(ROOT / name)
        if not why
    ]


def repeats(name: str) -> bool:
    """Whether a page before it types all that this one types, in this order: a translation."""
    own = typed(name)
    before = [n for n in NAMES[: NAMES.index(name)] if n not in ELSEWHERE and n not in LONG]
    return any(contains(typed(n), own) for n in before)


def contains(whole: list[tuple[str, str]], part: list[tuple[str, str]]) -> bool:
    rest = iter(whole)
    return all(one in rest for one in part)


RUN = [n for n in NAMES if n not in ELSEWHERE and typed(n) and not repeats(n)]
#: What a page's own models are, where it names layers of the models that come with the project.
OWN = {
    "docs/workbench.md": {"model.onnx": "ocr.onnx", "samples.npz": "ocr_held_back.npz"},
}
#: What a page takes for granted beyond that.
FIRST = {
    "docs/evaluate.md": "lite convert model.onnx -o model.lite --targets x86,opencl "
    "--precision x86=int8 --calibration calibration",
}
#: Runs the steps of one page in one interpreter: what a block defines, the next one uses.
DRIVER = """
import contextlib, io, json, subprocess, sys, traceback
import lite_workbench.cli

space = {"__name__": "page"}
for step in json.load(open(sys.argv[1])):
    said = io.StringIO()
    try:
        if step["language"] == "python":
            with contextlib.redirect_stdout(said):
                exec(compile(step["text"], "the page", "exec"), space)
            code = 0
        elif step["words"][0] == "lite":
            with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
                code = lite_workbench.cli.main(step["words"][1:])
            if code == 1 and "error: " not in said.getvalue():
                code = step["no"]  # an answer: they differ
        else:
            done = subprocess.run(step["words"], capture_output=True, text=True, timeout=120)
            code = done.returncode
            said.write(done.stderr)
    except BaseException:
        code = -1
        traceback.print_exc(file=said)
    if code:
        where = f"line {step['line']}: {step['text']}"
        sys.exit(f"{where}\\nexit code {code}\\n{said.getvalue()[-3000:]}")
"""
#: Commands that answer a question; their exit code 1 is "no" where nothing is an error.
ASKS = ("diff", "compare")


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workplace")
    pages.workplace(folder)
    return folder


def turn(name: str) -> pytest.MarkDecorator:
    """When a page runs: the first ones that people see in `make test`."""
    if name in LONG or name.startswith(LESSONS):
        return pytest.mark.hours
    return pytest.mark.slow if name in ("README.md", "docs/index.md") else pytest.mark.sweep


@pytest.mark.parametrize("name", [pytest.param(n, marks=turn(n)) for n in RUN])
def test_a_page_runs(name: str, ready: Path, tmp_path: Path) -> None:
    place = tmp_path / "place"
    shutil.copytree(ready, place)
    for here, shipped in OWN.get(name, {}).items():
        shutil.copy(MODELS / shipped, place / here)
    todo = []
    first = [(Step("command", 0, FIRST[name]), "")] if name in FIRST else []
    for step, why in [*first, *pages.steps(ROOT / name)]:
        if why:
            continue
        if step.language == "python":
            todo.append(vars(step))
            continue
        for command in step.text.split(" && "):
            words = shlex.split(re.sub(r"[\[\]]", "", command))
            if words[0] != "lite":
                words[0] = str(runner_path(opencl=words[0] == "lite_run_opencl"))
            todo.append({**vars(step), "words": words, "no": 0 if words[1] in ASKS else 1})
    plan = tmp_path / "steps.json"
    plan.write_text(json.dumps(todo))
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path / "cache")}
    done = subprocess.run([sys.executable, "-c", DRIVER, str(plan)], cwd=place, env=env,
                          capture_output=True, text=True, timeout=900, check=False)  # fmt: skip
    assert done.returncode == 0, f"{name}, {done.stderr[-4000:]}"


def test_what_does_not_run_is_still_in_the_pages() -> None:
    texts = "\n".join(p.read_text("utf-8") for p in pages.pages())
    plain = " ".join(texts.replace("\\\n", " ").split())
    assert [n for n in (*NOT_RUN, *NOT_RUN_PYTHON) if n.strip() not in plain] == []
    assert set(ELSEWHERE) | LONG <= set(NAMES)
    assert all((ROOT / test).is_file() for test in ELSEWHERE.values())


def test_public_names_only() -> None:
    """Python in the pages imports nothing that begins with an underscore."""
    found = [
        f"{page.name}:{line}"
        for page in pages.pages()
        for language, line, body in pages.blocks(page)
        if language in ("python", "py") and re.search(r"(import|from) .*(\b|\.)_\w", body)
    ]
    assert found == []


def test_json_in_the_pages_is_json() -> None:
    from jsonschema import Draft202012Validator

    seen = 0
    for page in pages.pages():
        for language, _, body in pages.blocks(page):
            if language == "json":
                document = json.loads(body)
                if "$schema" in document or "properties" in document:
                    Draft202012Validator.check_schema(document)
                seen += 1
    assert seen >= 3


def test_yaml_and_toml_in_the_pages_are_read() -> None:
    import tomllib

    yaml = pytest.importorskip("yaml")
    for page in pages.pages():
        for language, _, body in pages.blocks(page):
            if language == "yaml":
                assert yaml.safe_load(body)["stages"]
            elif language == "toml":
                assert tomllib.loads(body)


def test_every_language_is_known() -> None:
    """A block in a language that nothing checks says so here."""
    known = {"", "sh", "python", "py", "json", "yaml", "toml", "c", "swift", "text"}
    found = {language for page in pages.pages() for language, _, _ in pages.blocks(page)}
    assert found <= known and importlib.util.find_spec("tests.house.pages")
