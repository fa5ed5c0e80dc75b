"""From the n-th buffer, program, kernel or launch on a device has none left, for every n: the
runner takes the CPU and gives its numbers, or says in a line what the device could not make."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.backends.cpu import native
from lite_engine.runtime.inputs import random_feeds

from tests.native.opencl.running import answer, network, run, save

pytestmark = [pytest.mark.opencl, pytest.mark.cpu]
#: What is counted, and what the runner says of it.
OBJECTS = {
    "BUFFERS_BEFORE": "CL_MEM_OBJECT_ALLOCATION_FAILURE", "KERNELS_BEFORE": "CL_OUT_OF_RESOURCES",
    "BUILDS_BEFORE": "build", "LAUNCHES_BEFORE": "CL_INVALID_COMMAND_QUEUE",
}  # fmt: skip


def objects(what: str, driver: str, folder: Path, every: int) -> int:
    """How many of them a run makes; each EVERY-th of them is refused once."""
    model = save(folder / "m.lite", ["opencl", native.target()])
    (wanted,) = Predictor(model, native.target()).run(random_feeds(network())).values()
    for n in range(0, 10_000, every):
        variables = {"LITE_OPENCL_LIBRARY": driver, what: str(n)}
        found, choice = answer(model, folder, **variables)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6, err_msg=f"{what} {n}")
        if choice.startswith("opencl: "):
            return n
        assert choice.startswith("cpu: ") and OBJECTS[what] in choice, (what, n, choice)
        refused = run(model, "--backend", "opencl", **variables)
        lines = refused.stderr.strip().splitlines()
        assert refused.returncode == 1 and len(lines) == 1 and OBJECTS[what] in lines[0], (n, lines)
    raise AssertionError(f"{what}: without end")


@pytest.mark.parametrize("what", OBJECTS)
def test_some(what: str, failing_driver: str, tmp_path: Path) -> None:
    assert objects(what, failing_driver, tmp_path, 29) > 0


@pytest.mark.hours
@pytest.mark.parametrize("what", OBJECTS)
def test_every(what: str, failing_driver: str, tmp_path: Path, capsys) -> None:
    count = objects(what, failing_driver, tmp_path, 1)
    with capsys.disabled():
        print(f"\n{what}: {count}")
