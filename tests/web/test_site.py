"""What `make site` writes, on a plain server: the manual, the lessons with their outputs, and the
page that runs models, which names the layer that was spoiled on purpose."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.web.served import Served

pytestmark = [pytest.mark.wasm, pytest.mark.browser, pytest.mark.opencl, pytest.mark.hours]


@pytest.fixture(scope="module")
def site(root: Path) -> Path:
    subprocess.run(["make", "site"], cwd=root, check=True, timeout=3600)
    return root / "site"


def test_the_whole_site(site: Path, root: Path, open_folder: Callable[..., Served]) -> None:
    served = open_folder(site, ready="body")
    page, origin = served.page, served.origin
    lessons = [f"reference/gallery/{p.stem}.html" for p in (root / "notebooks").glob("*.ipynb")]
    assert len(lessons) >= 10
    for place in ("", "platforms/", "reference/gallery/", *lessons):
        answer = page.goto(origin + place)
        assert answer is not None and answer.ok, place
    page.goto(f"{origin}try/")
    page.locator("#live-status", has_text="Digits: median").wait_for()
    page.locator(".lite-errors .verdict", has_text="recorded layers agree").wait_for()
    page.set_input_files("#live-file", str(site / "try" / "digits_faulty.lite"))
    page.locator("#live-status", has_text="digits_faulty.lite: median").wait_for()
    page.locator(".lite-errors .verdict", has_text="goes wrong at /b3/pw/Conv").wait_for()
