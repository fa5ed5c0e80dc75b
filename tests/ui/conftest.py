"""A real JupyterLab, driven by a headless Chromium; nothing may leave the machine."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.ui.lab_page import LabPage
from tests.ui.lab_server import Server


@pytest.fixture(scope="session")
def server(tmp_path_factory: Any) -> Iterator[Callable[[str], Server]]:
    """server(base_url) → a running JupyterLab; one per base URL."""
    running: dict[str, Server] = {}

    def get(base_url: str = "/") -> Server:
        if base_url not in running:
            running[base_url] = Server(tmp_path_factory.mktemp("home"), base_url)
            running[base_url].wait()
        return running[base_url]

    yield get
    for one in running.values():
        one.close()


@pytest.fixture
def lab(server: Any, chromium: Any) -> Iterator[Callable[..., LabPage]]:
    """lab(cells, base_url=…, dark=…) → LabPage on a fresh notebook of these cells."""
    opened: list[LabPage] = []

    def open_lab(cells: list[str], *, base_url: str = "/", dark: bool = False) -> LabPage:
        page = LabPage(chromium, server(base_url), dark=dark)
        opened.append(page)
        page.open(cells)
        return page

    yield open_lab
    for page in opened:
        page.shot("last")
        page.close()
    for page in opened:
        assert page.outside == [], "a request left the machine"
        assert page.errors == [], "the console has errors"
