"""Parameter files: dense tensor records, one per file or concatenated in sorted name order.

A record: u32 0 · u64 levels · per level u64 size, offsets · u32 0 · i32 size, TensorDesc · data.
It has no name and no length: the program says which tensors follow. Source: Paddle
dense_tensor_serialize.cc.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from lite_messages import tr

from ...errors import ModelFormatError
from ...files import inside, is_file
from ...ir import DType
from ...mapped import aligned, map_file
from .._protobuf import Buffer, Message
from .._shaped import shaped
from .program_desc import tensor_desc

MAX_LEVELS = 16


def read_record(data: Buffer, at: int, where: str) -> tuple[np.ndarray, int]:
    """The tensor at `at`, as a view of the file → (array, next position)."""

    def take(fmt: str) -> int:
        nonlocal at
        size = struct.calcsize(fmt)
        if at + size > len(data):
            raise ModelFormatError(tr("the parameter file ends inside this tensor"), where=where)
        (value,) = struct.unpack_from(fmt, data, at)
        at += size
        return int(value)

    if take("<I") != 0:
        raise ModelFormatError(tr("not a tensor record (version is not 0)"), where=where)
    levels = take("<Q")
    if levels > MAX_LEVELS:
        raise ModelFormatError(
            tr("{levels} levels of detail are more than any tensor has", levels=levels), where=where
        )
    for _ in range(levels):
        size = take("<Q")
        at += size
    if take("<I") != 0:
        raise ModelFormatError(tr("not a tensor record (tensor version is not 0)"), where=where)
    size = take("<i")
    if not 0 < size <= len(data) - at:
        raise ModelFormatError(
            tr("the tensor description has {size} bytes, which does not fit the file", size=size),
            where=where,
        )
    dtype, dims = tensor_desc(Message(data[at : at + size]), where)
    at += size
    if any(d < 0 for d in dims):
        raise ModelFormatError(
            tr("the stored tensor has shape {dims}, which is not valid", dims=dims), where=where
        )
    nbytes = math.prod(dims) * dtype.itemsize
    if nbytes > len(data) - at:
        raise ModelFormatError(
            tr(
                "the tensor has {nbytes} bytes, but only {count} are left in the file",
                nbytes=nbytes,
                count=len(data) - at,
            ),
            where=where,
        )
    flat = np.frombuffer(data[at : at + nbytes], dtype.np.newbyteorder("<"))
    array = shaped(_widen(flat) if dtype is DType.BF16 else aligned(flat), dims, where)
    return array, at + nbytes


def _widen(bits: np.ndarray) -> np.ndarray:
    """bfloat16 bits → float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def read_combined(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """One file, records in the order of `names`. Raises ModelFormatError when bytes are left."""
    data = map_file(path)
    at, out = 0, {}
    for name in names:
        out[name], at = read_record(data, at, f"{path.name}: {name}")
    if at != len(data):
        raise ModelFormatError(
            tr(
                "{bytes} bytes remain after the {tensors} tensors of the program",
                bytes=len(data) - at,
                tensors=len(names),
            ),
            where=path,
            fix=tr("name the parameter file that belongs to this model with --params"),
        )
    return out


def read_separate(folder: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """One file per tensor, named like it, beside the program."""
    out = {}
    for name in names:
        path = inside(folder, name)
        if not is_file(path):
            raise ModelFormatError(
                tr(
                    "neither a .pdiparams file beside the program nor a file per "
                    "parameter ({name!r} is missing)",
                    name=name,
                ),
                where=folder.resolve().name,
                fix=tr("name it with --params"),
            )
        # read, not mapped: a model may have more of these files than a process may hold open
        out[name], _ = read_record(memoryview(path.read_bytes()), 0, name)
    return out
