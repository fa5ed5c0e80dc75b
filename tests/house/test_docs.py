"""The documentation says what the code says: every operator, setting and verb has its line."""

from __future__ import annotations

import importlib.util
import re

import pytest


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


def test_pages_of_the_menu_exist(root, pages):
    menu = re.findall(r": (\S+\.md)$", (root / "mkdocs.yml").read_text(), re.M)
    for page in menu:
        folder, _, name = page.rpartition("/")
        assert name in pages if folder == "reference" else (root / "docs" / page).is_file()


def test_settings_named_in_the_docs_exist(root):
    from lite_engine.settings import OTHERS, SETTINGS

    for path in [root / "README.md", *(root / "docs").glob("*.md")]:
        # Full names only: `LITE_…` stands for any of them.
        named = set(re.findall(r"\bLITE_[A-Z][A-Z_]*[A-Z]\b", path.read_text()))
        wrong = {n for n in named - set(SETTINGS) if not n.startswith(OTHERS)}
        assert not wrong, f"{path.name}: {sorted(wrong)}"
