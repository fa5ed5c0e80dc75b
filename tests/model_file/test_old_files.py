"""Old files stay readable: one file per format version, written when that version was current.

Never write these files again; a new format version adds a file of its own.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine._native import runner_path
from lite_engine.model_file import read_model
from lite_engine.model_file._container import VERSION
from lite_engine.runtime import host_target

DATA = Path(__file__).parent / "data"


def test_every_version_has_a_file():
    assert [p.stem for p in sorted(DATA.glob("*.lite"))] == [
        f"version_{v}" for v in range(1, VERSION + 1)
    ]


@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_python_reads_it(version):
    path = DATA / f"version_{version}.lite"
    data = np.load(DATA / f"version_{version}.npz")
    model = read_model(path)
    assert model.targets == ["x86", "arm", "opencl"] and model.precision("opencl") == "fp16"
    assert model.metadata["labels"] == list("abcdefghij") and model.journal.entries
    got = Predictor(path, "reference").run({"x": data["x"]})["prob"]
    np.testing.assert_allclose(got, data["prob"], atol=1e-6)


@pytest.mark.cpu
@pytest.mark.parametrize("version", range(1, VERSION + 1))
def test_the_runner_reads_it(version, tmp_path):
    data = np.load(DATA / f"version_{version}.npz")
    np.save(tmp_path / "x.npy", data["x"])
    command = [str(runner_path()), str(DATA / f"version_{version}.lite"), "--target", host_target()]
    command += ["--input", f"x={tmp_path / 'x.npy'}", "--output", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "prob.npy"), data["prob"], atol=1e-5)
