"""The documentation says what the code says: every operator, setting and verb has its line."""

from __future__ import annotations

import importlib.util
import re

import pytest

PICTURE = re.compile(r"!\[[^\]]*\]\(([^)]+)\)")


@pytest.fixture(scope="module")
def pages(root) -> dict[str, str]:
    spec = importlib.util.spec_from_file_location("docs", root / "scripts" / "docs.py")
    docs = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(docs)
    return {name: page() for name, page in docs.PAGES.items()}


def test_every_operator_and_setting_is_listed(pages):
    from lite_engine.ops import all_ops
    from lite_engine.settings import SETTINGS

    assert all(f"| `{op.name}` |" in pages["operators.md"] for op in all_ops())
    assert all(f"| `{name}` |" in pages["settings.md"] for name in SETTINGS)


def test_every_verb_has_its_help(pages):
    from lite_workbench.commands import available

    assert all(f"## lite {verb}\n" in pages["commands.md"] for verb in available())


def test_every_pass_has_a_sentence(pages):
    rows = re.findall(r"^\| (\S+) \| (.*) \|$", pages["passes.md"], re.M)[2:]
    assert rows and all(sentence for _, sentence in rows)


def test_every_page_is_in_the_menu(root, pages):
    menu = set(re.findall(r": (\S+\.md)$", (root / "mkdocs.yml").read_text(), re.M))
    docs = root / "docs"
    written = {str(p.relative_to(docs)) for p in docs.rglob("*.md") if "reference" not in p.parts}
    assert written | {f"reference/{name}" for name in pages} == menu


def test_there_is_a_guide_for_each_extension_point(pages):
    for thing in ("an operator", "a kernel", "a pass", "a backend", "a widget", "an importer"):
        assert f"## Add {thing}\n" in pages["extending.md"]


def test_every_step_and_key_of_the_workbench_is_described(root):
    pytest.importorskip("ipywidgets", reason="pip install 'lite-workbench[lab]'")
    from lite_workbench.steps import STEPS, step_class

    text = (root / "docs" / "workbench.md").read_text()
    for name in STEPS:
        assert f"| {name} | {step_class(name).title} |" in text


def test_pictures_are_there_and_small(root):
    files = [root / "README.md", root / "README.zh-CN.md", *(root / "docs").rglob("*.md")]
    named = {(f.parent / p).resolve() for f in files for p in PICTURE.findall(f.read_text())}
    assert named and all(p.is_file() for p in named)
    folder = root / "docs" / "images"
    assert {p.resolve() for p in folder.iterdir()} == named, "a picture that nobody shows"
    assert sum(p.stat().st_size for p in named) < 1_500_000


def test_pages_of_the_menu_exist(root, pages):
    menu = re.findall(r": (\S+\.md)$", (root / "mkdocs.yml").read_text(), re.M)
    for page in menu:
        folder, _, name = page.rpartition("/")
        assert name in pages if folder == "reference" else (root / "docs" / page).is_file()


def test_settings_named_in_the_docs_exist(root):
    from lite_engine.settings import OTHERS, SETTINGS

    headers = (root / "engine/native/include").glob("*.h")
    macros = {n for h in headers for n in re.findall(r"#define (LITE_\w+)", h.read_text())}
    for path in [root / "README.md", root / "README.zh-CN.md", *(root / "docs").glob("*.md")]:
        # Full names only: `LITE_…` stands for any of them.
        named = set(re.findall(r"\bLITE_[A-Z][A-Z_]*[A-Z]\b", path.read_text()))
        wrong = {n for n in named - {*SETTINGS, *macros} if not n.startswith(OTHERS)}
        assert not wrong, f"{path.name}: {sorted(wrong)}"


@pytest.mark.parametrize("page", ["SECURITY.md", "docs/reliability.md"])
def test_tests_that_stand_for_a_promise_exist(page, root):
    text = (root / page).read_text("utf-8")
    named = set(re.findall(r"`(?:pytest [^`]*?)?(tests/[\w/.]+)", text))
    missing = [name for name in named if not (root / name).exists()]
    assert len(named) > 10 and not missing


def test_every_row_of_the_threat_model_names_its_tests(root):
    """A notebook's code is the person's own: nothing is promised of it."""
    text = (root / "SECURITY.md").read_text("utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("| ")][1:]
    without = [row[0].strip() for row in rows if "`tests/" not in row[3]]
    assert len(rows) > 10 and without == ["a notebook"]
