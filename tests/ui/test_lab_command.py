"""`lite lab`, the real command: its page asks nothing and nobody is asked for news or updates."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

import pytest

from tests.conftest import ROOT

pytestmark = [pytest.mark.browser, pytest.mark.cpu]

ADDRESS = re.compile(r"http://127\.0\.0\.1:\d+/lab\S*\?token=\w+")
LESSON = "01_first_walk.ipynb"


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """What `lite lab` prints, in a home where JupyterLab was never opened."""
    shutil.copy(ROOT / "notebooks" / LESSON, tmp_path)
    own = ("CONFIG_DIR", "DATA_DIR", "RUNTIME_DIR")
    env = {**os.environ, "HOME": str(tmp_path), **{f"JUPYTER_{n}": str(tmp_path / n) for n in own}}
    log = tmp_path / "lab.log"
    with log.open("w") as written:
        lab = subprocess.Popen(
            [sys.executable, "-m", "lite_workbench", "lab", LESSON, "--no-browser"],
            cwd=tmp_path, env=env, stdout=written, stderr=written, start_new_session=True,
        )  # fmt: skip
    try:
        until = time.monotonic() + 60
        while not (found := ADDRESS.search(log.read_text())):
            assert lab.poll() is None and time.monotonic() < until, log.read_text()[-2000:]
            time.sleep(0.1)
        yield found[0]
    finally:
        os.killpg(lab.pid, signal.SIGTERM)  # the command and the server that it started
        lab.wait(20)


def test_the_page_asks_no_question_and_looks_for_no_news(address: str, chromium: Any) -> None:
    context = chromium.new_context()
    page = context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    try:
        page.goto(address, timeout=60_000)
        page.wait_for_selector("#jupyterlab-splash", state="detached")
        # the question comes before the notebook
        page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()
        assert page.locator(".Toastify__toast").all_inner_texts() == []
    finally:
        context.close()
    elsewhere = [u for u in asked if urlparse(u).hostname not in ("127.0.0.1", None)]
    assert elsewhere == [], "a request left the machine"
    # JupyterLab's server would go to the network for these
    assert not [
        u for u in asked if urlparse(u).path.startswith(("/lab/api/news", "/lab/api/update"))
    ]
