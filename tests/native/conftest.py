"""Random numbers of the kernel tests, and the library that they test."""

import os
import zlib
from pathlib import Path

import numpy as np
import pytest
from lite_engine.backends.cpu import native

if "LITE_TEST_LIBRARY" in os.environ:  # test_sanitizers.py names a sanitized one
    native.library_path = lambda: Path(os.environ["LITE_TEST_LIBRARY"])


@pytest.fixture(autouse=True)
def own_numbers(request):
    """A module's `rng` starts anew for every test: a test alone sees what it sees in a row."""
    if hasattr(request.module, "rng"):
        request.module.rng = np.random.default_rng(zlib.crc32(request.node.name.encode()))
