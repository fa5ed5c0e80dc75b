"""Exported folders, opened in one headless Chromium for each file of tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.web.served import Served


@pytest.fixture
def open_folder(chromium: Any) -> Iterator[Callable[..., Served]]:
    opened: list[Served] = []

    def open_folder(folder: Path, **options: Any) -> Served:
        opened.append(Served(chromium, folder, **options))
        return opened[-1]

    yield open_folder
    for one in opened:
        one.close()
