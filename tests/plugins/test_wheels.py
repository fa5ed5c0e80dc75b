"""Each plug-in as a wheel in a fresh environment, with everything it needs from the index: found,
used on every network of the zoo, uninstalled. By name only: it takes half an hour and the index.

The one of docs/backends.md is among them, whose three operators get free borders.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest
from lite_engine import optimize

from ..house.test_wheel import build, run
from .pages import backend_of_the_page
from .zoo_runs import TOLERANCE

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")

pytestmark = [pytest.mark.cpu, pytest.mark.hours]
#: Whether it takes whole networks.
PLUGINS = {"onnxruntime": True, "openvino": True, "litert": True, "acme": False}

#: Runs the digit classifier's file, a layer of which was sent to the backend: who ran it, and why.
_USE = """
import sys
import numpy as np
from lite_engine import Predictor

model, file = sys.argv[1:]
x = np.random.default_rng(0).random((1, 1, 32, 32), np.float32)
part = Predictor(file)
(got,), (wanted,) = (p.run(image=x).values() for p in (part, Predictor(model, "reference")))
np.testing.assert_allclose(got, wanted, rtol=1e-4, atol=1e-6)
step = next(s for s in part.plan().steps if s.name == "/b2/Add")
print(step.backend, step.why)
"""


@pytest.fixture(scope="module")
def engine(root, tmp_path_factory) -> Path:
    return build(root, tmp_path_factory.mktemp("engine"), ARM_RUNNER="OFF")


@pytest.fixture(scope="module")
def networks(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("zoo")
    for name in zoo.NAMES:
        (folder / f"{name}.onnx").write_bytes(zoo.build(name).SerializeToString())
    return folder


def _wheel(root: Path, name: str, folder: Path) -> Path:
    source = folder / "source"
    if name == "acme":
        backend_of_the_page(root, source)
    else:
        shutil.copytree(root / f"engine/plugins/lite-backend-{name}", source)
    pip = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation")
    run(*pip, "-w", folder, source)
    (made,) = folder.glob("*.whl")
    return made


@pytest.mark.parametrize("name", PLUGINS)
def test_a_wheel_is_installed_used_and_uninstalled(root, engine, networks, tmp_path, name):
    run(sys.executable, "-m", "venv", tmp_path / "venv")
    programs = tmp_path / "venv/bin"
    wheel = _wheel(root, name, tmp_path)
    run(programs / "pip", "install", "-q", engine, wheel)
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "HOME": str(tmp_path),
           "LITE_CACHE_DIR": str(tmp_path / "cache")}  # fmt: skip

    told = run(programs / "lite", "doctor", env=env, cwd=tmp_path)
    assert f"+ {name}: " in told and f"lite-backend-{name} " in told

    borders = [] if PLUGINS[name] else ["free"]
    command = [
        programs / "python",
        Path(__file__).with_name("zoo_runs.py"),
        name,
        networks,
        *borders,
    ]
    said = run(*command, env=env, cwd=tmp_path, timeout=3600)
    rows = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    print("\n".join(map(str, rows)))  # of a run with -s: the table in docs/backends.md
    assert {row["network"] for row in rows} == set(zoo.NAMES)
    for row in rows:
        assert row["error"] < TOLERANCE and not row["failed"], row
        halves = row["halves"]
        if PLUGINS[name]:
            assert row["whole"]["layers"] > 9 * row["whole"]["cpu"], row
            assert all(half["layers"] and half["cpu"] > row["whole"]["cpu"] for half in halves), row
    assert sum(any(half["subgraphs"] > 1 for half in row["halves"]) for row in rows) > 3
    (fault,) = [row for row in rows if "planted" in row]
    assert fault["planted"] == fault["found"] or fault["planted"].startswith(f"{fault['found']}/")

    model, file = root / "notebooks/models/digits.onnx", tmp_path / "m.lite"
    made = optimize(model, targets=["x86", "arm"])
    made.but(overrides={t: {"/b2/Add": name} for t in made.targets}).save(file)
    (script := tmp_path / "use.py").write_text(_USE)
    use = (programs / "python", script, model, file)
    assert run(*use, env=env, cwd=tmp_path).startswith(f"{name} ")
    run(programs / "pip", "uninstall", "-q", "-y", f"lite-backend-{name}")
    said = run(*use, env=env, cwd=tmp_path)
    assert said.startswith("cpu ") and f"the backend {name} cannot be used here" in said
    told = run(programs / "lite", "doctor", env=env, cwd=tmp_path)
    assert f"lite-backend-{name} " not in told
