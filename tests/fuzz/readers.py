"""What reads files that a person opens beside models, as readers of fuzz targets (guided.py):
containers, projects, pipelines and archives of torch.export."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

import lite_workbench as lw
import numpy as np
from lite_engine import optimize, settings
from lite_engine.errors import LiteError
from lite_engine.importers import pytorch
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file import is_lite, read_model
from lite_engine.model_file._container import read_container, write_container
from lite_engine.pipeline import Pipeline, stages

from tests.small_models import classifier

from .guided import Reader

Seeds = Iterator[tuple[Path, Path]]


def told(read: Callable[[Path], object]) -> Callable[[Path], None]:
    """A LiteError of one line that names the file is an answer."""

    def checked(path: Path) -> None:
        try:
            read(path)
        except LiteError as error:
            said = str(error)
            if "\n" in said or len(said) > 5000 or str(path.parent) not in said:
                raise AssertionError(said[:300]) from error

    return checked


def limited(read: Callable[[Path], object], module: Any, **limits: int) -> Callable[[Path], object]:
    """With limits of a module made so small that small files cross them."""

    def checked(path: Path) -> None:
        with ExitStack() as stack:
            for name, value in limits.items():
                stack.enter_context(patch.object(module, name, value))
            read(path)

    return checked


def files(**contents: Any) -> Callable[[Path], Seeds]:
    """Files by name (`_` is a dot), each read by itself."""

    def make(place: Path) -> Seeds:
        for name, content in contents.items():
            path = place / name.replace("_", ".", 1)
            data = content() if callable(content) else content
            if isinstance(data, (dict, list)):
                data = json.dumps(data)
            path.write_bytes(data if isinstance(data, bytes) else data.encode())
            yield path, path

    return make


# ---- containers: their parts are damaged, and packed again


def _packed(read: Callable[[Path], object], pack: Callable[[Path, Path], None], suffix: str) -> Any:
    def packed(folder: Path) -> None:
        file = folder.with_suffix(suffix)
        pack(folder, file)
        read(file)

    return told(packed)


def _sections(folder: Path, file: Path) -> None:
    tags = sorted(folder.iterdir())
    write_container(file, {p.name: [p.read_bytes()] for p in tags},
                    compressed=[p.name for p in tags if p.name in ("META", "GRAPH")])  # fmt: skip


@cache
def _model_bytes() -> dict[str, bytes]:
    import tempfile

    with tempfile.TemporaryDirectory() as temporary:
        path = optimize(classifier(), targets=["x86", "arm"]).save(Path(temporary) / "m.lite")
        return {tag: bytes(view) for tag, view in read_container(path).items()}


def _lite(place: Path) -> Seeds:
    folder = place / "m"
    folder.mkdir()
    for tag, data in _model_bytes().items():
        (folder / tag).write_bytes(data)
    for tag in ("META", "GRAPH", "NEEDS", "WINDEX"):
        yield folder, folder / tag
    index = _model_bytes()["WINDEX"]
    flag = _model_bytes()["META"].replace(b'"padded":false', b'"padded":5')
    wrong: dict[str, dict[str, bytes]] = {
        "odd": {"WINDEX": index[:-3]}, "short": {"WINDEX": index[:16]},
        "beyond": {"WINDEX": b"\xff" * 16 + index[16:]}, "lacks": {"GRAPH": b""},
        "pipeline": {"GRAPH": b"", "PIPE": b"{}"}, "newer": {"NEEDS": b"engine 99.0\n"},
        "halves": {"META": _with_graph("fp16"), "GRAPH.16": _model_bytes()["GRAPH"]},
        "no_half": {"META": _with_graph("fp16")}, "flag": {"META": flag},
    }  # fmt: skip
    for name, change in wrong.items():
        other = place / name
        other.mkdir()
        for tag, data in {**_model_bytes(), **change}.items():
            if data:
                (other / tag).write_bytes(data)
        yield other, other / next((tag for tag, data in change.items() if data), "META")


def _whole_model(path: Path) -> None:
    assert is_lite(path) and not is_lite(path.with_name("n" * 300))
    model = read_model(path)
    assert sum(len(graph.nodes) for graph in model.graphs.values()) >= 0


def _with_graph(precision: str) -> bytes:
    """The description of a model that has a graph for one precision alone."""
    whole = _model_bytes()["META"]
    made = whole.replace(b'"graphs":{}', f'"graphs":{{"{precision}":"GRAPH.16"}}'.encode())
    assert made != whole
    return made


def _small_container(place: Path) -> Seeds:
    path = place / "c.lite"
    write_container(
        path, {"META": [b"{}" * 9], "GRAPH": [b"[]" * 9], "X": [b"x"]}, compressed=["META"]
    )
    yield path, path


def _every_section(path: Path) -> None:
    sections = read_container(path)
    assert len(sections) == len(list(sections))
    for _, view in sections.items():
        bytes(view)


def _zip(folder: Path, file: Path) -> None:
    with zipfile.ZipFile(file, "w") as archive:
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            archive.write(path, path.relative_to(folder))


def _project(place: Path) -> Path:
    session = lw.open(optimize(classifier(), targets=["x86"]).save(place / "small.lite"))
    session.set_input({"x": np.zeros((1, 3, 20, 20), np.float32)})
    session.profile("reference", runs=1)
    session.compare("reference", "x86")
    return Path(session.save(place / "whole"))


def _members(place: Path) -> Path:
    folder = place / "members"
    with zipfile.ZipFile(_project(place)) as archive:
        archive.extractall(folder)
    return folder


def _project_members(place: Path) -> Seeds:
    folder = _members(place)
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".json", ".npz"):
            yield folder, path
    whole = json.loads((folder / "project.json").read_bytes())
    measured = whole["profiles"][0]
    wrong: dict[str, dict[str, Any]] = {
        "newer": {"format": 2}, "gone": {"model": "model/gone.onnx"}, "unknown": {"version": "x"},
        "sides": {"profiles": [{**measured, "of": ["x", "y"]}]},
        "elsewhere": {"profiles": [{**measured, "of": ["board"]}]},
    }  # fmt: skip
    for name, change in wrong.items():
        other = place / name
        shutil.copytree(folder, other)
        (other / "project.json").write_text(json.dumps({**whole, **change}))
        yield other, other / "project.json"


def _project_file(place: Path) -> Seeds:
    """Whole, with a name that no project has, with another's name twice, without a description, and
    one that says that it is larger than it is."""
    path = _project(place)
    yield path, path
    folder = _members(place)
    (folder / "project.json").rename(place / "project.json")
    lacks = place / "lacks.liteproject"
    _zip(folder, lacks)
    yield lacks, lacks
    (folder / "strange.py").write_text("")
    strange = place / "strange.liteproject"
    _zip(folder, strange)
    yield strange, strange
    large = place / "large.liteproject"
    data = bytearray(path.read_bytes())
    with zipfile.ZipFile(path) as archive:
        at = archive.start_dir
    data[at + 24 : at + 28] = (0xFFFFFF00).to_bytes(4, "little")  # the size when it is unpacked
    large.write_bytes(data)
    yield large, large


def _open_project(path: Path) -> None:
    try:
        lw.open(path)
    finally:  # they are named by their content, and there are many
        shutil.rmtree(settings.cache_dir() / "projects", ignore_errors=True)


# ---- pipelines


def _beside(path: Path) -> Path:
    """A small model, one of open sizes, labels and vectors, beside a pipeline's file."""
    (path / "labels.txt").write_text("\n".join("abcdefghij"))
    optimize(classifier()).save(path / "m.lite")
    graph = Graph("open")
    graph.inputs = [Value("x", DType.F32, ("n", 3, "h", "w"))]
    graph.outputs = [graph.add("Relu", graph.inputs, {}, name="r").output]
    optimize(graph).save(path / "open.lite")
    np.save(path / "g.npy", np.zeros((2, 10), np.float32))
    np.save(path / "whole.npy", np.zeros(3, np.int64))
    return path


PIPELINE: dict[str, Any] = {
    "name": "p",
    "stages": [
        {"model": "m.lite", "name": "a", "preprocess": {"size": [20, 20], "mean": [1, 2, 3]},
         "labels": "labels.txt", "read": {"kind": "boxes", "decode": "yolov8", "threshold": 0.5}},
        {"crop": {"grow": 0.1, "limit": 4}},
        {"model": "m.lite", "name": "b", "labels": ["x", "y"], "read": "top",
         "preprocess": "x/255"},
        {"turn": {"model": "b", "label": "x", "above": 0.9}},
    ],
}  # fmt: skip
#: In place of the reader's own limit, which files of a fuzz target do not reach.
MOST_VALUES = 500
#: What else a stage may say, right or wrong.
STAGES: tuple[dict[str, Any], ...] = (
    {"batch": 0}, {"batch": 2}, {"widths": [8]}, {"features": 5}, {"features": {"rate": 8000}},
    {"read": {"kind": "vector", "gallery": "g.npy"}}, {"read": {"kind": "vector", "gallery":
     "whole.npy"}}, {"model": "open.lite"}, {"model": "open.lite", "open_size": [8, 8], "batch": 2},
    {"model": "open.lite", "widths": [8, 16], "preprocess": {"fit": "height", "size": [8, 16]}},
    {"model": "open.lite", "widths": [8]}, {"labels": 5}, {"labels": "none.txt"}, {"name": "b"},
    {"read": {"kind": "text"}, "labels": ["a"] * 600},
)  # fmt: skip
YAML = """name: p
stages:
  - model: m.lite
    name: &first a
    preprocess: {size: [20, 20], mean: [1, 2.5, 3], layout: nchw}
    labels: labels.txt
    read: {kind: top, threshold: 0.5}
  - crop: {grow: 0.1}
  - model: m.lite
    name: b
    labels: [yes, "no", 0x10, 1:20, ~, !!str 5, !!int 6]
  - turn: {model: b, label: "no", above: .9}
  - <<: {crop: {limit: 2}}
"""
#: Values that PyYAML makes into something else than JSON has, or fails at.
ODD_YAML = ("2020-01-01", "2001-99-99", "!!binary aGk=", "!!set {a, b}", "!!timestamp x",
            "!!bool x", "!!int ''", "!!float x", "*first", "&first [*first]", "? [a, b]\n: c", "=",
            "{[]: 1}", "!!python/object:os.system x", "0o9", "1e400", ".nan", "-.inf", "0x",
            "2020-01-01 99:99:99")  # fmt: skip


def _pipeline(suffix: str, text: str) -> Callable[[Path], Seeds]:
    def make(place: Path) -> Seeds:
        path = _beside(place) / f"p{suffix}"
        path.write_text(text)
        yield path, path
        if suffix == ".json":
            for i, change in enumerate(STAGES):
                other = place / f"{i}.json"
                first, *others = PIPELINE["stages"]
                other.write_text(json.dumps({**PIPELINE, "stages": [{**first, **change}, *others]}))
                yield other, other
        if suffix == ".yaml":
            deep = place / "deep.yaml"
            deep.write_text(f"name: [{'[1, 2], ' * MOST_VALUES}]\nstages: []\n")
            yield deep, deep
            for i, odd in enumerate(ODD_YAML):
                other = place / f"{i}.yaml"
                other.write_text(text.replace("0x10", odd))
                yield other, other

    return make


def _bundle(place: Path) -> Seeds:
    whole = Pipeline([{"model": _beside(place) / "m.lite", "labels": ["a"] * 10}]).save(
        place / "p.lite", ["x86"]
    )
    folder = place / "b"
    folder.mkdir()
    for tag, view in read_container(whole).items():
        (folder / tag).write_bytes(bytes(view))
    yield folder, folder / "PIPE"


# ---- archives of torch.export, which torch itself reads: only whether a file is one


def _exported(place: Path) -> Seeds:
    for i, names in enumerate((["m/models/model.json"], ["serialized_exported_program.json"], [])):
        path = place / f"{i}.pt2"
        with zipfile.ZipFile(path, "w") as archive:
            for name in [*names, "version"]:
                archive.writestr(name, "{}")
        yield path, path


def sources(*names: str) -> tuple[str, ...]:
    folders = {"e": "engine/lite_engine/", "w": "workbench/lite_workbench/"}
    return tuple(folders[name[0]] + name[2:] for name in names)


READERS = {
    "lite": Reader(
        _lite,
        _packed(_whole_model, _sections, ".lite"),
        sources(
            "e/model_file/reader.py",
            "e/model_file/schema.py:read,check,_check_object,_limit,_once,_check_depth",
            "e/model_file/needs.py:from_bytes,_numbers",
        ),
    ),
    "container": Reader(
        _small_container,
        told(_every_section),
        sources("e/model_file/_container.py:Sections,read_container,_unpacked"),
    ),
    "bundle": Reader(
        _bundle,
        _packed(Pipeline.open, _sections, ".lite"),
        sources("e/pipeline/bundle.py:read_bundle"),
    ),
    "project": Reader(
        _project_members,
        _packed(_open_project, _zip, ".liteproject"),
        sources("w/state/project.py:unpack,_checked,_read,_blocks,fill,_add_profile,_part"),
    ),
    "project_zip": Reader(
        _project_file,
        told(_open_project),
        sources("w/state/project.py:unpack,_checked,_blocks,_damage"),
    ),
    "exported": Reader(_exported, told(pytorch.match), sources("e/importers/pytorch.py:match")),
    "pipeline_json": Reader(
        _pipeline(".json", json.dumps(PIPELINE)),
        told(limited(Pipeline.open, stages, _MOST_VALUES=MOST_VALUES)),
        sources(
            "e/pipeline/stages.py:read_stages,_known_keys,_part,_sized,_read,_batch_of,"
            "_of_one_size",
            "e/lines.py",
            "e/preprocess_fields.py",
        ),
    ),
    "pipeline_yaml": Reader(
        _pipeline(".yaml", YAML),
        told(limited(Pipeline.open, stages, _MOST_VALUES=MOST_VALUES)),
        sources("e/pipeline/stages.py:read_document,_yaml,_check_plain"),
    ),
}
