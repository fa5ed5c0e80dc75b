"""What TFLite Metadata says about preprocessing and labels.

The metadata is a flatbuffer of its own ("M001"), kept as a buffer of the model; the label files are
members of a zip archive that is appended to the model. Source: metadata_schema.fbs of TFLite
Support.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from typing import Any

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError
from ...lines import lines_of
from .._flatbuffers import Table, root

#: label files larger than this, unpacked, are not read
MAX_LABEL_BYTES = 1 << 22
_IMAGE_PROPERTIES, _NORMALIZATION = 2, 1
_AXIS_LABELS, _VALUE_LABELS = 2, 3
_COLOURS = {1: "rgb", 2: "grey"}


def read_metadata(view: memoryview, buffer: memoryview) -> dict[str, Any]:
    """`preprocess` and `labels` as far as they are stated. Raises ModelFormatError."""
    if len(buffer) < 8 or bytes(buffer[4:8]) != b"M001":
        return {}
    model = root(buffer)
    out: dict[str, Any] = {}
    for key, value in (("name", model.text(0)), ("author", model.text(4)),
                       ("license", model.text(5))):  # fmt: skip
        if value:
            out[key] = value
    subgraphs = model.tables(3)
    if not subgraphs:
        return out
    inputs, outputs = subgraphs[0].tables(2), subgraphs[0].tables(3)
    preprocess = _preprocess(inputs[0]) if inputs else {}
    if preprocess:
        out["preprocess"] = preprocess
    for tensor in outputs:
        for file in tensor.tables(6):
            if file.number(2, "b") in (_AXIS_LABELS, _VALUE_LABELS) and "labels" not in out:
                labels = _read_labels(view, file.text(0))
                if labels:
                    out["labels"] = labels
    return out


def _preprocess(tensor: Table) -> dict[str, Any]:
    """{"mean": […], "std": […], "colour": …, "layout": "nhwc"} of an image input."""
    out: dict[str, Any] = {}
    content = tensor.table(3)
    if content is not None and content.number(0, "B") == _IMAGE_PROPERTIES:
        image = content.table(1)
        if image is not None:
            out["colour"] = _COLOURS.get(image.number(0, "b"), "rgb")
            out["layout"] = "nhwc"
            size = image.table(1)
            if size is not None:
                out["size"] = [size.number(1, "I"), size.number(0, "I")]
    for unit in tensor.tables(4):
        options = unit.table(1)
        if unit.number(0, "B") == _NORMALIZATION and options is not None:
            mean, std = options.array(0, "f4"), options.array(1, "f4")
            if mean is not None and std is not None and np.all(std != 0):
                out["mean"], out["std"] = mean.tolist(), std.tolist()
    return out


def _read_labels(view: memoryview, name: str) -> list[str]:
    """Lines of one member of the appended archive, empty when there is none."""
    try:
        with zipfile.ZipFile(_Window(view)) as archive:
            info = archive.getinfo(name)
            if info.file_size > MAX_LABEL_BYTES:
                raise ModelFormatError(tr("tflite: label file {name!r} is too large", name=name))
            with archive.open(info) as member:
                return lines_of(member.read(MAX_LABEL_BYTES + 1).rstrip(b"\r\n"))
    except (zipfile.BadZipFile, KeyError, UnicodeDecodeError, zlib.error, EOFError,
            NotImplementedError, RuntimeError, OSError):  # fmt: skip
        # Labels are a convenience: a damaged archive does not make the model unusable.
        return []


class _Window(io.RawIOBase):
    """The mapped file as a seekable stream, so that zipfile reads it without a copy."""

    def __init__(self, view: memoryview) -> None:
        self._view = view
        self._at = 0

    def seekable(self) -> bool:
        return True

    def readable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._at, len(self._view))[whence]
        if base + offset < 0:
            raise OSError(tr("seek before the start"))
        self._at = base + offset
        return self._at

    def readinto(self, target: Any) -> int:
        part = self._view[self._at : self._at + len(target)]
        target[: len(part)] = part
        self._at += len(part)
        return len(part)
