"""A process that was forked after OpenCL was used is told so; drivers would let it wait forever."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.opencl
CHILD = """
import os, sys
import numpy as np
from lite_engine import Predictor
from lite_engine.errors import BackendUnavailableError
from tests.small_models import classifier, image

graph = classifier()
before = Predictor(graph, "opencl")
want = before.run(image(graph))["prob"]
child = os.fork()
if child:
    _, status = os.waitpid(child, 0)
    again = before.run(image(graph))["prob"]
    sys.exit(os.waitstatus_to_exitcode(status) or not np.array_equal(want, again))
told = []
for make in (lambda: before, lambda: Predictor(graph, "opencl")):
    try:
        make().run(image(graph))
    except BackendUnavailableError as error:
        told.append(str(error))
cpu = Predictor(graph).run(image(graph))["prob"]
good = len(told) == 2 and all("forked" in t for t in told) and np.allclose(cpu, want, atol=1e-5)
os._exit(0 if good else 7)
"""


@pytest.mark.parametrize("executor", ["", "native"])
def test_opencl_after_a_fork(executor: str) -> None:
    env = {**os.environ, "LITE_OPENCL_EXECUTOR": executor}
    done = subprocess.run(
        [sys.executable, "-c", CHILD], capture_output=True, text=True, timeout=120, env=env
    )
    assert done.returncode == 0, done.stderr[-2000:]
