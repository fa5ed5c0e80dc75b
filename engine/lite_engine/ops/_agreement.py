"""Whether a kernel's result agrees with its operator's reference."""

from __future__ import annotations

import numpy as np
from lite_messages import tr

from ..ir import DType

#: Differences that say nothing, however small the numbers are.
_FLOOR = {DType.F32: 1e-6, DType.F16: 1e-3}


def differs(found: np.ndarray, exact: np.ndarray, tolerance: float) -> str:
    """How an array differs from the exact one by more than a relative L2 error, or in which numbers
    are finite; integers differ when any of them does."""
    x, y = found.ravel(), exact.ravel()
    if x.dtype.kind != "f":
        other = int(np.count_nonzero(x != y))
        return tr("{count} of {all} values", count=other, all=x.size) if other else ""
    floor = _FLOOR.get(DType.of(found), 0.0)
    x, y = x.astype(np.float64), y.astype(np.float64)
    finite = np.isfinite(y)
    same = np.isfinite(x) == finite
    if not same.all() or not np.array_equal(x[~finite], y[~finite], equal_nan=True):
        return tr("NaN or infinity in other elements than in the reference")
    error, norm = np.linalg.norm(x[finite] - y[finite]), np.linalg.norm(y[finite])
    if error <= tolerance * norm + floor * x.size**0.5:
        return ""
    return (
        tr("relative error {error:.1e}", error=error / norm)
        if norm
        else tr("{error:.1e} instead of 0", error=error)
    )
