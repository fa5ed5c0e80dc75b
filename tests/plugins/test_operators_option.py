"""--operators FILE.py and --ship-kernels: a model's own operators in every command."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lite_engine._native import runner_path
from lite_engine.devices import arm_opencl
from lite_engine.devices.emulated import emulator
from lite_workbench.cli import main
from lite_workbench.commands import VERBS, WITHOUT_OPERATORS

from tests.tools import arm_opencl as the_persons

from .test_custom_kernels import walk

__all__ = ["walk"]
pytestmark = [
    pytest.mark.cpu,
    pytest.mark.skipif(shutil.which("cc") is None, reason="no C compiler; apt-get install gcc"),
]
X = np.random.default_rng(1).standard_normal((1, 3, 32, 32)).astype(np.float32)
WANTED = X * np.cos(2 * X)


def _lite(*words: str, code: int = 0) -> str:
    """In a process that knows no custom operator."""
    command = [sys.executable, "-m", "lite_workbench", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return done.stdout + done.stderr


def _page(walk: dict, *begin: str) -> list[str]:
    """The command of the page that begins so, without `lite`."""
    (found,) = [c for c in walk["commands"] if c[: len(begin)] == list(begin)]
    return found[1:]


def _run(*command: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)


def _result() -> np.ndarray:
    (made,) = Path("out").iterdir()
    array = np.load(made)
    made.unlink()
    return array


def test_the_commands_of_the_page_in_processes_that_know_nothing(walk):
    """Profile, convert with the kernels, and run the file where there is no Python; nothing loads
    its code without being asked to."""
    np.save("x.npy", X)
    Path("swirl.lite").unlink()
    assert "com.acme::Swirl" in _lite(*_page(walk, "lite", "profile"))
    _lite(*_page(walk, "lite", "convert"))
    _lite("run", "swirl.lite", "--input", "x.npy", "--operators", "swirl.py", "--output", "y.npz")
    (y,) = np.load("y.npz").values()
    np.testing.assert_allclose(y, WANTED, atol=1e-6)
    said = _lite("run", "swirl.lite", "--input", "x.npy", code=1)
    assert "com.acme::Swirl is not known" in said and "--operators FILE.py" in said
    runner = (runner_path(opencl=True), "swirl.lite", "--input", "x=x.npy")
    refused = _run(*runner, "--backend", "cpu")
    assert refused.returncode == 1 and "that the file brings with --trust" in refused.stderr
    done = _run(*runner, "--trust", "--output", "out")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(_result(), WANTED, atol=1e-6)


@pytest.mark.arm_opencl
@pytest.mark.hours
def test_the_walk_ends_on_emulated_arm_with_opencl(walk, tmp_path, monkeypatch, capsys):
    """The C kernel against the OpenCL kernel, both on the device; then the file alone, whose code
    is refused unless it is trusted."""
    (tmp_path / "cache").mkdir(exist_ok=True)
    (tmp_path / "cache/arm-opencl").symlink_to(the_persons())
    assert main([*_page(walk, "lite", "compare"), "--json", "c.json"]) == 0
    layers = {r["name"]: r for r in json.loads(Path("c.json").read_text())["layers"]}
    assert layers and all(r["within"] for r in layers.values())
    np.save("x.npy", X)
    cache = ("-E", f"POCL_CACHE_DIR={tmp_path / 'kernels'}")
    emulated = (emulator(), "-cpu", "max", *arm_opencl.arguments(), *cache)
    runner = (*emulated, runner_path("aarch64", opencl=True), "swirl.lite", "--input", "x=x.npy")
    refused = _run(*runner, "--backend", "opencl")
    assert refused.returncode == 1 and "--trust" in refused.stderr
    done = _run(*runner, "--backend", "opencl", "--trust", "--output", "out", "--profile", "p.json")
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(_result(), WANTED, atol=1e-5)
    variants = [s["variant"] for s in json.loads(Path("p.json").read_text())["steps"]]
    assert any(v.startswith("f32_swirl_") for v in variants), variants


def test_a_file_may_be_missing_or_wrong(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("wrong.py").write_text("import nothing_of_that_name")
    for file, reason in (
        ("nowhere.py", "nowhere.py: no such Python file"),
        ("wrong.py", "wrong.py: cannot be loaded (ModuleNotFoundError"),
    ):
        assert main(["info", "m.onnx", "--operators", file]) == 2
        assert reason in capsys.readouterr().err


def test_there_must_be_a_kernel_to_ship(root, tmp_path, capsys):
    model, out = str(root / "notebooks/models/digits.onnx"), tmp_path / "m.lite"
    assert main(["convert", model, "-o", str(out), "--ship-kernels", "--targets", "x86"]) == 2
    assert "has a kernel in C or OpenCL to ship" in capsys.readouterr().err
    assert not out.exists()


def test_every_verb_that_opens_a_model_takes_it(capsys):
    for verb in VERBS:
        try:
            main([verb, "--help"])
        except SystemExit:
            assert ("--operators" in capsys.readouterr().out) == (verb not in WITHOUT_OPERATORS)


def test_the_exported_folder_brings_the_kernels_and_says_how_to_load_them(walk):
    export = ["export", "swirl.onnx", "-o", "dev", "--operators", "swirl.py", "--no-report"]
    assert main([*export, "--ship-kernels", "--target", "x86"]) == 0
    page = Path("dev/README.md").read_text()
    (line,) = [line for line in page.splitlines() if line.startswith("./lite_run_opencl ../")]
    np.save("x.npy", X)
    command = [*line.split(), "--backend", "cpu", "--input", f"x={Path('x.npy').absolute()}"]
    done = subprocess.run([*command, "--output", "../../out"], cwd="dev/bin", check=False)
    assert done.returncode == 0
    np.testing.assert_allclose(_result(), WANTED, atol=1e-6)
    assert main([*export, "--ship-kernels", "--target", "web"]) == 2
