"""The backends that a test of an operator takes `backend` from."""

import pytest

ON_EACH_BACKEND = pytest.mark.parametrize(
    "backend",
    [
        "reference",
        pytest.param("x86", marks=pytest.mark.cpu),
        pytest.param("opencl", marks=pytest.mark.opencl),
    ],
)
