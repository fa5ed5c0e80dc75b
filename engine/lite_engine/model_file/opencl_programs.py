"""The programs of a file for OpenCL devices, one for each typical kind."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from lite_messages import tr

from ..backends.opencl.native_plan import Shared, cpu_kernel, custom_texts, encode_opencl
from ..backends.opencl.profile import PROFILES
from ..backends.opencl.registry import Target
from ..backends.opencl.tuning import EFFORTS
from ..errors import UsageError
from ..passes.fixed_rows import specialised_rows
from ..plan import Plan, make_plan
from ..plan.program import WeightTable
from ._container import read_container
from .contents import Contents
from .precision import PRECISIONS, computed

#: Sections with the text of a custom operator's kernel have this name and one digit.
KERNEL_TEXT = "CLTEXT."
MOST_SHIPPED = 10
#: Variants of a layer in a tunable program: as many as `lite tune --effort rapid` measures.
VARIANTS = EFFORTS["rapid"]


def opencl_programs(
    model: Contents,
    plan: Plan,
    pool: WeightTable,
    *,
    ship_kernels: bool = False,
    tunable: bool = False,
) -> dict[str, bytes]:
    """Section → program of an `opencl_plan` without layers that need Python. Weights are those of
    `pool`, packed where the program runs: a further kind of device costs its launches only. With
    `ship_kernels` also the kernels of custom operators, with `tunable`, or where the model holds
    what a device measured, further variants of each layer.

    Raises ShapeError for a model that the format cannot hold, UsageError for more than ten kernels
    to ship.
    """
    made = programs_of(plan, pool, ways=VARIANTS if tunable or measured_devices(model) else 1)
    return made | (shipped(custom_texts(plan), f"{KERNEL_TEXT}{{i}}") if ship_kernels else {})


def measured_devices(model: Contents) -> dict[str, dict[str, str]]:
    """By device and driver, what was measured there and is in the model: size → fastest way."""
    before = "opencl/"
    return {
        k.removeprefix(before): dict(v) for k, v in model.tuning.items() if k.startswith(before)
    }


def programs_of(
    plan: Plan, pool: WeightTable, device_class: str = "", *, ways: int = 1
) -> dict[str, bytes]:
    """The same of a plan, with at most so many `ways` to compute a step; with `device_class` only
    what devices of that class can take."""
    fitting = (device_class, "gpu") if device_class != "cpu" else ("cpu",)
    targets = [
        Target(p) for p in PROFILES.values() if not device_class or p.device_class in fitting
    ]
    shared = Shared(plan, pool)
    return {
        f"OCL.{i}": encode_opencl(plan, target, pool, ways=ways, shared=shared)
        for i, target in enumerate(targets)
    }


def opencl_devices(file: Path) -> list[str]:
    """What kinds of devices a `.lite` file, written by this version, has OpenCL programs for."""
    sections, kinds = read_container(file), list(PROFILES)
    return [kind for i, kind in enumerate(kinds) if f"OCL.{i}" in sections]


def shipped(files: Sequence[Path], tag: str) -> dict[str, bytes]:
    """Code that a file carries, by section. Raises UsageError."""
    if len(files) > MOST_SHIPPED:
        raise UsageError(
            tr(
                "expected at most {most} kernels of custom operators to ship, found {n}",
                most=MOST_SHIPPED,
                n=len(files),
            )
        )
    return {tag.format(i=i): path.read_bytes() for i, path in enumerate(files)}


def opencl_plan(model: Contents) -> Plan:
    """What the programs for OpenCL execute."""
    precision, words = model.precision("opencl"), model.overrides.get("opencl", {})
    return make_plan(
        specialised_rows(model.graph_in(computed("opencl", precision))),
        "opencl",
        specialised=True,
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
