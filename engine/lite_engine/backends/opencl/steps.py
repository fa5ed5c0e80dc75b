"""Step → launches, by kernel name. Kernel names are those of `op.kernel("opencl", …)` in `ops/`."""

from __future__ import annotations

from lite_messages import tr

from ...errors import UnsupportedOperatorError
from ...ops import all_kernels
from ...plan import Plan, Step

# The modules register their builders when they are imported.
from . import (  # noqa: F401
    attention,
    block_products,
    convolutions,
    deconvolutions,
    elementwise,
    integer_convolutions,
    integer_elementwise,
    integer_pairs,
    movement,
    normalisations,
    recurrent,
    reductions,
    sampling,
    selection,
)
from .launch import Launch
from .per_element import has_kernel, per_element
from .registry import BUILDERS, Target, kernels_of_builders


def launches_of(step: Step, plan: Plan, target: Target) -> list[Launch]:
    """Raises UnsupportedOperatorError for a kernel that this backend does not have."""
    builder = BUILDERS.get(step.kernel)
    if builder is None and has_kernel(step.kernel):
        builder = per_element
    if builder is None:
        raise UnsupportedOperatorError(
            tr("no OpenCL kernel is called {kernel}", kernel=step.kernel),
            (step.name,),
            where=step.name,
        )
    return [x for x in builder(step, plan, target) if all(x.global_size)]


def kernels() -> frozenset[tuple[str, str]]:
    """(operator, kernel) pairs that launches can be made of."""
    own = {(k.op, k.name) for k in all_kernels("opencl") if k.name not in BUILDERS}
    return kernels_of_builders() | {pair for pair in own if has_kernel(pair[1])}


__all__ = ["kernels", "launches_of"]
