"""The programs of a file for OpenCL devices, one for each typical kind."""

from __future__ import annotations

from lite_messages import tr

from ..backends.opencl.native_plan import cpu_kernel, encode_opencl
from ..backends.opencl.profile import PROFILES
from ..backends.opencl.registry import Target
from ..errors import UnsupportedOperatorError
from ..passes.fixed_rows import fixed_rows
from ..plan import Plan, make_plan
from ..plan.program import WeightTable
from .contents import Contents
from .precision import PRECISIONS, computed


def opencl_programs(model: Contents, pool: WeightTable) -> dict[str, bytes]:
    """Section → program. Weights are those of `pool`, packed where the program runs: a further kind
    of device costs its launches only.

    Raises UnsupportedOperatorError when a layer runs in Python only, ShapeError for a model that
    the format cannot hold.
    """
    plan = opencl_plan(model)
    missing = sorted({s.op for s in plan.steps if s.backend == "reference"})
    if missing:
        raise UnsupportedOperatorError(
            tr("the runner cannot run {missing}", missing=", ".join(missing)), tuple(missing)
        )
    targets = map(Target, PROFILES.values())
    return {f"OCL.{i}": encode_opencl(plan, target, pool) for i, target in enumerate(targets)}


def opencl_plan(model: Contents) -> Plan:
    """What the programs for OpenCL execute."""
    precision, words = model.precision("opencl"), model.overrides.get("opencl", {})
    return make_plan(
        fixed_rows(model.graph_in(computed("opencl", precision))),
        "opencl",
        precision=computed("opencl", precision),
        tuning=model.tuning.get("opencl"),
        overrides={n: computed("opencl", w) if w in PRECISIONS else w for n, w in words.items()},
    )


def opencl_host_kernels(model: Contents) -> set[str]:
    """The CPU's kernels that those programs may ask for: of its own steps, and of each step of the
    device that it may have to take over."""
    steps = [s for s in opencl_plan(model).steps if s.backend != "reference" and s.op != "Copy"]
    kernels = {cpu_kernel(s) if s.backend == "opencl" else s.kernel for s in steps}
    return {kernel for kernel in kernels if kernel is not None}
