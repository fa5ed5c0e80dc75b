"""Random numbers of the kernel tests."""

import zlib

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def own_numbers(request):
    """A module's `rng` starts anew for every test: a test alone sees what it sees in a row."""
    if hasattr(request.module, "rng"):
        request.module.rng = np.random.default_rng(zlib.crc32(request.node.name.encode()))
