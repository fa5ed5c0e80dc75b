"""`lite devices test`: a tiny network through every stage, its numbers checked."""

from __future__ import annotations

import tempfile
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import BackendUnavailableError, DeviceError
from ..ir import DType, Graph, Value
from ..model_file.program_file import tensor_file_name, write_program_file
from ..plan import make_plan
from ._base import STAGES, Device, Job, Stage
from .opencl import OpenCLDevice, OpenCLListing


@dataclass
class DeviceCheck:
    """The stages of the tiny run and what the device told about itself."""

    device: str
    good: bool
    stages: list[Stage]
    target: str = ""
    features: list[str] = field(default_factory=list)
    environment: dict[str, Any] = field(default_factory=dict)
    failure: DeviceError | None = None
    #: OpenCL there; None where it was not asked for.
    opencl: OpenCLListing | None = None

    @property
    def error(self) -> str:
        """The failure as one line; empty when there is none."""
        return str(self.failure or "")

    def to_dict(self) -> dict[str, Any]:
        """The JSON of `lite devices test`."""
        data = {f.name: getattr(self, f.name) for f in fields(self)}
        listing = self.opencl.to_dict() if self.opencl else None
        failure = self.failure.to_dict() if self.failure else None
        stages = [asdict(stage) for stage in self.stages]
        told = {"error": self.error, "failure": failure, "opencl": listing}
        return {**data, "stages": stages, **told}


@lru_cache(maxsize=8)
def device_features(device: Device) -> tuple[str, ...]:
    """CPU features, as the runner there says them. Raises DeviceError when it does not run."""
    checked = check_device(device)
    if checked.failure is not None:
        raise checked.failure
    return tuple(checked.features)


@lru_cache(maxsize=8)
def usable_opencl(device: Device) -> OpenCLDevice:
    """The OpenCL device that programs run on there; looked for once. Raises
    BackendUnavailableError with what was found."""
    listing = device.opencl()
    if listing.chosen is None:
        raise BackendUnavailableError(
            tr("{device} has no usable OpenCL: {found}", device=device.name,
               found="; ".join(listing.lines())),
            command=f"lite devices test {device.name}",
        )  # fmt: skip
    return listing.chosen


def check_device(device: Device, *, opencl: bool = False) -> DeviceCheck:
    """Runs y = max(x·w, 0) there; with `opencl` also lists its OpenCL, which takes a second or
    more. Never raises DeviceError: a failed stage says why."""
    rng = np.random.default_rng(1)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in ((3, 8), (8, 5)))
    graph = Graph("check")
    graph.inputs = [Value("x", DType.F32, (3, 8))]
    product = graph.add("MatMul", [graph.inputs[0], graph.constant(w)], name="product").output
    graph.outputs = [graph.add("Relu", [product], name="relu").output]
    plan = make_plan(graph, "cpu")
    out = DeviceCheck(device.name, False, device.log.stages)
    try:
        with tempfile.TemporaryDirectory(prefix="lite-check-") as folder:
            program = write_program_file(plan, Path(folder) / "check.lite")
            names = [tensor_file_name(i) for i in (plan.inputs[0], plan.outputs[0])]
            result = device.run_program(Job(program, {names[0]: x}, [names[1]]))
        out.target = str(result.profile.get("target", ""))
        out.features = str(result.profile.get("cpu", "")).split()
        out.environment = result.environment
        wanted = np.maximum(x @ w, 0)
        out.good = bool(np.allclose(result.arrays[names[1]].reshape(3, 5), wanted, atol=1e-5))
        if not out.good:
            out.failure = DeviceError(tr("the runner gives wrong results"), where=device.name)
    except DeviceError as error:
        out.failure = error
    if opencl and out.good:
        out.opencl = device.opencl()
    done = {s.name for s in out.stages}
    out.stages = [*out.stages, *(Stage(s, "skipped") for s in STAGES if s not in done)]
    return out
