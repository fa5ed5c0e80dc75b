"""The real Paddle-Lite: LITE_TEST_PADDLELITE names a python of an environment with paddlelite
2.13rc0 (CPython 3.9 or 3.10). Tests that need it skip without."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine.compat.opt import run_opt

_RUNNER = """
import sys, numpy as np, paddlelite.lite as lite
config = lite.MobileConfig()
config.set_model_from_file(sys.argv[1])
predictor = lite.create_paddle_predictor(config)
feeds = np.load(sys.argv[2])
for i, name in enumerate(predictor.get_input_names()):
    predictor.get_input(i).from_numpy(feeds[name])
predictor.run()
outputs = [predictor.get_output(i).numpy() for i in range(len(predictor.get_output_names()))]
np.savez(sys.argv[3], *outputs)
"""
#: The wheel's command, by the interpreter beside it: its first line names the machine that made it.
_OPT = """
import pathlib, runpy, sys
runpy.run_path(str(pathlib.Path(sys.executable).with_name("paddle_lite_opt")), run_name="__main__")
"""


def needed() -> str:
    """The python that has it; skips the test without one."""
    python = os.environ.get("LITE_TEST_PADDLELITE")
    if not python:
        pytest.skip("LITE_TEST_PADDLELITE is not set to a python with paddlelite")
    return python


def _call(code: str, *arguments: object) -> None:
    command = [needed(), "-c", code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, (done.stdout + done.stderr)[-1500:]


def run(folder: Path, path: Path, feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Outputs of a `.nb` file on x86."""
    np.savez(folder / "in.npz", **feeds)
    _call(_RUNNER, path, folder / "in.npz", folder / "out.npz")
    outputs = np.load(folder / "out.npz")
    return [outputs[k] for k in outputs.files]


def written_by_both(folder: Path, flags: list[str]) -> tuple[Path, Path]:
    """The `.nb` files that our `opt` and Paddle-Lite's write with the same flags."""
    ours, theirs = folder / "ours.nb", folder / "theirs.nb"
    _call(_OPT, *flags, f"--optimize_out={theirs.with_suffix('')}")
    assert run_opt([*flags, f"--optimize_out={ours.with_suffix('')}"]) == 0
    return ours, theirs
