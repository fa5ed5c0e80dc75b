"""Advice about zeros in weights: those that nothing skips, and what pruning would gain.

What sparse kernels take is asked of their own conditions, not repeated here.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import numpy as np
from lite_messages import tr, trn

from ..ir import DType, TypeInfo
from ..ops import find_op
from ..ops._sparse import WORD
from ..plan.model import Step
from ..runtime.choice import host_target
from .advice_case import WORTH_SHARE, Advice, Case
from .record import LayerTime

#: Weights with fewer zeros were not pruned.
SOME_ZEROS = 0.5
#: What sparse kernels gain at 80 % zeros, as a part of the dense time (`benchmarks.sparse`).
SAVED = 0.5
#: Pruning is proposed where the layers that would gain take this share of the time.
PRUNABLE_SHARE = 0.5
#: How inputs that are weights are called.
_WEIGHTS = ("w", "b")


def dense_zeros(case: Case) -> Iterator[Advice]:
    """Layers with many zeros in their weights whose kernels multiply each of them, by reason."""
    found: dict[tuple[str, str, str], list[LayerTime]] = {}
    for row, step, weight in _weighted(case):
        if "sparse" not in row.kernel and _zeros(weight) >= SOME_ZEROS:
            found.setdefault(_why_dense(case, row, step, weight), []).append(row)
    for (why, advice, command), rows in found.items():
        yield Advice(
            "dense-zeros",
            [r.name for r in rows],
            tr(
                "at least half of the weights of {names} are 0, and every one is multiplied: {why}",
                names=_some(rows),
                why=why,
            ),
            advice,
            sum(r.median_ms for r in rows) * SAVED,
            command,
        )


def prunable(case: Case) -> Iterator[Advice]:
    """What zeros would gain where layers that can have sparse kernels take most of the time."""
    rows = [
        row
        for row, step, weight in _weighted(case)
        if row.backend == "cpu" and _zeros(weight) < SOME_ZEROS
        and _sparse_form(step, np.zeros_like(weight)) is True
    ]  # fmt: skip
    share = sum(r.share for r in rows)
    if share < PRUNABLE_SHARE:
        return
    yield Advice(
        "prunable",
        [r.name for r in rows],
        trn(
            "{n} layer that could skip zeros takes {share:.0f} % of the time ({names})",
            "{n} layers that could skip zeros take {share:.0f} % of the time ({names})",
            len(rows),
            share=100 * share,
            names=_some(rows),
        ),
        tr(
            "prune the model: with 80 % zeros, these layers take about half of their time. Most "
            "models keep their accuracy only if they are trained while they are pruned; the "
            "command measures time and accuracy"
        ),
        sum(r.median_ms for r in rows) * SAVED,
        _prune(case, "--sparsity 0.8"),
    )


def _weighted(case: Case) -> Iterator[tuple[LayerTime, Step, np.ndarray]]:
    """Products that matter, with their constant matrix or filters."""
    steps = {step.name: step for step in case.plan.steps}
    for row in case.profile.layers:
        step = steps.get(row.name)
        op = None if step is None else find_op(step.op)
        if step is None or op is None or not row.macs or row.share < WORTH_SHARE:
            continue
        for index, tensor in enumerate(step.inputs):
            data = case.plan.tensors[tensor].data if tensor >= 0 else None
            if data is not None and data.ndim >= 2 and op.input_name(index) in _WEIGHTS:
                yield row, step, data
                break


def _zeros(weight: np.ndarray) -> float:
    """Share of the elements that are 0 (of integers: weights have no zero point)."""
    return 1 - np.count_nonzero(weight) / weight.size if weight.size else 0.0


def _sparse_form(step: Step, weight: np.ndarray) -> bool | str:
    """Whether a step with this weight has a sparse kernel on CPUs, or why not."""
    node, op = step.node, find_op(step.op)
    refs = [k for k in op.kernels if "sparse" in k.name] if op is not None else []
    if node is None or op is None or not refs or refs[0].when is None:
        return tr("{op} has no sparse kernel", op=step.op)
    if DType.of(weight) not in refs[0].dtypes:
        return tr("sparse kernels do not take weights of {dtype}", dtype=DType.of(weight).value)
    types: list[TypeInfo | None] = [None if v is None else v.type for v in node.inputs]
    index = next(i for i in range(len(types)) if op.input_name(i) in _WEIGHTS)
    given = types[index]
    if given is None or given.dims != weight.shape:
        return tr("its size is not known")
    types[index] = TypeInfo(given.dtype, given.shape, weight)
    return refs[0].when(node, types)


def _why_dense(case: Case, row: LayerTime, step: Step, weight: np.ndarray) -> tuple[str, str, str]:
    """Why each weight is multiplied, what to do about it, and the command."""
    if row.backend != "cpu":
        why = tr("only CPUs have sparse kernels")
        return why, tr("measure it on the CPU"), case.profile_with("", host_target())
    form = _sparse_form(step, weight)
    if weight.dtype != np.float32 and case.made:
        parent = shlex.quote(shlex.split(case.made)[2])
        advice = tr(
            "prune the float32 model so that {word} inputs of an output share their zeros, then "
            "quantize it again",
            word=WORD,
        )
        options = f"--calibration photos/ --pattern {WORD}x1 --sparsity 0.8 -o tried.lite"
        why = form if isinstance(form, str) else tr("too few of them lie together to pay")
        return why, advice, f"lite prune {parent} {options}"
    if _sparse_form(step, np.zeros_like(weight)) is True:
        why = form if isinstance(form, str) else tr("another kernel was chosen for it")
        return why, tr("prune further"), _prune(case, "--sparsity 0.8")
    why = form if isinstance(form, str) else ""
    advice = tr("remove channels instead, which makes every kernel faster")
    return why, advice, _prune(case, "--channels 0.2")


def _prune(case: Case, options: str) -> str:
    return case.verb("prune", f"--calibration photos/ {options} -o tried.lite")


def _some(rows: list[LayerTime]) -> str:
    more = len(rows) - 3
    told = ", ".join(r.name for r in rows[:3])
    return told + (tr(" and {count} more", count=more) if more > 0 else "")
