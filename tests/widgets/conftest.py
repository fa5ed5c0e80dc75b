"""Pages of widgets without Jupyter."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.widgets import host_page


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
