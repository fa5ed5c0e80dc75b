"""1x1 convolutions with many zeros as Paddle-Lite's sparse_conv2d, which its ARM kernels run.

NonZeroWeights  what is not 0, output by output, each output's filled up with zeros to whole fours
OcNonZeros      where each output's weights end
Diffs           bytes from one input's plane to the next: every plane has `pixels` elements, so the
                file is for inputs of that size. Where an output ends: from the plane of `first_ic`
                to the first one of the next output that has weights

Where two neighboring outputs mostly share their zeros (`flag_semi`), both share one list, the
values alternate, and nothing is filled up. Source: what opt 2.13 writes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from lite_messages import tr

from ...importers.paddle.program import Op, Program, Var
from ...ir import DType

#: opt's default of `--sparse_threshold`: the share of zeros from which a layer becomes sparse.
THRESHOLD = 0.6
#: Two outputs share a list where this share of what it holds is not 0.
_SHARED = 0.9
_FOUR = 4
_ITEM = 4  # bytes of a float


@dataclass(frozen=True)
class Encoded:
    """The three tensors and two attributes of a sparse_conv2d."""

    values: np.ndarray
    ends: np.ndarray
    diffs: np.ndarray
    first: int
    paired: bool


@dataclass
class SparseLayers:
    """What `--sparse_model` asks for, and by name of the weight what came of it: layers that are
    stored sparse, and why others with enough zeros are not."""

    threshold: float = THRESHOLD
    done: list[str] = field(default_factory=list)
    dense: dict[str, str] = field(default_factory=dict)


def share_of_zeros(weight: np.ndarray) -> float:
    """As opt counts them: in pairs of outputs, what one of them needs is not 0 of the other."""
    rows = weight.reshape(len(weight), -1)
    return 1 - sum(len(at) * width for _, at, width in _lists(rows)) / rows.size


def encode(weight: np.ndarray, pixels: int) -> Encoded | None:
    """A weight (outputs, inputs, 1, 1) for maps of `pixels`; None when it has nothing but zeros."""
    rows = weight.reshape(len(weight), -1)
    lists = _lists(rows)
    first = next((int(at[0]) for _, at, _ in lists if len(at)), None)
    if first is None:
        return None
    paired = lists[0][2] == 2
    step = 1 if paired else _FOUR
    ends, starts, filled = np.zeros(len(rows), np.int32), [], 0
    for number, (_, at, _) in enumerate(lists):
        starts.append(filled)
        ends[number] = filled + len(at)
        filled += -(-len(at) // step) * step
    diffs = np.zeros(filled, np.int64)
    values: list[np.ndarray] = []
    following = first
    for number in reversed(range(len(lists))):
        (row, at, width), end = lists[number], ends[number]
        diffs[starts[number] : end] = np.diff(at, append=0)
        if end:
            diffs[end - 1] = following - first
        following = int(at[0]) if len(at) else following
        padding = np.zeros(-len(at) % step, np.float32)
        values.insert(0, np.append(rows[row : row + width, at].T.ravel(), padding))
    diffs *= _ITEM * pixels
    return Encoded(np.concatenate(values).astype(np.float32), ends, diffs.astype(np.int32), first,
                   paired)  # fmt: skip


def _lists(rows: np.ndarray) -> list[tuple[int, np.ndarray, int]]:
    """First output, inputs that are not 0, and how many outputs share them."""
    even = len(rows) // 2 * 2
    used = rows != 0
    either = used[:even:2] | used[1:even:2]
    if np.count_nonzero(used[:even]) < 2 * _SHARED * np.count_nonzero(either):
        return [(i, np.flatnonzero(row), 1) for i, row in enumerate(used)]
    pairs = [(2 * i, np.flatnonzero(row), 2) for i, row in enumerate(either)]
    return pairs + [(i, np.flatnonzero(used[i]), 1) for i in range(even, len(rows))]


def sparse_convolutions(program: Program, targets: Sequence[str], found: SparseLayers) -> None:
    """Rewrites the convolutions that Paddle-Lite has a sparse form of, and fills `found`."""
    block = program.blocks[0]
    readers: dict[str, int] = {}
    for op in block.ops:
        for name in (n for names in op.inputs.values() for n in names):
            readers[name] = readers.get(name, 0) + 1
    for index, op in enumerate(block.ops):
        name = (op.inputs.get("Filter") or [""])[0]
        weight = program.params.get(name)
        if op.type != "conv2d" or weight is None or weight.dtype != np.float32:
            continue
        if 1 - np.count_nonzero(weight) / weight.size < found.threshold:
            continue
        if set(targets) != {"arm"}:
            why = tr("Paddle-Lite has sparse kernels for the target arm alone")
        else:
            why = _why_dense(program, op, weight, readers[name], found.threshold)
        if why:
            found.dense[name] = why
        else:
            block.ops[index] = _sparse(program, op, name, weight)
            found.done.append(name)


def _why_dense(program: Program, op: Op, weight: np.ndarray, readers: int, threshold: float) -> str:
    attrs = op.attrs
    if weight.shape[2:] != (1, 1) or attrs["groups"] != 1:
        return tr("only 1x1 convolutions of one group have a sparse form")
    if any(attrs["paddings"]) or set(attrs["strides"]) != {1}:
        return tr("its stride is not 1, or its input is padded")
    if readers > 1:
        return tr("another layer reads its weight, too")
    if _pixels(program, op) is None:
        return tr("the size of its input is not fixed; give input shapes")
    if not weight.any():
        return tr("it has no weight that is not 0")
    if share_of_zeros(weight) < threshold:
        return tr("pairs of its outputs share too few zeros")
    return ""


def _pixels(program: Program, op: Op) -> int | None:
    """Of the maps that a convolution reads, None where an input of the model may have any size."""
    block = program.blocks[0]
    given = [block.vars[n].shape or () for o in block.ops if o.type == "feed"
             for n in o.outputs["Out"]]  # fmt: skip
    shape = block.vars[op.inputs["Input"][0]].shape or ()
    if len(shape) != 4 or any(-1 in dims[1:] for dims in given):
        return None
    return int(shape[2] * shape[3])


def _sparse(program: Program, op: Op, name: str, weight: np.ndarray) -> Op:
    pixels = _pixels(program, op)
    encoded = None if pixels is None else encode(weight, pixels)
    assert encoded is not None
    block = program.blocks[0]
    inputs = {slot: names for slot, names in op.inputs.items() if slot != "Filter"}
    tensors = (
        ("NonZeroWeights", "nonzeros_output", encoded.values),
        ("OcNonZeros", "oc_nonzeros", encoded.ends),
        ("Diffs", "ic_diffs", encoded.diffs),
    )
    for slot, suffix, array in tensors:
        own = f"{name}_{suffix}"
        program.params[own] = array
        block.vars[own] = Var(own, dtype=DType.of(array), shape=array.shape, persistable=True)
        inputs[slot] = [own]
    del program.params[name], block.vars[name]
    attrs = {**op.attrs, "first_ic": encoded.first, "flag_semi": int(encoded.paired)}
    return Op("sparse_conv2d", inputs, op.outputs, attrs)
