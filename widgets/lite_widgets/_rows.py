"""Complete layer rows: the block each belongs to and the type it is counted under.

Both are needed by the live view and by the static picture, so they are worked out once, here.
A row may bring its own ``block`` or ``type``; then that is kept.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from lite_messages import tr

_FAMILIES = (
    (r"copy|cast|io_copy", "Copy"),
    (r"depthwise|dwconv", "Depthwise conv"),
    (r"deconv|transposeconv|convtranspose", "Transposed conv"),
    (r"conv", "Conv"),
    (r"quantize(linear)?$|calib", "Quantize"),
    (r"matmul|gemm|fullyconnected|^fc$|linear|^mul_fc$|einsum", "MatMul"),
    (r"pool|reduce", "Pool"),
    (r"norm|lrn", "Norm"),
    (r"lstm|gru|rnn|scan|loop", "Recurrent"),
    (
        r"reshape|transpose|concat|split|slice|squeeze|flatten|gather|pad|tile|expand|shuffle"
        r"|resize|upsample|interp|layout|shape|stack|space|depth",
        "Layout",
    ),
    (
        r"relu|sigmoid|swish|tanh|softmax|gelu|elu|activation|clip|softplus|mish|lookup",
        "Activation",
    ),
    (r"detect|box|nms|prior|yolo|roi|topk|argmax|nonmax", "Detection"),
    (
        r"add|sub|mul|div|pow|sqrt|exp|log|max|min|abs|neg|elementwise|scale|sum|where|equal",
        "Elementwise",
    ),
)
_CHUNK = 12


@functools.cache
def _family(op: str) -> str:
    plain = op.lower().removeprefix("qlinear")  # ONNX's integer twin of an operator
    return next((name for pattern, name in _FAMILIES if re.search(pattern, plain)), op)


def family(op: str, kernel: str = "", shapes: Sequence[Sequence[int | None] | None] = ()) -> str:
    """Return the type that an operator is counted under: "Conv 1×1", "MatMul", … or its name.

    `shapes` are those of its inputs: a convolution's data, then its weights (O, I/groups, k…), with
    scales between them when they are integers. Without them the kernel's name has to say it.
    """
    found = _family(op)
    if found != "Conv":
        return found
    weights = next((list(s) for s in shapes[1:] if s and len(s) >= 3), None)
    if weights is None:
        depthwise = bool(re.search(r"depthwise|(^|_)dw\d?", kernel.lower()))
        pointwise = bool(re.search(r"1x1|pointwise", kernel.lower()))
    else:
        channels = next(iter((shapes[0] or ())[1:2]), None)
        depthwise = weights[1] == 1 and weights[0] != 1 and channels != 1
        pointwise = all(size == 1 for size in weights[2:])
    return "Depthwise conv" if depthwise else "Conv 1×1" if pointwise else "Conv"


def _family_of(row: dict[str, Any], op: str) -> str:
    return family(op, str(row.get("kernel") or ""), row.get("input_shapes") or ())


def complete(rows: Any, where: str) -> list[dict[str, Any]]:
    """Return `rows` with `name`, `op`, `index`, `type` and `block` in each. Raises TraitError."""
    import traitlets as t

    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise t.TraitError(tr("{where} must be a list of dicts, one per layer", where=where))
    done = []
    for i, row in enumerate(rows):
        if not isinstance(row.get("name"), str):
            raise t.TraitError(tr("{where}[{i}] has no name", where=where, i=i))
        op = str(row.get("op", ""))
        copy = bool(row.get("copy")) or family(op) == "Copy"
        kind = "Copy" if copy else row.get("type") or _family_of(row, op)
        done.append({**row, "op": op, "index": row.get("index", i), "type": kind})
    names = [row["name"] for row in done]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise t.TraitError(
            tr(
                "{where}: two layers are called {name!r}; names must differ",
                where=where,
                name=twice,
            )
        )
    for row, block in zip(done, blocks(done), strict=True):
        row["block"] = block
    return done


def blocks(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Return one block name per row: its own, its name scope, or a stage of equal resolution.

    Name scopes are cut at the depth that gives a readable number of runs: about 1.6·sqrt(n).
    A copy belongs to the block of the layer after it.
    """
    real = [row for row in rows if row["type"] != "Copy"]
    if not real:
        return ["model"] * len(rows)
    named = _given(real) or _scopes([row["name"] for row in real]) or _stages(real)
    by_name = dict(zip((row["name"] for row in real), named, strict=True))
    out, following = [], named[-1]
    for row in reversed(rows):
        following = by_name.get(row["name"], following)
        out.append(following)
    return out[::-1]


def _given(rows: Sequence[dict[str, Any]]) -> list[str] | None:
    return [str(r["block"]) for r in rows] if all(r.get("block") for r in rows) else None


def _scopes(names: Sequence[str]) -> list[str] | None:
    """Cut names at "/" (or ".") so that runs of equal scope are neither one nor one per layer.

    A name without any scope, such as a converter's ``Conv__159``, joins the scope after it.
    """
    mark = "/" if sum("/" in name for name in names) * 2 > len(names) else "."
    parts = [name.strip(mark).split(mark) for name in names]
    if sum(len(part) > 1 for part in parts) * 2 < len(parts):
        return None
    best, wanted = None, max(2.0, 1.6 * len(names) ** 0.5)
    for depth in range(1, max(map(len, parts))):
        cut = _joined([mark.join(part[: min(depth, len(part) - 1)]) for part in parts])
        runs = 1 + sum(a != b for a, b in pairwise(cut))
        misfit = max(runs / wanted, wanted / runs)
        if best is None or misfit < best[0]:
            best = (misfit, runs, cut)
    if best is None or best[1] < 2 or best[1] > 0.7 * len(names):
        return None
    return _runs(best[2])


def _joined(scopes: list[str]) -> list[str]:
    """Give empty scopes that of the next one, at the end that of the last one."""
    following = next((scope for scope in reversed(scopes) if scope), "")
    out = []
    for scope in reversed(scopes):
        following = scope or following
        out.append(following)
    return out[::-1]


def _runs(cut: Sequence[str]) -> list[str]:
    """Make each contiguous run a block of its own: a scope that comes back gets a number."""
    seen: dict[str, int] = {}
    out: list[str] = []
    for i, name in enumerate(cut):
        if i and cut[i - 1] == name:
            out.append(out[-1])
            continue
        seen[name] = seen.get(name, 0) + 1
        out.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return out


def _stages(rows: Sequence[dict[str, Any]]) -> list[str]:
    """Cut where the height and width of the output change, and every dozen layers."""
    out: list[str] = []
    last, number, size = None, 0, 0
    for row in rows:
        shape = next(iter(row.get("output_shapes") or []), None)
        place = tuple(shape[2:]) if shape and len(shape) == 4 else last
        if number == 0 or (place != last and size >= 3) or size >= _CHUNK:
            number, size = number + 1, 0
        last, size = place, size + 1
        out.append(tr("part {number}", number=number))
    return out


def row_value(row: dict[str, Any], emulated: bool = False) -> float:
    """Return what a bar of this row measures: median ms, or M instructions under emulation."""
    value = row.get("instructions") if emulated else row.get("median_ms")
    return float(value or 0.0) / (1e6 if emulated else 1.0)
