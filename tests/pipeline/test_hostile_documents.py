"""Pipelines of strangers, in YAML, JSON and `.lite`: one line that names the file."""

from __future__ import annotations

import json
import time

import pytest
from lite_engine import optimize
from lite_engine.errors import LiteError, UsageError, VersionError
from lite_engine.model_file._container import read_container, write_container
from lite_engine.pipeline import Pipeline

from tests.small_models import classifier

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("pipeline")
    optimize(classifier()).save(made / "m.lite")
    return made


@pytest.mark.parametrize(
    ("label", "why"),
    [
        ("2020-01-01", "2020-01-01 is not a string or number; put it in quotes"),
        ("2001-99-99", "month must be in 1..12"),
        ("!!binary aGk=", "is not a string or number"),
        ("!!set {a, b}", "is not a string or number"),
        ("!!timestamp x", "does not fit its tag"),
        ("!!bool x", "does not fit its tag"),
        ("!!int ''", "does not fit its tag"),
        ("&a [*a]", "larger or nested deeper than any pipeline"),
        ("!!python/object/apply:os.getcwd []", "could not determine a constructor"),
    ],
)
def test_a_value_that_json_does_not_have(folder, label, why):
    path = folder / "p.yaml"
    path.write_text(f"stages: [{{model: m.lite, labels: [{label}]}}]\n")
    with pytest.raises(UsageError, match=r"p\.yaml: not a pipeline that can be read") as raised:
        Pipeline.open(path)
    assert why in str(raised.value) and "\n" not in str(raised.value)


def test_aliases_that_grow_without_end(folder):
    """Thirty lines stand for 2**30 labels."""
    path = folder / "p.yaml"
    grown = "".join(f"a{i + 1}: &a{i + 1} [*a{i}, *a{i}]\n" for i in range(30))
    path.write_text("a0: &a0 [x, x]\n" + grown + "stages: [*a30]\n")
    start = time.process_time()
    with pytest.raises(UsageError, match="larger or nested deeper than any pipeline"):
        Pipeline.open(path)
    assert time.process_time() - start < 2


@pytest.mark.parametrize("change", [
    {"model": "é" * 300},
    {"model": 5}, {"model": ["m.lite"]}, {"model": "a\0b"}, {"labels": 5}, {"labels": {"a": 1}},
    {"features": 5}, {"open_size": 5}, {"preprocess": [1]}, {"read": 5}, {"read": {"kind": []}},
    {"labels": "a\0b"}, {"labels": "/dev/zero"}, {"read": {"gallery": "a\0b"}},
    {"read": {"threshold": "x"}},
])  # fmt: skip
def test_a_stage_of_wrong_types(folder, change):
    path = folder / "p.json"
    path.write_text(json.dumps({"stages": [{"model": "m.lite", **change}]}))
    with pytest.raises(LiteError) as raised:
        Pipeline.open(path)
    assert "p.json" in str(raised.value) and "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("change", "error", "why"),
    [
        ({"format": 2}, VersionError, "this pipeline was written by a newer version"),
        ({"stages": None}, LiteError, "expected a list"),
        ({"stages": [1]}, LiteError, "expected an object"),
        ({"models": 5}, LiteError, "expected a list"),
        ({"models": [{"section": "A\nB", "name": "a"}]}, LiteError, "is missing"),
    ],
)
def test_a_bundle_of_wrong_types(folder, change, error, why):
    path = Pipeline([{"model": folder / "m.lite"}]).save(folder / "p.lite")
    sections = {tag: [bytes(view)] for tag, view in read_container(path).items()}
    document = {**json.loads(sections["PIPE"][0]), **change}
    write_container(path, {**sections, "PIPE": [json.dumps(document).encode()]})
    with pytest.raises(error, match=r"p\.lite: ") as raised:
        Pipeline.open(path)
    assert why in str(raised.value) and "\n" not in str(raised.value)
