"""A small network, and the runner without Python on it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import numpy as np
from lite_engine import optimize, settings
from lite_engine._native import runner_path
from lite_engine.backends.opencl.launch import Launch
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.ir import Graph
from lite_engine.plan import Plan
from lite_engine.runtime.inputs import random_feeds

from tests.opencl import tiny
from tests.small_models import Builder


def network() -> Graph:
    """Convolutions of the device, one as Winograd, and a layer of the CPU between them."""
    b = Builder((1, 3, 24, 24), "network")
    y = b.conv(b.x, 3, 32, 3)
    y = b.add("Relu", b.conv(y, 32, 32, 3))
    y = b.add("CumSum", y, b.graph.constant(np.array(3)))
    y = b.add("Relu", b.conv(y, 32, 96, 1))
    return b.done(b.add("GlobalAveragePool", y))


def runner() -> Path:
    """The runner that can open libraries: lite_run where that one is not static."""
    plain = runner_path()
    own = plain.with_name("lite_run_opencl")
    return own if own.is_file() else plain


def save(path: Path, targets: list[str], precision: str = "fp32") -> Path:
    precisions = {"opencl": precision} if "opencl" in targets else {}
    optimize(network(), targets=targets, precision=precisions).save(path)
    return path


def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "LITE_BACKEND"}
    env |= {"LITE_CACHE_DIR": str(settings.cache_dir()), **variables}
    command = [str(runner()), *map(str, arguments)]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=120)


def launches(plan: Plan) -> dict[str, list[Launch]]:
    """By layer, what this machine's device is given."""
    target = tiny.device().target
    own = (s for s in plan.steps if s.backend == "opencl" and s.op != "Copy")
    return {s.name: list(launches_of(s, plan, target)) for s in own}


def given(
    model: Path, folder: Path, feeds: dict[str, np.ndarray], *more: object, **variables: str
) -> tuple[np.ndarray, str]:
    """(the output for one input, standard error); the profile is in folder/profile.json."""
    ((name, x),) = feeds.items()
    np.save(folder / "x.npy", x)
    done = run(
        model, "--input", f"{name}={folder / 'x.npy'}", "--output", folder / "out",
        "--profile", folder / "profile.json", *more, **variables,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (file,) = (folder / "out").glob("*.npy")
    return np.load(file), done.stderr


def answer(model: Path, folder: Path, *more: object, **variables: str) -> tuple[np.ndarray, str]:
    """(the output for the random input, what was chosen)."""
    output, _ = given(model, folder, random_feeds(network()), *more, **variables)
    return output, json.loads((folder / "profile.json").read_text())["choice"]
