"""Measuring, on this machine's device, which way to compute each layer is the fastest."""

from __future__ import annotations

from ..backends import get_backend
from ..errors import UsageError
from .execute import Execution
from .predictor import Predictor


def tune(predictor: Predictor, effort: str = "normal") -> Execution:
    """Measures the layers of a predictor that runs on OpenCL and lets it take the fastest ways.

    `effort` is rapid, normal or exhaustive: how many ways of a layer are tried. The table is kept
    in the cache folder per device and driver, and serves every model with layers of these sizes;
    the predictor's model gets its part of it, which `Model.save` writes.
    Raises UsageError for another backend, BackendUnavailableError when the device fails.
    """
    backend = get_backend("opencl")
    measuring = getattr(backend, "measuring", None)
    if predictor.backend != "opencl" or measuring is None:
        raise UsageError(f"only OpenCL is tuned, this predictor runs on {predictor.backend}")
    with measuring(effort):
        predictor.forget_plans()
        execution = predictor.execution()
    predictor.model.tuning.update(backend.learned())  # type: ignore[attr-defined]
    return execution
