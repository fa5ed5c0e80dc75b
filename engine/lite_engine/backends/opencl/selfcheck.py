"""One step's numbers on a device against its operator's NumPy reference, on the same inputs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ...ir import DType
from ...ops import differs, get_op
from ...plan import Plan, Step
from ..reference import run_step

#: Relative L2 error of results that are kept in half precision, sums of which cancel.
_HALF_TOLERANCE = 2e-2


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
