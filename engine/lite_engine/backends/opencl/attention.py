"""Launches of attention: on matrix units, in tiles of local memory, or a row for each work-item."""

from __future__ import annotations

import math

from ...ir import DType
from ...plan import Plan, PlanTensor, Step
from .constants import Constant
from .launch import Launch, Scratch, place
from .options import join, storage_option, vector, vectors
from .registry import Target, builds

_MATRIX, _TILE, _ROWS = "matrix units", "tile", "rows"
#: Widest head on matrix units, and numbers of 16 bytes.
_WIDEST, _UNIT = {DType.F16: 128, DType.F32: 64}, {DType.F16: 8, DType.F32: 4}
#: What its width is rounded up to.
_STEP = 32
#: Columns and rows of a work-group's tile (kernels/attention_tile.cl), and its items.
_COLUMNS, _TILE_ROWS, _ITEMS = 64, 16, 128
#: Rows of a group on matrix units, and groups of a unit that need no second part of the keys.
_MATRIX_ROWS, _ENOUGH = (64, 32), 4


@builds("attention", "Attention")
def attention(step: Step, plan: Plan, target: Target) -> list[Launch]:
    q, k, v = (plan.tensors[i] for i in step.inputs[:3])
    given = step.inputs[3] if len(step.inputs) > 3 else -1
    mask = plan.tensors[given] if given >= 0 else None
    y = plan.tensors[step.outputs[0]]
    batch, heads, rows, size = _heads(q, step.attrs.get("q_num_heads"))
    _, shared, keys, _ = _heads(k, step.attrs.get("kv_num_heads"))
    v_size = _heads(v, step.attrs.get("kv_num_heads"))[3]
    sizes = (rows, keys, heads, heads // shared, size, v_size)
    lie = [n for tensor in (q, k, v) for n in place(tensor, tensor.dims[-1])]
    numbers = [
        *sizes, *_strides(mask, rows, keys), *lie, int(bool(step.attrs.get("is_causal"))),
        float(step.attrs.get("scale") or 1 / math.sqrt(size)),
        float(step.attrs.get("softcap") or 0),
    ]  # fmt: skip
    text = join(
        storage_option(y.dtype), "#define PACKED" if len(q.dims) == 3 else "",
        "#define MASK" if mask is not None else "",
    )  # fmt: skip
    bias: PlanTensor | Constant = mask or q  # q where none is read
    if mask is not None and mask.data is not None:
        bias = Constant.floats(mask.data).cast(y.dtype)
    operands = [q, k, v, bias, y]
    profile = target.profile
    ways = [_TILE, _ROWS] if profile.local_tiles else [_ROWS]
    wide = max(size, v_size)
    whole = all(n % _UNIT[y.dtype] == 0 for n in (size, v_size, *lie))
    if profile.matrix_units and whole and wide <= _WIDEST[y.dtype]:
        ways = [_MATRIX, *ways]
    named = "_".join(map(str, (batch, *sizes)))
    way = target.pick(f"attention_{y.dtype.value}_{named}", ways)
    if way == _ROWS:
        lanes = vector(profile, y.dtype, math.gcd(size, v_size, *lie))
        block = next(n for n in (4, 2, 1) if v_size % (n * lanes) == 0)
        fma = "#define FAST_FMA" if profile.fast_fma else ""
        options = join(text, vectors(profile, lanes), f"#define BLOCK {block}", fma)
        scores = Scratch(batch * heads * rows * keys * 4)
        args = [*operands, scores, *numbers]
        return [Launch("attention", "attention", args, (rows, heads, batch), options)]
    items, name = _ITEMS, "attention_tile"
    if way == _MATRIX:
        high, parts = matrix_tile(rows, heads * batch, profile.compute_units)
        items, name = high * parts * 2, "attention_mma"
        grid = (-(-rows // high) * items, heads, batch)
        cap = "#define CAP" if step.attrs.get("softcap") else ""
        size_of = f"#define D {-(-wide // _STEP) * _STEP}\n#define ROWS {high}"
        text = join(text, cap, size_of, f"#define SPLITS {parts}")
    else:
        grid = (-(-rows // _TILE_ROWS) * _ITEMS, heads, batch * -(-v_size // _COLUMNS))
    return [Launch(name, name, [*operands, *numbers], grid, text, (items, 1, 1))]


def matrix_tile(rows: int, planes: int, units: int) -> tuple[int, int]:
    """Rows of a group on matrix units, and parts of the keys that its warps share. The rows are
    those with which the busiest unit has least to do. One warp for each 16 rows would wait for each
    of its products, so where a unit has few groups, two warps take half of the keys each."""

    def most(high: int) -> int:
        groups = -(-rows // high) * planes
        return -(-groups // units)

    high = min(_MATRIX_ROWS, key=lambda high: most(high) * high)
    return high, 1 if most(high) > _ENOUGH else 2


def _heads(tensor: PlanTensor, heads: int | None) -> tuple[int, int, int, int]:
    """(batch, heads, length, size)"""
    if len(tensor.dims) == 4:
        return tensor.dims  # type: ignore[return-value]
    batch, length, width = tensor.dims
    return batch, heads or 1, length, width // (heads or 1)


def _strides(mask: PlanTensor | None, rows: int, keys: int) -> list[int]:
    """Of batch, head and row, 0 where all see the same."""
    if mask is None:
        return [0, 0, 0]
    dims = (1,) * (4 - len(mask.dims)) + tuple(mask.dims)
    whole = [dims[1] * dims[2] * keys, dims[2] * keys, keys]
    return [0 if n == 1 else stride for n, stride in zip(dims, whole)]
