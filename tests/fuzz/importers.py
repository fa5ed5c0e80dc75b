"""The importers as readers of fuzz targets (guided.py), with the sources that read their bytes.

What translates operators is not counted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from tests.importers.fuzz import MODELS, examine

from . import importer_seeds, paddle_seeds
from .guided import Reader

SEEDS = {**importer_seeds.SEEDS, **paddle_seeds.SEEDS}
HERE = "engine/lite_engine/importers/"


def _onnx_fields(folder: Path) -> tuple[Path, list[str]]:
    from tests.importers.tiny_onnx import every_field  # needs the onnx package

    return every_field(folder), ["fields.onnx"]


def _seeds(*models: str) -> Callable[[Path], Iterator[tuple[Path, Path]]]:
    def make(place: Path) -> Iterator[tuple[Path, Path]]:
        for model in models:
            folder = place / model
            folder.mkdir()
            path, files = {**MODELS, **SEEDS, "onnx_fields": _onnx_fields}[model](folder)
            for file in files:
                yield path, folder / file

    return make


def _reader(models: list[str], sources: list[str], more: str | tuple[str, ...] = ()) -> Reader:
    """`more`: prefixes of names of SEEDS."""
    others = [name for name in SEEDS if name.startswith(more)]
    return Reader(_seeds(*models, *others), examine, tuple(HERE + source for source in sources))


READERS = {
    "onnx": _reader(
        ["onnx", "onnx_fields"],
        ["_protobuf.py", "onnx/__init__.py", "onnx/reader.py", "onnx/tensors.py",
         "onnx/attributes.py"],
        "onnx_",
    ),
    "tflite": _reader(
        ["tflite", "tflite_int8", "tflite_ssd", "tflite_metadata"],
        ["_flatbuffers.py", "tflite/__init__.py", "tflite/reading.py", "tflite/model.py",
         "tflite/metadata.py"],
        "tflite_",
    ),
    "paddle": _reader(
        ["paddle"],
        ["_protobuf.py", "paddle/program_desc.py", "paddle/params.py", "paddle/program.py"],
        "paddle_",
    ),
    "pir": _reader(["pir"], ["paddle/pir.py"], "pir_"),
    "naive_buffer": _reader(
        ["nb0", "nb1", "nb2"],
        ["naive_buffer/header.py", "naive_buffer/container.py", "naive_buffer/tlv.py"],
        "nb_",
    ),
    "tensorflow": _reader(
        ["tensorflow", "saved_model"],
        ["_protobuf.py", "tensorflow/graphdef.py", "tensorflow/saved_model.py",
         "tensorflow/bundle.py"],
        ("tf_", "bundle_"),
    ),
    "caffe": _reader(["caffe"], ["caffe/_prototxt.py", "caffe/model.py"], "caffe_"),
}  # fmt: skip
