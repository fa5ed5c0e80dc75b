"""A process of its own: builds a few programs with the cache and checks their numbers.

    python -m tests.opencl.cached_programs COUNT [SECONDS]

SECONDS is the time limit of the trial. Prints one JSON object: `right` (programs that gave the
right numbers) and `compiled` (how many the compiler was needed for).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine.backends.opencl import load_trial
from lite_engine.backends.opencl.device import choose, open_device

ROOT = Path(__file__).parent.parent.parent


def main(count: int, seconds: float = load_trial.TIMEOUT_S) -> None:
    load_trial.TIMEOUT_S = seconds
    device = open_device(choose())
    cl = device.cl
    x = np.arange(16, dtype=np.float32)
    y, right = np.empty_like(x), 0
    for number in range(count):
        program = device.program("unary", f"#define V 4\n#define ACT(x) ((x) + {number}.0f)")
        given, out = device.buffer(x.nbytes, x), device.buffer(y.nbytes)
        kernel = cl.Kernel(program, "unary")
        kernel.set_args(given, out, np.int32(x.size))
        cl.enqueue_nd_range_kernel(device.queue, kernel, (4,), None)
        cl.enqueue_copy(device.queue, y, out)
        right += int(np.array_equal(y, x + number))
    print(json.dumps({"right": right, "compiled": device.programs.compiled}))


def in_a_process(folder: Path, count: int, *more: str, **variables: str) -> tuple[Any, list[str]]:
    """What `main` printed with its cache in `folder`, and the lines of stderr. The process must
    end well. PoCL keeps no kernels itself unless `variables` say so: then ours are kept."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.opencl.cached_programs", str(count), *more],
        cwd=ROOT,
        env={**os.environ, "LITE_CACHE_DIR": str(folder), "POCL_KERNEL_CACHE": "0", **variables},
        capture_output=True, text=True, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout), [x for x in done.stderr.splitlines() if x.strip()]


if __name__ == "__main__":
    main(int(sys.argv[1]), *map(float, sys.argv[2:]))
