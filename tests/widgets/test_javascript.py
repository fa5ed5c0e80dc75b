"""The pure JavaScript parts, by node's own test runner."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

_FOLDER = Path(__file__).with_name("js")


@pytest.mark.skipif(not shutil.which("node"), reason="no node; sudo apt-get install nodejs")
@pytest.mark.parametrize("path", sorted(_FOLDER.glob("*.test.mjs")), ids=lambda p: p.name)
def test_node(path: Path) -> None:
    done = subprocess.run(
        ["node", "--test", str(path)], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
