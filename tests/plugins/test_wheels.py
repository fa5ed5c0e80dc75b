"""Each distribution of engine/plugins as a wheel in an environment of its own, and without it."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import sysconfig
import venv

import pytest
from lite_engine import optimize

LIBRARIES = {"onnxruntime": "onnxruntime", "openvino": "openvino", "litert": "ai_edge_litert"}

#: Runs the digit classifier, and its file with a layer sent to the backend; says who ran what.
_USE = """
import sys
import numpy as np
from lite_engine import Predictor
from lite_engine.doctor import examine

name, model, file = sys.argv[1:]
known = examine().backends.get(name)
x = np.random.default_rng(0).random((1, 1, 32, 32), np.float32)
wanted = Predictor(model, "reference").run(image=x)
if known:
    whole = Predictor(model, name)
    np.testing.assert_allclose(*[next(iter(r.values())) for r in (whole.run(image=x), wanted)],
                               rtol=1e-4, atol=1e-6)
    print(whole.shares()[name].layer_share > 0.9)
part = Predictor(file)
np.testing.assert_allclose(*[next(iter(r.values())) for r in (part.run(image=x), wanted)],
                           rtol=1e-4, atol=1e-6)
step = next(s for s in part.plan().steps if s.name == "/Softmax")
print(known, step.backend, step.why)
"""


def _python(folder, *arguments):
    done = subprocess.run(
        [str(folder / "bin/python"), *map(str, arguments)],
        capture_output=True, text=True, check=False,
        env={**os.environ, "LITE_CACHE_DIR": str(folder / "cache")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")


def _pip(*arguments):
    subprocess.run(
        [sys.executable, "-m", "pip", "-q", *map(str, arguments)], check=True, capture_output=True
    )


@pytest.mark.cpu
@pytest.mark.hours
@pytest.mark.parametrize("name", LIBRARIES)
def test_a_wheel_is_installed_used_and_uninstalled(root, tmp_path, name):
    if importlib.util.find_spec(LIBRARIES[name]) is None:
        pytest.skip(f"pip install {LIBRARIES[name].replace('_', '-')}")
    source = root / f"engine/plugins/lite-backend-{name}"
    build = tmp_path / "source"
    subprocess.run(["cp", "-r", source, build], check=True)
    _pip("wheel", "--no-deps", "--no-build-isolation", "--no-index", "-w", tmp_path, build)
    (wheel,) = tmp_path.glob("*.whl")
    place = tmp_path / "venv"
    venv.create(place, with_pip=False)
    # the engine and the library come from this environment, as their own wheels would bring them
    site = next((place / "lib").iterdir()) / "site-packages"
    parents = [sysconfig.get_paths()["purelib"], *(str(root / p) for p in ("engine", "workbench"))]
    (site / "parent.pth").write_text("\n".join([*parents, str(root / "widgets")]) + "\n")
    model = root / "notebooks/models/digits.onnx"
    file = tmp_path / "m.lite"
    made = optimize(model, targets=["x86", "arm"])
    made.but(overrides={t: {"/Softmax": name} for t in made.targets}).save(file)
    (script := tmp_path / "use.py").write_text(_USE)
    _pip("--python", place / "bin/python", "install", "--no-deps", "--no-index", wheel)
    whole, part, _ = _python(place, script, name, model, file)
    assert whole == "True" and part.startswith(f"True {name} ")
    _pip("--python", place / "bin/python", "uninstall", "-y", f"lite-backend-{name}")
    said, _ = _python(place, script, name, model, file)
    assert said.startswith("None cpu ") and f"the backend {name} cannot be used here" in said
