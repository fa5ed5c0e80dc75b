"""JSON that every reader takes: numbers that JSON does not have become null."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any


def dumps(data: Any, **options: Any) -> str:
    """`json.dumps`; not-a-number and infinity become null (RFC 8259, section 6)."""
    try:
        return json.dumps(data, allow_nan=False, **options)
    except (TypeError, ValueError):  # such a number, or a mapping that is no dict
        return json.dumps(_finite(data), allow_nan=False, **options)


def _finite(data: Any) -> Any:
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, Mapping):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return data
