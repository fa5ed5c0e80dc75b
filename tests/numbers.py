"""Random numbers of a test are its own: what ran before it in the process does not change them."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

#: A generator and its state when its module had been imported.
Begun = tuple[np.random.Generator, Mapping[str, Any]]


@lru_cache(1)
def generators() -> dict[str, list[Begun]]:
    """Module of tests, or of what they share → generators that it has as globals."""
    found: dict[str, list[Begun]] = {}
    for name, module in list(sys.modules.items()):
        if name.startswith("tests."):
            own = (x for x in vars(module).values() if isinstance(x, np.random.Generator))
            if states := [(x, x.bit_generator.state) for x in own]:
                found[name] = states
    return found


def begin_anew(module: str) -> None:
    shared = (name for name in generators() if not name.rpartition(".")[2].startswith("test_"))
    for name in (module, *shared):
        for generator, state in generators().get(name, ()):
            generator.bit_generator.state = state


def pytest_collection_finish() -> None:
    generators()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """For the fixtures of its module, where it is the first that needs them."""
    begin_anew(item.module.__name__)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _same_numbers(request: pytest.FixtureRequest) -> None:
    """As if the test ran alone."""
    begin_anew(request.module.__name__)
