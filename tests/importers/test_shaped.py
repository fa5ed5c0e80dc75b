"""Constants whose dimensions no array can have, though a zero among them leaves no element."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError
from lite_engine.importers import _shaped
from lite_engine.importers.naive_buffer import tlv
from lite_engine.ir import DType

HUGE = (1 << 62, 0, 1 << 62)
pytestmark = pytest.mark.cpu


def test_a_view() -> None:
    array = np.arange(6)
    made = _shaped.shaped(array, [2, 3])
    assert made.shape == (2, 3) and np.shares_memory(made, array)


@pytest.mark.parametrize("dims", [HUGE, (0,) * 65, (2,)], ids=["large", "many", "misfit"])
def test_refused(dims: tuple[int, ...]) -> None:
    with pytest.raises(ModelFormatError, match="w: 0 elements do not fill dimensions"):
        _shaped.shaped(np.empty(0), dims, "w")


def test_a_parameter_of_naive_buffer() -> None:
    with pytest.raises(ModelFormatError, match="w: 0 elements"):
        tlv.array_of("w", DType.F32, HUGE, memoryview(b""))
