"""Small Caffe nets: weights written field by field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.importers.wire import field, message

INPUT = 'name: "net" input: "data" input_shape { dim: 1 dim: 2 dim: 5 dim: 5 }\n'


def blob(array: Any, *, old: bool = False) -> bytes:
    array = np.asarray(array, np.float32)
    if old:
        shape = (1,) * (4 - array.ndim) + array.shape
        return message(*zip((1, 2, 3, 4), shape), (5, array.tobytes()))
    return message((7, message(*((1, d) for d in array.shape))), (5, array.tobytes()))


def weights(**layers: Any) -> bytes:
    return b"".join(
        field(100, message((1, name), *((7, blob(b)) for b in blobs)))
        for name, blobs in layers.items()
    )


NET = (
    INPUT
    + """
    layer { name: "c" type: "Convolution" bottom: "data" top: "c" convolution_param {
      num_output: 3 kernel_size: 3 pad: 1 } }
    layer { name: "b" type: "BatchNorm" bottom: "c" top: "c" }
    layer { name: "p" type: "Pooling" bottom: "c" top: "p"
      pooling_param { kernel_size: 2 stride: 2 } }
    layer { name: "f" type: "InnerProduct" bottom: "p" top: "f"
      inner_product_param { num_output: 2 } }
"""
)


def save(folder: Path) -> Path:
    """Convolution, batch norm, pooling, inner product on (1,2,5,5)."""
    (folder / "net.prototxt").write_text(NET)
    (folder / "net.caffemodel").write_bytes(weights(
        c=[np.ones((3, 2, 3, 3)), np.ones(3)], b=[np.ones(3), np.ones(3), [1.0]],
        f=[np.ones((2, 27)), np.ones(2)],
    ))  # fmt: skip
    return folder / "net.prototxt"
