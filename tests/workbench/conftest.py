"""What the tests of the Workbench's steps share."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import lite_workbench as lw
import pytest

from tests.workbench.sessions import opened


@pytest.fixture
def session(tmp_path: Path, monkeypatch: Any) -> lw.Session:
    """The digits model converted for x86, in a working folder of its own."""
    monkeypatch.chdir(tmp_path)
    return opened("x86")
