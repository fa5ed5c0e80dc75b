"""Sizes that are symbols: what is worked out of them is what the numbers would give."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ops._helpers import symbol_quotient, window_output

WINDOWS = [(3, 1, 2, 1), (3, 2, 2, 1), (1, 1, 0, 1), (5, 3, 1, 1), (3, 1, 4, 2), (2, 2, 0, 1)]


@pytest.mark.parametrize("name", ["H", "unk__617", "p2o.Dynamic.0", "height-1", "(a+1)//2"])
def test_windows_behind_each_other(name: str) -> None:
    """(kernel, stride, pads, dilation): the symbol, with a number for the name, is that number."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        chain = [WINDOWS[i] for i in rng.integers(0, len(WINDOWS), int(rng.integers(1, 6)))]
        size, symbol = 977, name
        for kernel, stride, pads, dilation in chain:
            size = window_output(size, kernel, stride, pads, dilation)
            symbol = window_output(symbol, kernel, stride, pads, dilation)
        values = {"H": 977, "unk__617": 977, "p2o.Dynamic.0": 977, "height": 978, "a": 1953}
        base = next(b for b in values if b in symbol)
        assert eval(symbol.replace(base, str(values[base]))) == size


def test_one_form() -> None:
    assert window_output("H", 3, 1, 2, 1) == "H"
    assert window_output("H", 3, 2, 2, 1) == window_output("H", 1, 2, 0, 1) == "(H+1)//2"
    assert window_output("H", 3, 2, 2, 1, ceil=True) is None  # the last window may be left out
    assert window_output(None, 3, 2, 2, 1) is None


def test_digits_do_not_pile_up() -> None:
    assert symbol_quotient("H//1099511627776", 0, 2) is None
