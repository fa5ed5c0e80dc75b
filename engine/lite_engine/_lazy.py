"""Names of a package that are imported when they are first used (PEP 562).

    __getattr__ = lazily(__name__, {"make_plan": "make"})

A `.lite` file runs without the operators, the planner and the importers; with every package
importing all of itself, starting would take three times as long.
Records on that way are named tuples or plain classes: making a dataclass takes three times as long
as a named tuple and forty times as long as a class.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def lazily(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for `package`: name → attribute of its submodule `modules[name]`."""

    def load(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(importlib.import_module(f"{package}.{modules[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return load
