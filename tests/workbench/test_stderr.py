"""What reaches standard error: one line for a person, whoever interrupts or warns."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.errors import LiteWarning
from lite_engine.exporters.onnx import write_onnx
from lite_engine.images import open_image
from lite_workbench.cli import main
from lite_workbench.commands import info
from PIL import Image

from tests.small_models import classifier

#: Sends this process SIGINT, as Ctrl-C does, when it imports the module named in argv.
INTERRUPTED = """import os, runpy, signal, sys
class Finder:
    def find_spec(self, name, path=None, target=None):
        if name == sys.argv[1]:
            os.kill(os.getpid(), signal.SIGINT)
name = sys.argv.pop(1)
sys.meta_path.insert(0, Finder()); sys.argv.insert(1, name)
runpy.run_module("lite_workbench", run_name="__main__", alter_sys=False)
"""


@pytest.mark.parametrize(
    "module",
    ["lite_workbench.cli", "lite_engine", "lite_engine.errors", "lite_engine.runtime",
     "lite_workbench.commands", "lite_workbench.progress_line"],
)  # fmt: skip
def test_ctrl_c_during_imports(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, module], capture_output=True, text=True, env=os.environ
    )
    assert (done.returncode, done.stderr) == (130, "error: interrupted\n")


def test_warnings_of_libraries_stay_in_the_log(tmp_path: Path, capfd, monkeypatch) -> None:
    """Our own warning is one line; NumPy's and Pillow's name source files."""
    model = tmp_path / "m.lite"
    from lite_engine import optimize

    optimize(classifier(), targets=["x86"]).save(model)
    read = info.COMMAND.call

    def noisy(args):
        np.float32(3e38) * np.float32(10)
        warnings.warn("of a library", UserWarning, stacklevel=1)
        warnings.warn("layer \x1b[2J runs elsewhere", LiteWarning, stacklevel=1)
        return read(args)

    monkeypatch.setattr("lite_workbench.cli.get_command", lambda _: _with(info.COMMAND, noisy))
    assert main(["info", str(model)]) == 0
    assert capfd.readouterr().err == "warning: layer \\x1b[2J runs elsewhere\n"


def _with(command, call):
    from dataclasses import replace

    return replace(command, call=call)


def test_an_image_is_read_without_warnings(tmp_path: Path, recwarn) -> None:
    """A palette with transparency in bytes, which Pillow warns of when it becomes RGB."""
    path = tmp_path / "palette.png"
    picture = Image.new("P", (4, 4), 1)
    picture.putpalette([0, 0, 0, 200, 100, 50])
    picture.save(path, transparency=b"\x00\x80")
    with Image.open(path) as raw, pytest.warns(UserWarning, match="Palette images"):
        wanted = np.asarray(raw.convert("RGB"))
    recwarn.clear()
    assert np.array_equal(np.asarray(open_image(path).convert("RGB")), wanted)
    assert not recwarn.list


@pytest.mark.parametrize("closed", ["2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_streams(closed: str, tmp_path: Path) -> None:
    """A shell may close them: the verb runs, and no library writes into the file that it makes."""
    model, made = tmp_path / "m.onnx", tmp_path / "made.lite"
    write_onnx(classifier(), model)
    words = shlex.join([sys.executable, "-m", "lite_workbench"])
    for rest, code in ((f"convert m.onnx -o {made}", 0), ("run made.lite", 0), ("info none", 1)):
        line = f"{words} {rest} {closed}"
        done = subprocess.run(["sh", "-c", line], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == code, line
        assert "error" not in done.stdout + done.stderr
    assert Predictor(made).output_names == ["prob"]
