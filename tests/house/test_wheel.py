"""A wheel builds, installs in a fresh environment without a compiler, and works there."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.slow

# The base dependencies and what they need, borrowed from this environment: nothing else is visible
# to the installed wheel, and no network is needed.
BASE_MODULES = ("numpy", "PIL", "rich", "pygments", "markdown_it", "mdurl")


def run(*command, timeout: int = 600, **options) -> str:
    done = subprocess.run(
        [str(c) for c in command],
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
        **options,
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout


def borrow(module: str, folder: Path) -> None:
    home = Path(importlib.util.find_spec(module).origin).parent
    (folder / home.name).symlink_to(home)
    for libraries in home.parent.glob(f"{'pillow' if module == 'PIL' else module}.libs"):
        (folder / libraries.name).symlink_to(libraries)


@pytest.fixture(scope="module")
def wheel(root, tmp_path_factory) -> Path:
    """Without the AArch64 runner, whose build takes three times as long as all the rest."""
    return build(root, tmp_path_factory.mktemp("wheel"), ARM_RUNNER="OFF")


def build(root: Path, folder: Path, **variables: str) -> Path:
    run(root / "scripts" / "wheel.sh", os.uname().machine, folder, env={**os.environ, **variables})
    (path,) = folder.glob("*.whl")
    return path


@pytest.fixture(scope="module")
def fresh(wheel, tmp_path_factory):
    """Runs a command of a fresh environment that has the wheel and its base dependencies only."""
    place = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", "--without-pip", place / "venv")
    python = place / "venv" / "bin" / "python"
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "-q")
    run(*pip, "--no-index", "--no-deps", wheel)
    (place / "base").mkdir()
    for module in BASE_MODULES:
        borrow(module, place / "base")
    env = {"PATH": str(python.parent), "PYTHONPATH": str(place / "base"), "HOME": str(place),
           "LITE_CACHE_DIR": str(place / "cache")}  # fmt: skip

    def call(program: str, *arguments) -> str:
        assert not any(shutil.which(c, path=env["PATH"]) for c in ("c++", "g++", "cmake"))
        return run(python.parent / program, *arguments, env=env, cwd=place)

    return call


def test_wheel_serves_every_python(wheel):
    assert "-py3-none-manylinux_2_" in wheel.name or "-py3-none-linux_" in wheel.name


def test_wheel_carries_what_runs_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    packages = {"lite_engine", "lite_messages", "lite_widgets", "lite_workbench"}
    others = [n for n in names if n.split("/")[0] not in packages and ".dist-info/" not in n]
    assert {n.split("/")[0] for n in names} >= packages
    # what lies outside: JupyterLab's server finds the extension that serves netron, and JupyterLab
    # the one that inserts cells
    lab = "data/share/jupyter/labextensions/lite-workbench"
    assert sorted(n.split("/", 1)[1] for n in others) == [
        "data/etc/jupyter/jupyter_server_config.d/lite_widgets.json",
        f"{lab}/package.json",
        f"{lab}/static/remoteEntry.js",
    ]
    assert len(names) == len(set(names))
    arch = os.uname().machine
    scripts = [n for n in names if n.startswith("lite_widgets/static/") and n.endswith(".js")]
    assert "lite_widgets/static/report.js" in scripts and len(scripts) > 30
    assert "lite_widgets/notice/notice.js" not in names, "it is in the bundle"
    for part in ("liblite_runtime.so", f"bin/{arch}/lite_run", "include/lite_runtime.h"):
        assert f"lite_engine/_native/{part}" in names
    carried = [n for n in names if not n.startswith("lite_engine/export/templates/")]
    assert not [n for n in carried if n.endswith((".pyc", ".cc", ".o"))]


@pytest.mark.sweep
def test_sdist_carries_the_bundle_and_needs_no_npm(root, tmp_path):
    """What is built from it takes the bundle as it is: no npm, no network."""
    options = ("--sdist", "--no-isolation", "--skip-dependency-check", "--outdir", tmp_path)
    run(sys.executable, "-m", "build", *options, f"-Cbuild-dir={tmp_path}/build", root)
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        source.extractall(tmp_path, filter="data")
    (folder,) = (p for p in tmp_path.iterdir() if (p / "PKG-INFO").exists())
    scripts = folder / "widgets" / "lite_widgets" / "static"
    before = {p.name: p.stat().st_mtime_ns for p in scripts.iterdir()}
    assert "notice.js" in before
    run(sys.executable, folder / "scripts" / "bundle.py", env={"PATH": ""})
    assert {p.name: p.stat().st_mtime_ns for p in scripts.iterdir()} == before


def test_native_library_loads_without_a_compiler(fresh):
    code = (
        "import ctypes, json; from lite_engine import _native\n"
        "library = ctypes.CDLL(str(_native.library_path()))\n"
        "library.lite_version.restype = ctypes.c_char_p\n"
        "print(json.dumps([library.lite_version().decode(), str(_native.library_path())]))"
    )
    version, path = json.loads(fresh("python", "-c", code))
    assert version in Path(path).parents[2].glob("lite_workbench-*.dist-info").__next__().name
    assert "venv" in path  # the wheel's own, not the source tree's


def write_model(path: Path, w: np.ndarray) -> None:
    """y = relu(x·w) as an ONNX file."""
    onnx = pytest.importorskip("onnx", reason="writes the model")
    helper, floats = onnx.helper, onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        "tiny",
        [helper.make_tensor_value_info("x", floats, [2, len(w)])],
        [helper.make_tensor_value_info("y", floats, [2, w.shape[1]])],
        [onnx.numpy_helper.from_array(w, "w")],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def test_a_model_converts_and_runs(fresh, tmp_path):
    """Both the command and the runner, with nothing but the base dependencies."""
    w = np.arange(12, dtype=np.float32).reshape(4, 3) - 6
    x = np.linspace(-1, 1, 8, dtype=np.float32).reshape(2, 4)
    source, model = tmp_path / "tiny.onnx", tmp_path / "tiny.lite"
    write_model(source, w)
    np.save(tmp_path / "x.npy", x)
    fresh("lite", "convert", source, "-o", model)
    backend = "arm" if os.uname().machine == "aarch64" else "x86"
    options = ("--input", tmp_path / "x.npy", "--output", tmp_path / "y.npz")
    fresh("lite", "run", model, "--backend", backend, *options)
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")["y"], np.maximum(x @ w, 0), rtol=1e-5)

    runner = fresh("python", "-c", "from lite_engine import _native; print(_native.runner_path())")
    run(runner.strip(), model, "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path)
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), np.maximum(x @ w, 0), rtol=1e-5)


@pytest.mark.hours
def test_wheel_carries_the_arm_runner(root, tmp_path):
    """What arm needs under emulation, and an export to a board. Binder installs such a wheel."""
    if not shutil.which("aarch64-linux-gnu-g++") or os.uname().machine != "x86_64":
        pytest.skip("no cross compiler; sudo apt-get install g++-aarch64-linux-gnu")
    names = zipfile.ZipFile(build(root, tmp_path)).namelist()
    for part in (
        "bin/aarch64/lite_run",
        "bin/aarch64/lite_run_opencl",
        "lib/aarch64/liblite_runtime.so",
    ):
        assert f"lite_engine/_native/{part}" in names
