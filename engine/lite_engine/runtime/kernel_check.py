"""LITE_CHECK=1: what checks the kernels in every run.

The check is a comparison (`compare/check.py`), and comparing stands above running: the package's
root registers it here, so that nothing below has to import it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

#: Called with a Predictor and the arrays of its inputs by name; raises for a kernel that is wrong.
Check = Callable[[Any, Mapping[str, Any]], None]
_registered: list[Check] = []


def register(check: Check) -> None:
    _registered.append(check)


def run_checks(predictor: Any, feeds: Mapping[str, Any]) -> None:
    for check in _registered:
        check(predictor, feeds)
