"""Measuring, on this machine's device, which way to compute each layer is the fastest."""

from __future__ import annotations

from typing import NamedTuple

from lite_messages import tr

from ..backends import Measured, Tunable, get_backend
from ..errors import UsageError
from .execute import Execution
from .predictor import Predictor


class Tuned(NamedTuple):
    """`measured` are the layers measured now; `known` counts the sizes of this model's layers that
    had been measured before."""

    execution: Execution
    measured: list[Measured]
    known: int


def tune(predictor: Predictor, effort: str = "normal") -> Tuned:
    """Measures the layers of a predictor that runs on OpenCL and lets it take the fastest ways.

    `effort` is rapid, normal or exhaustive: how many ways of a layer are tried. The table is kept
    in the cache folder per device and driver, and serves every model with layers of these sizes;
    the predictor's model gets its part of it, which `Model.save` writes.
    Raises UsageError for another backend, BackendUnavailableError when the device fails.
    """
    backend = get_backend("opencl")
    if predictor.backend != "opencl" or not isinstance(backend, Tunable):
        raise UsageError(
            tr(
                "only OpenCL can be tuned, but this predictor runs on {backend}",
                backend=predictor.backend,
            )
        )
    with backend.measuring(effort) as measured:
        predictor.forget_plans()
        execution = predictor.execution()
    learned = backend.learned()
    predictor.model.tuning.update(learned)
    sizes = {size for table in learned.values() for size in table}
    return Tuned(execution, measured, len(sizes - {m.size for m in measured}))
