"""Plain values of a preprocessing, read into its fields."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

from lite_messages import tr

from .errors import UsageError


def not_valid(name: str, value: Any, wanted: str) -> UsageError:
    return UsageError(
        tr(
            "preprocessing: {name} {value} is not {wanted}",
            name=name,
            value=reprlib.repr(value),
            wanted=wanted,
        )
    )


def _numbers(value: Any) -> tuple[float, ...]:
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    return tuple(float(v) for v in (value if listed else [value]))


def _whole(value: Any) -> int:
    """Raises ValueError for 1.5, as int("1.5") does."""
    number = int(value)
    if isinstance(value, float) and number != value:
        raise ValueError
    return number


def _size(value: Any) -> tuple[int, int]:
    height, width = value
    return _whole(height), _whole(width)


def _same(value: Any) -> Any:
    return value


#: key → (how a plain value becomes the field, what it should be)
READ: dict[str, tuple[Any, str]] = {
    "mean": (_numbers, tr("a number or a list of numbers")),
    "std": (_numbers, tr("a number or a list of numbers")),
    "colour": (_same, ""),
    "layout": (_same, ""),
    "size": (_size, tr("height and width, like 240x320")),
    "fit": (_same, ""),
    "crop": (float, tr("a share, like 224/256")),
    "pad": (_whole, tr("a pixel of 0 to 255")),
}
