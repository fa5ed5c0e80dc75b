"""A browser and pages of widgets without Jupyter."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.widgets import host_page

CHROMIUMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


# One test module at a time: a second playwright, or nbclient, cannot start while one is open.
@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    """A headless Chromium of the system."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="pip install playwright")
    path = next(filter(None, map(shutil.which, CHROMIUMS)), None)
    if path is None:
        pytest.skip("no Chromium; sudo apt-get install chromium")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=path, args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


@pytest.fixture
def mount(chromium: Any, tmp_path: Path) -> Iterator[Callable[..., Any]]:
    """mount(widgets, theme=…, width=…) → page; fails the test on errors and on any request."""
    pages, requests = [], []

    def open_page(widgets: list[Any], *, width: int = 1100, **options: Any) -> Any:
        page = chromium.new_page(viewport={"width": width + 40, "height": 1000})
        page.set_default_timeout(30_000)
        page.on("request", lambda r: requests.append(r.url) if r.url.startswith("http") else None)
        page.goto(host_page.write(tmp_path / "page.html", widgets, width=width, **options))
        page.evaluate("() => window.ready")
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        assert page.evaluate("() => window.errors") == []
        page.close()
    assert requests == []
