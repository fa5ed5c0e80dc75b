"""One wheel serves every Python that is here: installed with pip into a fresh environment, it
converts and runs a model, and the oldest numpy that it names is enough."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from ..house.test_wheel import build, run, write_model

pytestmark = pytest.mark.hours

MINORS = (10, 11, 12, 13, 14)
#: The oldest numpy that pyproject.toml allows, or the first with wheels for a newer Python.
FIRST_NUMPY = {10: "1.24", 11: "1.24", 12: "1.26", 13: "2.1", 14: "2.3.2"}


def python(minor: int) -> Path:
    """An interpreter of pyenv or of the path (where pyenv's shims may name one that is off)."""
    for path in Path("~/.pyenv/versions").expanduser().glob(f"3.{minor}.*/bin/python"):
        return path
    found = shutil.which(f"python3.{minor}")
    return Path(found) if found else pytest.skip(f"no Python 3.{minor}; pyenv install 3.{minor}")


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory) -> Path:
    return build(root, tmp_path_factory.mktemp("wheel"), ARM_RUNNER="OFF")


@pytest.mark.parametrize("numpy", ["oldest", "newest"])
@pytest.mark.parametrize("minor", MINORS)
def test_a_model_converts_and_runs(wheel, minor, numpy, tmp_path):
    run(python(minor), "-m", "venv", tmp_path / "venv")
    programs = tmp_path / "venv" / "bin"
    wanted = f"numpy~={FIRST_NUMPY[minor]}.0" if numpy == "oldest" else "numpy"
    if FIRST_NUMPY[minor].count(".") == 2:
        wanted = wanted.removesuffix(".0")
    run(programs / "python", "-m", "pip", "install", "-q", wheel, wanted)
    w = np.arange(12, dtype=np.float32).reshape(4, 3) - 6
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    write_model(tmp_path / "tiny.onnx", w)
    np.save(tmp_path / "x.npy", x)
    env = {"PATH": str(programs), "HOME": str(tmp_path), "LITE_CACHE_DIR": str(tmp_path / "cache")}
    lite = programs / "lite"
    run(lite, "convert", tmp_path / "tiny.onnx", "-o", tmp_path / "tiny.lite", env=env)
    options = ("--input", tmp_path / "x.npy", "--output", tmp_path / "y.npz")
    run(lite, "run", tmp_path / "tiny.lite", *options, env=env)
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], np.maximum(x @ w, 0), rtol=1e-5)
    run(lite, "profile", tmp_path / "tiny.lite", "--runs", "2", env=env)
    told = run(programs / "python", "--version")
    assert re.match(rf"Python 3\.{minor}\.", told), sys.version
