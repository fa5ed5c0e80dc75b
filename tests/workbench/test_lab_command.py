"""`lite lab`: JupyterLab starts without questions about news and without looking for updates."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from lite_engine.errors import LiteError
from lite_workbench import lessons
from lite_workbench.cli import main
from lite_workbench.commands import lab

pytest.importorskip("jupyterlab_server", reason="pip install 'lite-workbench[lab]'")

#: What JupyterLab's server hands to the page as defaults of its settings.
OVERRIDES = """
import json, sys
from jupyterlab_server.settings_utils import _get_overrides
print(json.dumps(_get_overrides(sys.argv[1])[0]))
"""


def test_nothing_leaves_the_machine(tmp_path: Path, monkeypatch: Any) -> None:
    begun: list[dict[str, Any]] = []

    def run(command: list[str], **options: Any) -> Any:
        begun.append(options)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setenv("JUPYTER_CONFIG_PATH", str(tmp_path / "own"))
    with monkeypatch.context() as patch:
        patch.setattr(lab.subprocess, "run", run)
        lab.COMMAND.call(lab_arguments())
    (options,) = begun
    paths = options["env"]["JUPYTER_CONFIG_PATH"].split(os.pathsep)
    assert paths[1:] == [str(tmp_path / "own")]
    done = subprocess.run(
        [sys.executable, "-c", OVERRIDES, str(tmp_path)],
        env=options["env"], capture_output=True, text=True, check=True,
    )  # fmt: skip
    told = json.loads(done.stdout)["@jupyterlab/apputils-extension:notification"]
    assert told == {"fetchNews": "false", "checkForUpdates": False}


def test_a_lesson_is_opened_by_its_number(monkeypatch: Any) -> None:
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        asked.append(command)
        return subprocess.CompletedProcess(command, 0)

    monkeypatch.setattr(lab.subprocess, "run", run)
    assert main(["lab", "6", "--no-browser"]) == 0
    assert asked[0][3] == "06_find_the_first_failing_layer.ipynb"
    assert main(["lab", "99"]) == 1 and len(asked) == 1


def lab_arguments() -> Any:
    from lite_workbench.commands import parser_for

    return parser_for(lab.COMMAND, "lite").read(["--no-browser"])


def test_lessons_of_an_installed_package_are_copied_whole_or_not_at_all(tmp_path, monkeypatch):
    """A copy that stopped in the middle would be taken for all lessons the next time."""
    installed = tmp_path / "site-packages" / "notebooks"
    installed.mkdir(parents=True)
    for name in ("a.ipynb", "b.ipynb"):
        (installed / name).write_text("{}")
    monkeypatch.setattr(lessons, "folder", lambda: installed)
    monkeypatch.chdir(tmp_path)

    whole = shutil.copy

    def full(source, target):
        if Path(source).name == "b.ipynb":
            raise OSError(errno.ENOSPC, "No space left on device")
        whole(source, target)

    with monkeypatch.context() as broken:
        broken.setattr(shutil, "copy", full)
        with pytest.raises(LiteError, match=r"lite-lessons: .* \(No space left on device\)$"):
            lab.lessons()
    assert [path.name for path in tmp_path.iterdir()] == ["site-packages"]
    assert {path.name for path in lab.lessons().iterdir()} == {"a.ipynb", "b.ipynb"}
