"""docs/lite_format.md is the format: a reader written from it opens every file, its schemas are the
engine's, and damage is told by section and byte."""

from __future__ import annotations

import copy
import itertools
import json
import random
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jsonschema
import numpy as np
import pytest
from lite_engine import optimize
from lite_engine.documents import Part
from lite_engine.errors import LiteError, ModelFormatError, VersionError
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file import read_model, schema, with_shapes
from lite_engine.model_file._container import read_container, write_container

from tests.small_models import attention, classifier

from . import spec_reader

DATA = Path(__file__).parent / "data"


def with_branches() -> Graph:
    """Subgraphs, attributes of every kind, names that must be quoted."""
    graph, x, c = Graph('a "b"'), Value("x", DType.F32, (2, None, "n")), Value("c", DType.BOOL, ())
    graph.inputs = [x, c]
    branches = {}
    for name, op in (("then_branch", "Relu"), ("else_branch", "Neg")):
        branches[name] = inner = Graph(name)
        inner.outputs = [inner.add(op, [x], {}, name=f"{name} 1, {{2}}").output]
    y = graph.add("If", [c], branches, name="choose").output
    graph.outputs = [graph.add("Clip", [y, None, graph.constant(np.float32(6))], {}).output]
    return graph


def models() -> dict[str, Any]:
    return {
        "every target": optimize(classifier(), targets="x86,arm,opencl", precision="opencl=fp16"),
        "bf16": optimize(classifier(), targets="x86", precision="bf16"),
        "attention": optimize(attention(), metadata={"labels": ["ä", "\u2028"], "deep": [[1]]}),
        "branches": optimize(with_branches()),
    }


@pytest.fixture(scope="module")
def page(root: Path) -> str:
    return (root / "docs" / "lite_format.md").read_text()


@pytest.fixture(scope="module")
def saved(tmp_path_factory) -> Path:
    return models()["every target"].save(tmp_path_factory.mktemp("format") / "m.lite")


def test_the_schemas_of_the_page_are_the_engines(page: str) -> None:
    shown = [json.loads(text) for text in re.findall(r"^```json\n(.*?)^```", page, re.M | re.S)]
    assert shown == [schema.META, schema.GRAPH]
    for document in shown:
        jsonschema.Draft202012Validator.check_schema(document)


def test_the_reader_is_short_and_its_own(root: Path) -> None:
    text = Path(spec_reader.__file__).read_text()
    assert len(text.splitlines()) <= 200 and "lite_engine" not in text


@pytest.mark.parametrize("name", [*models(), *(p.name for p in DATA.glob("*.lite"))])
def test_every_file_is_read_from_the_page(name: str, page: str, tmp_path: Path) -> None:
    path = DATA / name
    if name in (made := models()):
        path = made[name].save(tmp_path / "m.lite")
    ours, theirs = read_model(path), spec_reader.read(path, page)
    assert theirs["meta"]["targets"] == ours.targets
    _same(ours.graph, theirs["graphs"]["GRAPH"])


def test_programs_for_other_sizes_are_read_from_the_page(page: str, tmp_path: Path) -> None:
    model = optimize(classifier("n"), targets="x86,arm,opencl")
    (x,) = model.graph.inputs
    sizes = [with_shapes(model, {x.name: (n, *x.shape[1:])}) for n in (1, 2, 5)]
    path = model.save(tmp_path / "m.lite", sizes=sizes)
    ours, theirs = read_model(path), spec_reader.read(path, page)
    _same(ours.graph, theirs["graphs"]["GRAPH"])
    assert ours.graph.inputs[0].shape[0] == "n"
    sections = [f"{size}PROG.{t}" for size in ("", "SIZE.0", "SIZE.1") for t in ("x86", "arm")]
    assert sorted(theirs["programs"]) == sorted(sections)
    assert all(theirs["programs"][s] == theirs["programs"]["PROG.x86"] for s in sections[::2])


def _same(ours: Graph, theirs: dict[str, Any]) -> None:
    assert [v.name for v in ours.inputs] == [name for name, _ in theirs["inputs"]]
    assert [v.name for v in ours.outputs] == theirs["outputs"]
    for mine, other in zip(ours.nodes, theirs["nodes"], strict=True):
        assert (mine.name, mine.op) == (other["name"], other["op"])
        assert ["_" if v is None else v.name for v in mine.inputs] == other["inputs"]
        assert mine.attrs.keys() == other["attributes"].keys()
        for key, inner in mine.subgraphs():
            _same(inner, other["attributes"][key])
    for name, array in theirs["constants"].items():
        np.testing.assert_array_equal(ours.find(name).const, array)


def _changes(value: Any) -> Iterator[Callable[[], None]]:
    """What may be done to a document, at every place of it."""
    others = [None, True, -1, 1.5, "x", "x" * 70000, [], {}, 2**70]
    keys = list(value) if isinstance(value, dict) else range(len(value))
    for key in keys:
        for other in others:
            yield lambda k=key, o=other: value.__setitem__(k, o)
        yield lambda k=key: value.__delitem__(k)
        if isinstance(value[key], (dict, list)):
            yield from _changes(value[key])
    if isinstance(value, dict):
        yield lambda: value.__setitem__("unknown", 1)
    else:
        yield lambda: value.append("one more")


@pytest.mark.parametrize("tag", ["META", "GRAPH"])
def test_the_engine_checks_what_the_schema_says(tag: str, saved: Path) -> None:
    """Against jsonschema, which is another's."""
    wanted = getattr(schema, tag)
    validator = jsonschema.Draft202012Validator(wanted)
    good = json.loads(bytes(read_container(saved)[tag]))
    rng, seen = random.Random(3), set()
    count = sum(1 for _ in _changes(copy.deepcopy(good)))
    for chosen in rng.sample(range(count), min(count, 400)):
        bad = copy.deepcopy(good)
        next(itertools.islice(_changes(bad), chosen, None))()
        try:
            schema.check(Part(bad, tag), wanted)
            ours = True
        except ModelFormatError:
            ours = False
        seen.add(ours)
        assert ours == validator.is_valid(bad), (chosen, list(validator.iter_errors(bad))[:1])
    assert seen == {True, False}


DEEP = "[" * 40 + "]" * 40
BAD = {
    "twice": ("META", b'"notes":{}', b'"notes":{},"notes":{}', "'notes' occurs twice"),
    "unknown": ("META", b'"notes":{}', b'"notes":{},"mine":{}', "META: 'mine' is not a known key"),
    "deep": ("META", b'"notes":{}', f'"notes":{DEEP}'.encode(), "more than 32 deep"),
    "very deep": ("META", b'"notes":{}', b'"notes":' + b"[" * 99999, "deeply|not JSON"),
    "another type": ("META", b'"notes":{}', b'"notes":[]', "META.notes: expected an object"),
    "a word": ("META", b'"x86"', b'"x87"', r"META.targets\[0\]: 'x87' is not one of x86"),
    "no UTF-8": ("META", b'"notes"', b'"n\xfftes"', "byte [0-9]+ is not UTF-8"),
    "a weight": ("GRAPH", b'"weight":0', b'"weight":99', r"arrays\[0\]: weight 99 is not in"),
    "a shape": ("GRAPH", b'"shape":[', b'"shape":[7,', r"arrays\[0\]: weight 0 has 1728 bytes"),
    "an array": ("GRAPH", b"= @0", b"= @77", "line 3: array @77 .* is not there"),
    "a dtype": ("GRAPH", b": f32[16", b": f33[16", "line 3: 'f33'"),
    "a reader": ("GRAPH", b"Conv(x", b"Conv(z", "line [0-9]+: 'z' is read before it is defined"),
    "attributes": ("GRAPH", b"{", b'{"a":1,', "GRAPH: 'a' is not a known key"),
    "an attribute twice": ("GRAPH", b"group=1", b"group=1, group=1", "'group' occurs twice"),
    "more text": ("GRAPH", b"\\n}", b"\\n}\\nmore", "the graph ends here"),
    "a word too many": ("GRAPH", b"output prob", b"output prob more", "unexpected 'more'"),
    "NEEDS": ("NEEDS", b"engine", b"motor", "NEEDS"),
}


@pytest.mark.parametrize("name", BAD)
def test_damage_is_told_by_section_and_byte(name: str, saved: Path, tmp_path: Path) -> None:
    tag, old, new, message = BAD[name]
    sections = {t: [bytes(data)] for t, data in read_container(saved).items()}
    assert old in sections[tag][0]
    sections[tag][0] = sections[tag][0].replace(old, new, 1)
    path = write_container(tmp_path / "m.lite", sections)
    with pytest.raises(ModelFormatError, match=message) as raised:
        read_model(path)
    assert re.search(rf"m\.lite: section '{tag}' at byte \d+: ", str(raised.value))


def test_no_damage_is_told_in_python(saved: Path, tmp_path: Path) -> None:
    """A byte of a section changed anywhere, the checksum right."""
    good = {tag: bytes(data) for tag, data in read_container(saved).items()}
    rng, refused = random.Random(5), 0
    for tag in ("META", "GRAPH", "WINDEX", "NEEDS"):
        for _ in range(150):
            bad = bytearray(good[tag])
            bad[rng.randrange(len(bad))] = rng.choice(b'\0"[]{},:@-9z\xff')
            path = write_container(
                tmp_path / "m.lite", {**{t: [d] for t, d in good.items()}, tag: [bytes(bad)]}
            )
            try:
                read_model(path)
            except VersionError:
                continue
            except LiteError as error:
                refused += 1
                assert re.search(r"section '[A-Z]+' at byte \d+", str(error)), error
                assert not re.search(r"\w+Error|has no attribute|index out|NoneType", str(error))
    assert refused > 150


def test_a_newer_file_names_the_engine_that_it_needs(saved: Path, tmp_path: Path) -> None:
    """Not the key that this engine does not know."""
    sections = {t: [bytes(data)] for t, data in read_container(saved).items()}
    sections["NEEDS"] = [sections["NEEDS"][0].replace(b"engine 0.1.0", b"engine 9.0.0")]
    sections["META"] = [sections["META"][0].replace(b'"notes"', b'"later":1,"notes"')]
    with pytest.raises(VersionError, match=r"needs engine 9\.0\.0 or newer"):
        read_model(write_container(tmp_path / "m.lite", sections))
