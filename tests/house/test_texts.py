"""Texts use the field's terms: `scripts/texts.py` lists them all and finds other wordings."""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def texts(root) -> ModuleType:
    spec = importlib.util.spec_from_file_location("texts", root / "scripts" / "texts.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["texts"] = module  # NamedTuple looks its module up
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def listed(texts) -> list:
    return list(texts.texts())


def test_no_text_has_a_forbidden_wording(texts, listed):
    assert texts.findings(listed) == []


@pytest.mark.parametrize(
    "text",
    [
        "a file in halves",
        "side A is trusted",
        "the guilty layer",
        "no runs are kept yet",
        "weights nobody reads: w",
        "3 layers run elsewhere",
        "How small may the numbers be?",
        "5 items, 6 are needed",
        "x is none of a, b",
        "x86 and OpenCL say the same",
        "Its kernel is gone: run the cell again",
        "64 held-back samples",
        "Which layers mind?",
        "the names of the command that mends it",
        "labelled data",
        "the recogniser of lines",
        "neighbouring rows",
    ],
)
def test_a_forbidden_wording_is_found(texts, text):
    (found,) = texts.findings([texts.Text("file", 7, text)])
    assert found.startswith("file:7: ")


@pytest.mark.parametrize(
    "text",
    ["5 work-items", "two halves of a vector", "more precise analyses", "a finer raise",
     "the lookup table has 256 entries", "a flat roof", "places after the decimal point",
     "`scripts/pictures.py` draws the images"],
)  # fmt: skip
def test_ordinary_words_are_left_alone(texts, text):
    assert texts.findings([texts.Text("file", 1, text)]) == []


def test_texts_of_every_kind_are_listed(listed):
    files = {text.file for text in listed}
    for file in (
        "lite run --help", "engine/lite_engine/settings.py",
        "workbench/lite_workbench/steps/run.py",
        "widgets/lite_widgets/error_strip/error_strip.js", "notebooks/01_first_walk.ipynb",
        "README.md",
        "docs/compare.md", "docs/lessons/quantize.md", "CHANGELOG.md",
    ):  # fmt: skip
        assert file in files, file
    said = {text.text for text in listed}
    assert "Which layers lose accuracy?" in said  # a template of JavaScript, without its tags
    assert "threads must be between 1 and {max_threads}, got {asked!r}" in said  # of Python
