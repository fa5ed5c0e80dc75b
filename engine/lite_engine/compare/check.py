"""LITE_CHECK=1: every kernel against its operator's NumPy reference, in every run.

For those who write kernels or distrust one: slow, and it stops at the first run in which a kernel
leaves its reference by more than its tolerance.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
from lite_messages import tr

from .. import settings
from ..errors import LiteError
from ._compare import compare
from .side import Side

if TYPE_CHECKING:
    from ..runtime.predictor import Predictor


def check_kernels(predictor: Predictor, feeds: Mapping[str, np.ndarray]) -> None:
    """Raises LiteError naming the first kernel that is wrong."""
    from ..runtime.predictor import Predictor

    model, precision = predictor.model, predictor.precision
    own_graph = precision if precision in model.graphs else None
    with settings.override(LITE_CHECK=None):
        exact = Predictor(model, "reference", precision=own_graph)
        result = compare(Side(exact), Side(predictor), feeds)
    if result.finding.exit_code == 1:
        raise LiteError(
            f"LITE_CHECK: {result.verdict}", fix=tr("report it, or run with --backend reference")
        )
