"""Scripts that import `paddlelite` run unchanged, and the real package is never shadowed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize

from tests.small_models import classifier, image

pytestmark = pytest.mark.cpu

SCRIPT = """
import sys
import numpy as np
from paddlelite.lite import *
import helper

config = MobileConfig()
config.set_model_from_file(sys.argv[1])
config.set_power_mode(PowerMode.LITE_POWER_HIGH)
predictor = create_paddle_predictor(config)
predictor.get_input(0).from_numpy(np.load(sys.argv[2]))
predictor.run()
np.save(sys.argv[3], predictor.get_output(0).numpy())
import paddlelite
print(helper.NAME, __name__, paddlelite.lite.MobileConfig is MobileConfig)
"""


def run(folder: Path, *arguments: object, path: str = "") -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": path}
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)


def test_a_script_runs_unchanged(tmp_path: Path) -> None:
    graph = optimize(classifier()).graph
    feeds = image(graph)
    model = optimize(classifier()).save(tmp_path / "m.lite")
    np.save(tmp_path / "x.npy", feeds["x"])
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts/s.py").write_text(SCRIPT)
    (tmp_path / "scripts/helper.py").write_text("NAME = 'beside'")
    done = run(tmp_path, "-m", "lite_engine.compat.alias", "scripts/s.py", model, "x.npy", "y.npy")
    assert done.returncode == 0, done.stderr
    assert done.stdout == "beside __main__ True\n"
    want = Predictor(graph, "reference").run(feeds)["prob"]
    np.testing.assert_allclose(np.load(tmp_path / "y.npy"), want, atol=1e-5)
    usage = run(tmp_path, "-m", "lite_engine.compat.alias")
    assert usage.returncode == 1 and usage.stderr.startswith("usage: python -m")


INSTALLED = """
import lite_engine.compat.alias as alias
print(alias.install(), alias.install())
try:
    import paddlelite.lite as lite
    print(getattr(lite, "REAL", "ours"), hasattr(lite, "create_paddle_predictor"))
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((), "True True\nours True\n"),
        (("__init__.py", "lite.py"), "False False\nreal False\n"),
        (("__init__.py",), "False False\nNo module named 'paddlelite.lite'\n"),
    ],
)
def test_the_real_package_is_left_alone(tmp_path: Path, files: tuple[str, ...], said: str) -> None:
    """Installed, it is what is imported; damaged, nothing of ours stands in for its parts."""
    for name in files:
        path = tmp_path / "site" / "paddlelite" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("REAL = 'real'\n")
    done = run(tmp_path, "-c", INSTALLED, path=str(tmp_path / "site"))
    assert done.returncode == 0 and done.stdout == said, done.stderr


def test_installed_later(tmp_path: Path) -> None:
    """A real package that appears after `install` is found before the alias."""
    script = (
        "import sys, lite_engine.compat.alias as alias; alias.install(); "
        f"sys.path.insert(0, {str(tmp_path)!r}); import paddlelite.lite as lite; print(lite.REAL)"
    )
    (tmp_path / "paddlelite").mkdir()
    for name in ("__init__.py", "lite.py"):
        (tmp_path / "paddlelite" / name).write_text("REAL = 'real'\n")
    assert run(tmp_path, "-c", script).stdout == "real\n"


def test_nothing_of_that_name_is_shipped(root: Path) -> None:
    assert not [p for p in root.glob("*/paddlelite*") if p.is_dir()]
