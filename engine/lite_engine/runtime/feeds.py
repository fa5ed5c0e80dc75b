"""The inputs of a run: of the right type, rank and size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError, reason_of

if TYPE_CHECKING:  # a stored program runs without these
    from ..ir import DType, Value

#: How Python gives numbers.
NUMBERS = (list, tuple, int, float)
#: Names that the package ml_dtypes gives to types that NumPy lacks, and ours.
_ML_DTYPES = {
    "bfloat16": "bf16", "float8_e4m3fn": "f8e4m3fn", "float8_e4m3fnuz": "f8e4m3fnuz",
    "float8_e5m2": "f8e5m2", "float8_e5m2fnuz": "f8e5m2fnuz", "float8_e8m0fnu": "f8e8m0",
    "float4_e2m1fn": "f4e2m1",
}  # fmt: skip


def checked_feeds(inputs: Sequence[Value], feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """An array of the right type and rank for each input, by name. Raises ShapeError for a missing,
    unknown or misfitting one."""
    check_names(inputs, feeds)
    for value in inputs:
        if value.name not in feeds:
            raise ShapeError(
                tr("input {name} ({type}) is missing", name=value.name, type=value.type),
                fix=tr("give every input: {known}", known=_known(inputs)),
            )
    return {v.name: checked(v, feeds) for v in inputs}


def check_names(inputs: Sequence[Value], feeds: Mapping[str, Any]) -> None:
    """Raises ShapeError for a name that no input has."""
    unknown = sorted(feeds.keys() - {v.name for v in inputs}, key=str)
    if unknown:
        raise ShapeError(
            tr("there is no input {unknown!r}", unknown=unknown[0]),
            fix=tr("inputs: {known}", known=_known(inputs)),
        )


def _known(inputs: Sequence[Value]) -> str:
    return ", ".join(f"{v.name}: {v.type}" for v in inputs)


def checked(value: Value, feeds: Mapping[str, Any]) -> np.ndarray:
    from ..ir import fits, misfit

    array = as_type(value, feeds[value.name])
    if value.shape is not None and not fits(value.shape, array.shape):
        raise misfit(value.name, value.type, array.shape)
    return array


def as_array(value: Value, given: Any) -> np.ndarray:
    """What was given for an input as NumPy reads it. Raises ShapeError."""
    try:
        return np.asarray(given)
    except Exception as error:  # noqa: BLE001  uneven lists, and what an own __array__ raises
        raise ShapeError(
            tr(
                "input {name} ({type}) cannot be read as an array ({reason})",
                name=value.name,
                type=value.type,
                reason=reason_of(error),
            )
        ) from None


def as_type(value: Value, given: Any) -> np.ndarray:
    """What was given in the input's type. NumPy's arrays must have it already, in any byte order;
    numbers of Python are converted where they fit. Raises ShapeError."""
    from ..ir import DType

    array = as_array(value, given)
    wanted = value.type.dtype
    if array.dtype == wanted.np:
        return array
    if _ML_DTYPES.get(array.dtype.name) == wanted.value:
        return array.view(wanted.np)
    numbers = isinstance(given, NUMBERS)
    if wanted is DType.BF16 and (numbers or array.dtype == np.float32):
        return converted(value, array, given)
    if array.dtype.newbyteorder("=") == wanted.np:
        return array.astype(wanted.np, copy=False)
    integers = array.dtype.kind in "iu" and wanted.np.kind in "iu"
    fits = integers or np.can_cast(array.dtype, wanted.np, "same_kind")
    if not (numbers and fits):
        raise _other_type(value, array, given)
    return converted(value, array, given)


def converted(value: Value, array: np.ndarray, given: Any) -> np.ndarray:
    """An array of numbers in the input's type. Raises ShapeError for one that the type cannot
    hold."""
    from ..ir import DType
    from ..ir.bfloat16 import bf16_to_f32, stored

    wanted = value.type.dtype
    if array.dtype.kind not in "biuf" or (wanted.is_narrow and wanted.value[0] == "f"):
        raise _other_type(value, array, given)
    with np.errstate(over="ignore", invalid="ignore"):
        made = stored(array, wanted)
    if wanted.is_float:
        numbers = bf16_to_f32(made) if wanted is DType.BF16 else made
        lost = np.isfinite(array) & ~np.isfinite(numbers)
    else:
        lost = _outside(wanted, array)
    if lost.any():
        raise ShapeError(
            tr(
                "input {name} is {type}, which cannot hold {number}",
                name=value.name,
                type=value.type,
                number=array[lost].flat[0],
            )
        )
    return made


def _outside(dtype: DType, array: np.ndarray) -> np.ndarray:
    """Which numbers an integer type, or bool, cannot hold."""
    from ..ir import DType
    from ..ir.dtype import limits

    low, high = (0, 1) if dtype is DType.BOOL else limits(dtype)
    if array.dtype.kind == "f":
        return (np.trunc(array) != array) | (array < low) | (array >= high + 1)
    if array.dtype.kind == "b":
        return np.zeros(array.shape, bool)
    own = np.iinfo(array.dtype)
    return (array < max(own.min, low)) | (array > min(own.max, high))


def _other_type(value: Value, array: np.ndarray, given: Any) -> ShapeError:
    """The fix is known where numbers can become the input's."""
    from ..ir import DType

    known = array.dtype.kind in "biuf" and array.dtype.itemsize <= 8  # no long double
    said = tr(
        "input {name} is {type}, got {dtype}",
        name=value.name,
        type=value.type,
        dtype=DType.of(array.dtype.newbyteorder("=")) if known else array.dtype,
    )
    if array.dtype.kind not in "biuf":
        return ShapeError(said)
    wanted = value.type.dtype
    if wanted.is_narrow and wanted.value[0] == "f":
        return ShapeError(said, fix=tr("give its bits as {np}, or an array of ml_dtypes",
                                       np=wanted.np))  # fmt: skip
    to = np.dtype(np.float32) if wanted is DType.BF16 else wanted.np
    if isinstance(given, np.ndarray):
        return ShapeError(said, fix=tr("convert it with .astype('{np}')", np=to))
    return ShapeError(said, fix=tr("convert it with np.array(…, '{np}')", np=to))
