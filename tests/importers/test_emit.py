"""Constants that translations ask for."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError
from lite_engine.importers._emit import Emitter
from lite_engine.ir import Graph

pytestmark = pytest.mark.cpu


def test_one_integer() -> None:
    emit = Emitter(Graph("g"))
    for shape in ((), (1,), (1, 1)):
        assert emit.integer(emit.const(np.full(shape, -2)), "the axis") == -2
    for size in (0, 2):
        with pytest.raises(ModelFormatError, match=f"the axis has {size} numbers, expected one"):
            emit.integer(emit.const(np.zeros(size, np.int64)), "the axis")
    with pytest.raises(ModelFormatError, match="not integers"):
        emit.integer(emit.const(np.float32([1])), "the axis")
