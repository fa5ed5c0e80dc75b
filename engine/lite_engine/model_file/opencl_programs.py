"""The programs of a file for OpenCL devices, one for each typical kind."""

from __future__ import annotations

from lite_messages import tr

from ..backends.opencl.native_plan import encode_opencl
from ..backends.opencl.profile import PROFILES
from ..backends.opencl.registry import Target
from ..errors import UnsupportedOperatorError
from ..passes.fixed_rows import fixed_rows
from ..plan import make_plan
from ..plan.program import WeightTable
from .contents import Contents
from .precision import PRECISIONS, computed


def opencl_programs(model: Contents, pool: WeightTable) -> dict[str, bytes]:
    """Section → program. Weights are those of `pool`, packed where the program runs: a further kind
    of device costs its launches only.

    Raises UnsupportedOperatorError when a layer runs in Python only, ShapeError for a model that
    the format cannot hold.
    """
    precision, words = model.precision("opencl"), model.overrides.get("opencl", {})
    plan = make_plan(
        fixed_rows(model.graph_in(computed("opencl", precision))),
        "opencl",
        precision=computed("opencl", precision),
        tuning=model.tuning.get("opencl"),
        overrides={n: computed("opencl", w) if w in PRECISIONS else w for n, w in words.items()},
    )
    missing = sorted({s.op for s in plan.steps if s.backend == "reference"})
    if missing:
        raise UnsupportedOperatorError(
            tr("the runner cannot run {missing}", missing=", ".join(missing)), tuple(missing)
        )
    targets = map(Target, PROFILES.values())
    return {f"OCL.{i}": encode_opencl(plan, target, pool) for i, target in enumerate(targets)}
