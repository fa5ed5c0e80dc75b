"""Refused memory: whichever allocation fails, loading ends with an error, for every kernel."""

from functools import lru_cache

import pytest
from lite_engine.backends.cpu import native
from lite_engine.errors import BackendUnavailableError, ModelFormatError

from ..cases import plans
from ..tiny import load

pytestmark = pytest.mark.cpu
MOST = 200


def kernels():
    try:
        return sorted(native.kernel_names())
    except BackendUnavailableError:
        return []


@lru_cache(maxsize=1)
def largest():
    """Per kernel the largest of its cases: those take every kind of memory that a kernel takes."""
    found = {}
    for plan in plans():
        kernel = plan.steps[0].kernel
        size = sum(t.nbytes for t in plan.tensors)
        if kernel not in found or size > found[kernel][0]:
            found[kernel] = size, plan
    return {kernel: plan for kernel, (_, plan) in found.items()}


@pytest.mark.parametrize("kernel", kernels())
def test_every_allocation_may_fail(kernel):
    plan = largest()[kernel]
    for n in range(1, MOST):
        try:
            load(plan, fail_allocation=n)
        except ModelFormatError as error:
            assert "out of memory" in str(error), error
        else:
            assert n > 3
            return
    raise AssertionError(f"more than {MOST} allocations for one step")
