"""Kernels without PoCL's optimizer, which takes longer than anything else where each of hundreds of
kernels is compiled for a few numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

DISABLED = "-cl-opt-disable"


@pytest.fixture(scope="module")
def unoptimized(request: pytest.FixtureRequest) -> Iterator[None]:
    """In `make test`, for modules that test kernels one by one. Networks elsewhere in it run with
    the optimizer, and so do these modules with `-m`: `make test-opencl`, `make test-long`."""
    from lite_engine.backends.opencl import profile

    options = request.config.option
    if options.markexpr or not (options.all and _pocl()):
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(profile, "BUILD_OPTIONS", (*profile.BUILD_OPTIONS, DISABLED))
        _forget_programs()
        yield
    _forget_programs()


def _pocl() -> bool:
    from lite_engine.backends.opencl.device import choose
    from lite_engine.errors import BackendUnavailableError

    try:
        return choose().platform == "Portable Computing Language"
    except BackendUnavailableError:  # nothing is compiled
        return False


def _forget_programs() -> None:
    """What was built in this process before."""
    from lite_engine.backends.opencl.device import open_device

    from tests.opencl.tiny import device

    open_device.cache_clear()
    device.cache_clear()
