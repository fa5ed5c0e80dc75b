"""What reads data sets and the inputs of a run, as readers of fuzz targets (guided.py)."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine import optimize
from lite_engine.errors import LiteError
from lite_engine.ir import DType, Graph, Value
from lite_engine.runtime.inputs import read_feeds
from lite_workbench.evaluate import read_dataset, reading
from PIL import Image

from .guided import Reader
from .readers import Seeds, files, limited, sources, told

# ---- data sets

#: In place of the reader's own limit, which files of a fuzz target do not reach.
MOST_LIST = 5000
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


def _large_list(place: Path) -> Seeds:
    yield from _list_seeds(place)
    large = place / "o.txt"
    large.write_text("".join(f"{i:04}.png {i % 7}\n" for i in range(MOST_LIST // 10)))
    yield large, large


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


READERS = {
    "data_set": Reader(
        _large_list,
        told(limited(_data_set, reading, MAX_BYTES=MOST_LIST)),
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
