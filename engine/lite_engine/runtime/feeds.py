"""The inputs of a run: of the right type, rank and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError

if TYPE_CHECKING:  # a stored program runs without these
    from ..ir import Value


def checked_feeds(inputs: Sequence[Value], feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """An array of the right type and rank for each input, by name. Raises ShapeError for a missing,
    unknown or misfitting one."""
    check_names(inputs, feeds)
    return {v.name: checked(v, feeds) for v in inputs}


def check_names(inputs: Sequence[Value], feeds: Mapping[str, Any]) -> None:
    """Raises ShapeError for a name that no input has."""
    unknown = sorted(feeds.keys() - {v.name for v in inputs}, key=str)
    if unknown:
        known = ", ".join(f"{v.name}: {v.type}" for v in inputs)
        raise ShapeError(
            tr("there is no input {unknown!r}", unknown=unknown[0]),
            fix=tr("inputs: {known}", known=known),
        )


def checked(value: Value, feeds: Mapping[str, Any]) -> np.ndarray:
    from ..ir import DType, fits, misfit

    if value.name not in feeds:
        raise ShapeError(tr("input {name} ({type}) is missing", name=value.name, type=value.type))
    array = np.asarray(feeds[value.name])
    wanted = value.type.dtype
    if array.dtype != wanted.np:
        if array.dtype == object or array.dtype.kind not in "biuf":
            raise ShapeError(
                tr(
                    "input {name} is {type}, got {dtype}",
                    name=value.name,
                    type=value.type,
                    dtype=array.dtype,
                )
            )
        if not np.can_cast(array.dtype, wanted.np, "same_kind") or not isinstance(
            feeds[value.name], (list, tuple, int, float)
        ):
            raise ShapeError(
                tr(
                    "input {name} is {type}, got {given}",
                    name=value.name,
                    type=value.type,
                    given=DType.of(array),
                ),
                fix=tr("convert it with .astype('{np}')", np=wanted.np),
            )
        array = array.astype(wanted.np)
    if value.shape is not None and not fits(value.shape, array.shape):
        raise misfit(value.name, value.type, array.shape)
    return array
