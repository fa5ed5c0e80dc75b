"""An image file that pipelines are run on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .pipes import png


@pytest.fixture(scope="session")
def photo(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("photo") / "photo.png"
    path.write_bytes(png(np.random.default_rng(2).integers(0, 256, (50, 70, 3), np.uint8)))
    return path
