"""One wheel serves every Python that is here: installed with pip into a fresh environment, it
converts and runs a model, and the oldest numpy that it names is enough."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest

from ..house.test_wheel import build, run, write_model

pytestmark = pytest.mark.hours

#: The oldest numpy that pyproject.toml allows, or the first with wheels for a newer Python; "t" has
#: no lock around the interpreter.
FIRST_NUMPY = {"3.10": "1.24", "3.11": "1.24", "3.12": "1.26", "3.13": "2.1", "3.14": "2.3.2",
               "3.14t": "2.3.2"}  # fmt: skip


def python(version: str) -> Path:
    """An interpreter of pyenv or of the path (where pyenv's shims may name one that is off)."""
    minor, free = version.removesuffix("t"), version.endswith("t")
    for path in Path("~/.pyenv/versions").expanduser().glob(f"{minor}.*/bin/python"):
        if path.parts[-3].endswith("t") == free:
            return path
    found = shutil.which(f"python{version}")
    return Path(found) if found else pytest.skip(f"no Python {version}; pyenv install {version}")


#: The version, and whether threads wait for each other's Python after all our modules are loaded.
WHICH = """
import lite_workbench, lite_engine, sys
lite_engine.Predictor
print("%d.%d" % sys.version_info[:2], getattr(sys, "_is_gil_enabled", lambda: True)())
"""


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory) -> Path:
    return build(root, tmp_path_factory.mktemp("wheel"), ARM_RUNNER="OFF")


@pytest.mark.parametrize("numpy", ["oldest", "newest"])
@pytest.mark.parametrize("version", FIRST_NUMPY)
def test_a_model_converts_and_runs(wheel, version, numpy, tmp_path):
    run(python(version), "-m", "venv", tmp_path / "venv")
    programs = tmp_path / "venv" / "bin"
    wanted = f"numpy~={FIRST_NUMPY[version]}.0" if numpy == "oldest" else "numpy"
    if FIRST_NUMPY[version].count(".") == 2:
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
    told = run(programs / "python", "-c", WHICH, env=env)
    assert told.split() == [version.removesuffix("t"), str(not version.endswith("t"))]
