"""The Chromium that tests and pictures are drawn with."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

#: The headless shell takes a quarter less time: it has no window with parts of its own.
NAMES = (
    "chromium-headless-shell",
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
)
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
]  # fmt: skip


def find_chromium() -> str | None:
    """A system Chromium, else the one that playwright downloaded."""
    for name in NAMES:
        if path := shutil.which(name):
            return path
    cache = Path(os.environ.get("PLAYWRIGHT_BROWSERS_PATH", "~/.cache/ms-playwright")).expanduser()
    return next((str(p) for p in sorted(cache.glob("chromium-*/chrome-linux*/chrome"))), None)


@contextmanager
def open_chromium() -> Iterator[Any]:
    """Playwright's headless browser. Raises FileNotFoundError without a Chromium."""
    from playwright.sync_api import sync_playwright

    path = find_chromium()
    if path is None:
        raise FileNotFoundError("no Chromium; sudo apt-get install chromium")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()
