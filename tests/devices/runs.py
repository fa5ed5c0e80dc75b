"""A small model on a device, held against the reference."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import Predictor

from tests.small_models import image

pytestmark = pytest.mark.cpu


def same_as_reference(model, device) -> None:
    feeds = image(model.graph)
    want = Predictor(model, "reference").run(feeds)
    got = Predictor(model, device=device, threads=2).run(feeds, taps=["skip"])
    np.testing.assert_allclose(got["prob"], want["prob"], atol=1e-5)
    assert got["skip"].shape == (1, 16, 10, 10)
