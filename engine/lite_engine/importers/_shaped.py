"""The array of a constant in its dimensions, which a file says."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from lite_messages import tr

from ..errors import ModelFormatError


def shaped(array: np.ndarray, dims: Sequence[int], where: str | None = None) -> np.ndarray:
    """A view. Raises ModelFormatError where the elements do not fill the dimensions, or where these
    are more or larger than NumPy holds, though a zero among them leaves no element."""
    try:
        return array.reshape(dims)
    except ValueError:
        raise ModelFormatError(
            tr("{size} elements do not fill dimensions {dims}", size=array.size, dims=dims),
            where=where,
        ) from None
