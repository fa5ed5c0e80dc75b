"""What the README of an exported folder says to type runs as it stands there."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.export import export_model
from lite_engine.runtime import host_target
from lite_workbench.cli import main

from tests.export.test_export import tool
from tests.small_models import classifier, image

pytestmark = pytest.mark.cpu


def typed(text: str, start: str) -> list[str]:
    """The lines of the block that begins with these words."""
    (block,) = [b for b in re.findall(r"^```\n(.*?)^```", text, re.M | re.S) if b.startswith(start)]
    return block.splitlines()


def play(lines: list[str], folder: Path) -> str:
    """Each command in a shell of its own, with what a device has in its environment."""
    env = {k: v for k, v in os.environ.items() if k != "LITE_BACKEND"}
    said = ""
    for line in lines:
        done = subprocess.run(
            line, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=300
        )
        assert done.returncode == 0, f"{line}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
        said += done.stdout
    return said


@pytest.fixture(scope="module")
def exported(tmp_path_factory) -> Path:
    model = optimize(classifier(), targets=["opencl", host_target()])
    return export_model(model, tmp_path_factory.mktemp("out") / "x", host_target()).folder


@pytest.fixture
def device(exported, tmp_path) -> Path:
    """A folder with what the page says to copy."""
    for file in (*exported.glob("bin/*"), exported / "classifier.lite"):
        shutil.copy(file, tmp_path)
    np.save(tmp_path / "input.npy", image(classifier())["x"])
    return tmp_path


def test_on_the_device(exported, device):
    lines = typed((exported / "README.md").read_text(), "./lite_run classifier.lite --info")
    assert len(lines) == 3
    play(lines, device)
    graph = optimize(classifier()).graph
    want = Predictor(graph, "reference").run(image(graph))["prob"]
    np.testing.assert_allclose(np.load(device / "results" / "prob.npy"), want, atol=1e-5)
    assert (device / "profile.json").is_file()


@pytest.mark.opencl
def test_opencl(exported, device):
    lines = typed((exported / "README.md").read_text(), "./lite_run_opencl")
    assert len(lines) == 3
    assert '"devices"' in play(lines, device)


def test_in_your_own_program(exported, tmp_path):
    for name in ("cmake", "javac", "java", "cc", "c++"):
        tool(name)
    folder = tmp_path / "x"
    shutil.copytree(exported, folder)
    text = play(typed((exported / "README.md").read_text(), "cmake -S"), folder)
    answers = [line.split()[1:] for line in text.splitlines() if line.startswith("prob:")]
    zeros = {"x": np.zeros((1, 3, 20, 20), np.float32)}
    want = Predictor(optimize(classifier()).graph, "reference").run(zeros)["prob"]
    assert len(answers) == 4  # C, C++, Python, Java
    np.testing.assert_allclose(np.array(answers, float), np.tile(want, (4, 1)), atol=1e-5)


def test_programs_are_named(exported, tmp_path, capsys):
    """In the page and by the command, as JSON too; and where there are none, how to get them."""
    kinds = "; ".join(PROFILES)
    assert f"programs in fp32 for these kinds of devices: {kinds}." in (
        exported / "README.md"
    ).read_text().replace("\n", " ")
    options = ["--target", host_target(), "--no-report", "-o", str(tmp_path / "a")]
    model = optimize(classifier(), targets=["opencl", host_target()],
                     precision={"opencl": "fp16"}).save(tmp_path / "m.lite")  # fmt: skip
    assert main(["export", str(model), *options]) == 0
    assert f"OpenCL programs in fp16 for: {kinds}\n" in capsys.readouterr().out
    plain = optimize(classifier(), targets=[host_target()])
    made = export_model(plain, tmp_path / "b", host_target())
    assert made.to_dict()["opencl"] == {"devices": [], "precision": ""}
    page = (tmp_path / "b" / "README.md").read_text()
    assert "no OpenCL programs: `lite convert --targets`" in page and "lite_run_opencl" not in page
