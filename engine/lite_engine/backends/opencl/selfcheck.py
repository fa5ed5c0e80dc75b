"""One step's numbers on a device against its operator's NumPy reference, on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...ir import DType
from ...ops import get_op
from ...plan import Plan, Step
from ..reference import run_step

#: Relative L2 error of results that are kept in half precision, sums of which cancel.
_HALF_TOLERANCE = 2e-2
#: Differences that say nothing, however small the numbers are.
_FLOOR = {DType.F32: 1e-6, DType.F16: 1e-3}


def disagreement(
    step: Step, plan: Plan, given: Mapping[int, np.ndarray], made: Mapping[int, np.ndarray]
) -> str:
    """How a step's outputs differ from the reference's; empty when they agree. `given` and `made`
    map tensors to arrays in physical order."""
    wide = {i: a.astype(np.float32) if a.dtype == np.float16 else a for i, a in given.items()}
    with np.errstate(all="ignore"):
        exact = run_step(plan, step, wide)
    own = get_op(step.op, step.name).tolerance if step.node is not None else 0.0
    for index, logical in zip(step.outputs, exact, strict=False):
        if index < 0:
            continue
        tensor = plan.tensors[index]
        half = tensor.dtype is DType.F16
        wanted = np.asarray(logical) if step.node is None else tensor.to_physical(logical)
        said = differs(made[index], wanted, max(own, _HALF_TOLERANCE) if half else own)
        if said:
            return said
    return ""


def differs(found: np.ndarray, exact: np.ndarray, tolerance: float) -> str:
    """How an array differs from the exact one by more than a relative L2 error, or in which numbers
    are finite; integers differ when any of them does."""
    x, y = found.ravel(), exact.ravel()
    if x.dtype.kind != "f":
        other = int(np.count_nonzero(x != y))
        return f"{other} of {x.size} values" if other else ""
    floor = _FLOOR.get(DType.of(found), 0.0)
    x, y = x.astype(np.float64), y.astype(np.float64)
    finite = np.isfinite(y)
    same = np.isfinite(x) == finite
    if not same.all() or not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return "NaN or infinity where the reference has none, or none where it has"
    error, norm = np.linalg.norm(x[finite] - y[finite]), np.linalg.norm(y[finite])
    if error <= tolerance * norm + floor * x.size**0.5:
        return ""
    return f"relative error {error / norm:.1e}" if norm else f"{error:.1e} instead of 0"
