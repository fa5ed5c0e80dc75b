"""Tiny TFLite models, written field by field after schema.fbs."""

from __future__ import annotations

import io
import zipfile
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from tests.importers.wire import Num, Table, flatbuffer, flexbuffer_map

TYPES = {"float32": 0, "float16": 1, "int32": 2, "uint8": 3, "int64": 4, "string": 5, "bool": 6,
         "int16": 7, "int8": 9}  # fmt: skip


@dataclass
class TinyModel:
    """Tensors and operators by number; `bytes()` is the file."""

    tensors: list[Table] = field(default_factory=list)
    buffers: list[Table] = field(default_factory=lambda: [Table()])
    codes: list[Table] = field(default_factory=list)
    operators: list[Table] = field(default_factory=list)
    metadata: list[Table] = field(default_factory=list)
    graphs: list[Table] = field(default_factory=list)

    def tensor(
        self,
        name: str,
        dtype: str,
        shape: tuple[int, ...],
        data: Any = None,
        *,
        scale: Any = None,
        zero: Any = None,
        axis: int = 0,
        signature: Any = None,
        variable: bool = False,
    ) -> int:
        """Adds a tensor; `data` makes it a constant."""
        at = 0
        if data is not None:
            at = self.buffer(np.asarray(data, dtype).tobytes())
        quant = None
        if scale is not None:
            scales = np.atleast_1d(np.asarray(scale, np.float32))
            zeros = np.broadcast_to(np.asarray(0 if zero is None else zero, np.int64), scales.shape)
            quant = Table(_2=scales, _3=np.ascontiguousarray(zeros), _6=Num("i", axis))
        self.tensors.append(
            Table(
                _0=np.array(shape, np.int32),
                _1=Num("b", TYPES[dtype]),
                _2=Num("I", at),
                _3=name,
                _4=quant,
                _5=Num("?", 1) if variable else None,
                _7=None if signature is None else np.array(signature, np.int32),
            )
        )
        return len(self.tensors) - 1

    def buffer(self, data: bytes) -> int:
        self.buffers.append(Table(_0=np.frombuffer(data, np.uint8)))
        return len(self.buffers) - 1

    def op(
        self,
        code: int | str,
        inputs: list[int],
        outputs: list[int],
        options: Table | None = None,
        custom: bytes | None = None,
        kind: int = 1,
        intermediates: list[int] | None = None,
    ) -> None:
        """`code` is a built-in operator's number or a custom one's name, `kind` the number of its
        options' table in the schema's union, which LiteRT reads and we do not."""
        if isinstance(code, str):
            entry = Table(_0=Num("b", 32), _1=code, _3=Num("i", 32))
        else:
            entry = Table(_0=Num("b", min(code, 127)), _3=Num("i", code))
        self.codes.append(entry)
        self.operators.append(
            Table(
                _0=Num("I", len(self.codes) - 1),
                _1=np.array(inputs, np.int32),
                _2=np.array(outputs, np.int32),
                _3=None if options is None else Num("B", kind),
                _4=options,
                _5=None if custom is None else np.frombuffer(custom, np.uint8),
                _8=None if intermediates is None else np.array(intermediates, np.int32),
            )
        )

    def subgraph(self, inputs: list[int], outputs: list[int]) -> None:
        """Ends a subgraph; tensors and operators that follow belong to the next one."""
        self.graphs.append(
            Table(
                _0=self.tensors, _1=np.array(inputs, np.int32), _2=np.array(outputs, np.int32),
                _3=self.operators, _4="main",
            )
        )  # fmt: skip
        self.tensors, self.operators = [], []

    def bytes(self, inputs: list[int], outputs: list[int], version: int = 3) -> bytes:
        self.subgraph(inputs, outputs)
        return self.file(version)

    def file(self, version: int = 3) -> bytes:
        model = Table(
            _0=Num("I", version), _1=self.codes, _2=self.graphs, _3="tiny", _4=self.buffers,
            _6=self.metadata or None,
        )  # fmt: skip
        return flatbuffer(model, b"TFL3")


def conv_model(quantised: bool = False) -> bytes:
    """A SAME convolution with stride 2, bias and RELU6 on (1,5,5,2)."""
    rng = np.random.default_rng(0)
    m = TinyModel()
    if quantised:
        x = m.tensor("x", "int8", (1, 5, 5, 2), scale=0.05, zero=-3)
        w = m.tensor("w", "int8", (3, 3, 3, 2), rng.integers(-100, 100, (3, 3, 3, 2)),
                     scale=[0.01, 0.02, 0.03], axis=0)  # fmt: skip
        b = m.tensor("b", "int32", (3,), [100, -50, 20], scale=np.array([1, 2, 3]) * 0.0005, axis=3)
        y = m.tensor("y", "int8", (1, 3, 3, 3), scale=0.0235, zero=-128)
    else:
        x = m.tensor("x", "float32", (1, 5, 5, 2), signature=(-1, 5, 5, 2))
        w = m.tensor("w", "float32", (3, 3, 3, 2), rng.standard_normal((3, 3, 3, 2)))
        b = m.tensor("b", "float32", (3,), [1, 2, 3])
        y = m.tensor("y", "float32", (1, 3, 3, 3))
    m.op(3, [x, w, b], [y], Table(_1=Num("i", 2), _2=Num("i", 2), _3=Num("b", 3)))
    return m.bytes([x], [y])


def detection_model(regular: bool) -> bytes:
    options = {"max_detections": 3, "max_classes_per_detection": 1, "num_classes": 2,
               "nms_score_threshold": 0.1, "nms_iou_threshold": 0.5, "y_scale": 10.0,
               "x_scale": 10.0, "h_scale": 5.0, "w_scale": 5.0,
               "use_regular_nms": regular}  # fmt: skip
    m = TinyModel()
    boxes = m.tensor("boxes", "float32", (1, 4, 4))
    scores = m.tensor("scores", "float32", (1, 4, 3))
    centres = [[0.5, 0.5, 1, 1], [0.5, 0.55, 1, 1], [2, 2, 1, 1], [5, 5, 1, 1]]
    anchors = m.tensor("anchors", "float32", (4, 4), centres)
    outs = [m.tensor(n, "float32", ()) for n in ("b", "c", "s", "n")]
    m.op("TFLite_Detection_PostProcess", [boxes, scores, anchors], outs,
         custom=flexbuffer_map(options))  # fmt: skip
    return m.bytes([boxes, scores], outs)


def metadata_model(labels: bytes, *, damage: bool = False) -> bytes:
    m = TinyModel()
    x = m.tensor("x", "float32", (1, 4, 6, 3))
    y = m.tensor("y", "float32", (1, 4, 6, 3))
    m.op(19, [x], [y])
    image = Table(_0=Num("b", 1), _1=Table(_0=Num("I", 6), _1=Num("I", 4)))
    normal = Table(_0=np.array([127.5], np.float32), _1=np.array([128.0], np.float32))
    entry = Table(_3=Table(_0=Num("B", 2), _1=image), _4=[Table(_0=Num("B", 1), _1=normal)])
    result = Table(_6=[Table(_0="labels.txt", _2=Num("b", 2))])
    meta = flatbuffer(Table(_0="tiny classifier", _3=[Table(_2=[entry], _3=[result])]), b"M001")
    m.metadata.append(Table(_0="TFLITE_METADATA", _1=Num("I", m.buffer(meta))))
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("labels.txt", labels)
    data = archive.getvalue()
    return m.bytes([x], [y]) + (data[:30] + b"\xff" * 8 + data[38:] if damage else data)
