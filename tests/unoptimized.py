"""Kernels without PoCL's optimizer, which takes longer than anything else where each of hundreds of
kernels is compiled for a few numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def unoptimized(request: pytest.FixtureRequest) -> Iterator[None]:
    """In `make test`, for modules that test kernels one by one. Networks elsewhere in it run with
    the optimizer, and so do these modules with `-m`: `make test-opencl`, `make test-long`."""
    options = request.config.option
    if not options.all or options.markexpr:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable")
        _forget_programs()
        yield
    _forget_programs()


def _forget_programs() -> None:
    """What was built in this process before: bits that are compared come from one compiler."""
    from lite_engine.backends.opencl.device import open_device

    from tests.opencl.tiny import device

    open_device.cache_clear()
    device.cache_clear()
