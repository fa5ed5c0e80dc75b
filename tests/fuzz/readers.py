"""What reads files that a person opens beside models, as readers of fuzz targets (guided.py):
containers, projects, pipelines, data sets and inputs."""

from __future__ import annotations

import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import lite_workbench as lw
import numpy as np
from lite_engine import optimize, settings
from lite_engine.errors import LiteError
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file import read_model
from lite_engine.model_file._container import read_container, write_container
from lite_engine.pipeline import Pipeline
from lite_engine.runtime.inputs import read_feeds
from lite_workbench.evaluate import read_dataset
from PIL import Image

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


def _project_members(place: Path) -> Seeds:
    folder = place / "members"
    with zipfile.ZipFile(_project(place)) as archive:
        archive.extractall(folder)
    for path in sorted(folder.rglob("*")):
        if path.suffix in (".json", ".npz"):
            yield folder, path


def _project_file(place: Path) -> Seeds:
    path = _project(place)
    yield path, path


def _open_project(path: Path) -> None:
    try:
        lw.open(path)
    finally:  # they are named by their content, and there are many
        shutil.rmtree(settings.cache_dir() / "projects", ignore_errors=True)


# ---- pipelines


def _beside(path: Path) -> Path:
    """A small model and its labels, beside a pipeline's file."""
    (path / "labels.txt").write_text("\n".join("abcdefghij"))
    optimize(classifier()).save(path / "m.lite")
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
        if suffix == ".yaml":
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


# ---- data sets

COCO: dict[str, Any] = {
    "images": [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}],
    "categories": [{"id": 1, "name": "cat", "keypoints": ["nose"]}, {"id": 7, "name": "dog"}],
    "annotations": [
        {"id": 1, "image_id": 1, "category_id": 7, "bbox": [1, 2, 3.5, 4], "area": 14,
         "iscrowd": 0, "keypoints": [1, 2, 2]},
        {"id": 2, "image_id": 2, "category_id": 1, "bbox": [1, 2, 3, 4]},
    ],
}  # fmt: skip
VOC = """<annotation><filename>a.jpg</filename><size><width>9</width></size>
<object><name>cat</name><difficult>1</difficult>
<bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3.5</xmax><ymax>4</ymax></bndbox></object>
<object><name>dog</name><bndbox><xmin>1</xmin><ymin>2</ymin><xmax>3</xmax><ymax>4</ymax></bndbox>
</object></annotation>"""
REGIONS = (
    'rec/1.jpg\t[{"transcription": "a", "points": [[1, 2], [3, 4]]}]\n'
    'rec/2.jpg\t[{"transcription": "###", "points": [[1, 2], [3.5, 4], [0, 0]]}]\n'
)


def _voc(place: Path) -> Seeds:
    folder = place / "voc" / "Annotations"
    folder.mkdir(parents=True)
    for name in ("a.xml", "b.xml"):
        (folder / name).write_text(VOC)
    yield folder.parent, folder / "a.xml"


def _npz(**arrays: Any) -> Callable[[], bytes]:
    def made() -> bytes:
        import io

        file = io.BytesIO()
        np.savez_compressed(file, **arrays)
        return file.getvalue()

    return made


def _list_seeds(place: Path) -> Seeds:
    yield from files(
        a_txt="a.png 3\nb/c.png 4\n", b_csv='file,label\n"a.png",cat\nb.jpg,"dog"\n',
        c_tsv="a.png\thello world\nb.png\tx\ty\n", d_txt="a.png\ttext one\nb.png\ttext two\n",
        e_txt=REGIONS, f_json=COCO, g_npz=_npz(images=np.zeros((2, 8, 8), np.uint8), labels=[1, 2]),
        h_npz=_npz(images=np.zeros((2, 8, 8)), labels=["a", "b"]),
        i_npz=_npz(x=np.zeros((2, 8)), y=[b"a", b"b"]), j_npz=_npz(x=[[1]], texts=["a b"]),
        k_npz=_npz(x=[[1], [2]], y=[-1, 0]), l_npz=_npz(x=[[1]], y=[0.5]), m_npz=_npz(x=[[1]], y=3),
        n_npz=_npz(x=[[1]]),
    )(place)  # fmt: skip


def _data_set(path: Path) -> None:
    for task in (None, "regions", "keypoints"):
        found = read_dataset(path, task=task)
        for sample in found.first(3).samples:
            repr(sample)


# ---- inputs


def _sound(place: Path) -> bytes:
    import wave

    with wave.open(str(place), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(np.arange(50, dtype="<i2").tobytes())
    return place.read_bytes()


def _inputs(place: Path) -> Seeds:
    np.save(place / "a.npy", np.zeros((1, 5), np.float32))
    (place / "b.npz").write_bytes(_npz(x=np.zeros((1, 5), np.float32))())
    _sound(place / "c.wav")
    large = np.zeros(3 << 20)  # more than is inflated without a look at its shape
    (place / "e.npz").write_bytes(_npz(x=large)())
    (place / "g.npz").write_bytes(_npz(z=large)())
    (place / "h.npz").write_bytes((place / "a.npy").read_bytes())
    np.save(place / "i.npy", np.array([None]), allow_pickle=True)
    (place / "f.txt").write_text("of no known kind")
    for suffix in ("png", "jpg", "bmp"):
        Image.new("RGB", (9, 9)).save(place / f"d.{suffix}")
    for path in sorted(place.iterdir()):
        yield path, path


@cache
def _taking(kind: str) -> Any:
    """A model of one input `x`: an image of floats or of bytes, sound, or its bytes."""
    graph = Graph(kind)
    dtype = DType.U8 if kind.startswith("bytes") else DType.F32
    shapes = {"sound": (1, 50), "bytes of sound": (None,)}
    x = Value("x", dtype, shapes.get(kind, (1, 3, 8, 8)))
    graph.inputs = [x]
    graph.outputs = [graph.add("Identity", [x], {}, name="r").output]
    return optimize(graph)


def _feeds(path: Path) -> None:
    natural = "floats" if path.suffix in (".png", ".jpg", ".bmp") else "sound"
    told(lambda file: read_feeds(_taking(natural), [file]))(path)
    for kind in ("floats", "bytes", "sound", "bytes of sound"):
        for given in ([f"x={path}"], [f"y={path}"], [path, path], [f"{path}.missing"]):
            with suppress(LiteError):
                read_feeds(_taking(kind), given)


def sources(*names: str) -> tuple[str, ...]:
    folders = {"e": "engine/lite_engine/", "w": "workbench/lite_workbench/"}
    return tuple(folders[name[0]] + name[2:] for name in names)


READERS = {
    "lite": Reader(
        _lite,
        _packed(read_model, _sections, ".lite"),
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
        sources("e/pipeline/bundle.py:read_bundle", "e/documents.py"),
    ),
    "project": Reader(
        _project_members,
        _packed(_open_project, _zip, ".liteproject"),
        sources("w/state/project.py:unpack,_checked,_read,_blocks,fill,_add_profile,_part"),
    ),
    "project_zip": Reader(
        _project_file,
        told(_open_project),
        sources("w/state/project.py:unpack,_checked,_read,_blocks,_damage"),
    ),
    "pipeline_json": Reader(
        _pipeline(".json", json.dumps(PIPELINE)),
        told(Pipeline.open),
        sources("e/pipeline/stages.py", "e/preprocess_fields.py"),
    ),
    "pipeline_yaml": Reader(
        _pipeline(".yaml", YAML),
        told(Pipeline.open),
        sources("e/pipeline/stages.py:read_document,_yaml,_check_plain"),
    ),
    "data_set": Reader(
        _list_seeds,
        told(_data_set),
        sources(
            *(
                f"w/evaluate/formats/{name}.py"
                for name in ("coco", "list_file", "text_lines", "arrays")
            ),
            "w/evaluate/reading.py:read_text,lines,inside",
        ),
    ),
    "voc": Reader(_voc, told(_data_set), sources("w/evaluate/formats/pascal_voc.py")),
    "inputs": Reader(
        _inputs,
        told(_feeds),
        sources(
            "e/runtime/inputs.py:read_feeds,sound_feed,image_feed,_named,_expected",
            "e/arrays.py:read_array,read_arrays,_large_arrays,_headers,_why",
        ),
    ),
}
