"""*Try it here* and a live report, served by a plain server, in headless Chromium: the answer, the
profile, the roofline, the graph, the layer with a planted fault, and no request elsewhere."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anywidget", reason="the page draws with the widgets: pip install .[lab]")

import lite_workbench as lw
from lite_engine import optimize
from lite_workbench.report import write_report
from lite_workbench.session import Session

from scripts import try_page
from tests.small_models import classifier
from tests.web.served import Served

pytestmark = [pytest.mark.wasm, pytest.mark.browser]


@pytest.fixture(scope="module")
def site(tmp_path_factory: Any) -> Path:
    folder = tmp_path_factory.mktemp("site")
    try_page.write_try(folder)
    return folder


@pytest.fixture
def served(open_folder: Callable[..., Served]) -> Callable[[Path], Served]:
    return functools.partial(open_folder, ready="#live-run:not([disabled])")


def done(page: Any, text: str) -> None:
    page.locator("#live-status", has_text=text).wait_for()
    page.wait_for_selector("#live-run:not([disabled])")


def test_the_story(served: Any, site: Path) -> None:
    page = served(site).page
    done(page, "Digits: median")
    first = page.locator("[data-answer] tr").first.inner_text()
    assert first.split()[0] == answer_of("digits.onnx", "digits.png")
    page.locator(".lite-errors .verdict", has_text="recorded layers agree").wait_for()
    page.locator(".lite-timing", has_text="ms").first.wait_for()
    page.locator(".lite-table", has_text="simd128").first.wait_for()
    page.get_by_role("tab", name="Roofline").click()
    page.locator(".lite-roofline [data-k='/b3/pw/Conv']").wait_for()
    page.locator(".lite-graph", has_text="b3").first.wait_for()


def test_the_story_in_chinese(served: Any, site: Path) -> None:
    page = served(site).page
    page.click("a[hreflang=zh]")
    page.wait_for_selector("html[lang=zh]")
    page.wait_for_selector("#live-run:not([disabled])")
    page.locator(".lite-table", has_text="simd128").first.wait_for()
    page.select_option("#live-model", label="数字识别（其中一层有错误）")
    page.locator(".lite-errors .verdict", has_text="/b3/pw/Conv").wait_for()
    said = page.locator("main").inner_text()
    assert "goes wrong at" not in said and "In this browser" not in said
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_a_planted_fault_is_named(served: Any, site: Path) -> None:
    """The file with one spoiled layer is dropped on the page like any other."""
    page = served(site).page
    done(page, "Digits: median")
    page.set_input_files("#live-file", str(site / "digits_faulty.lite"))
    done(page, "digits_faulty.lite: median")
    said = page.locator(".lite-errors .verdict")
    said.filter(has_text="goes wrong at /b3/pw/Conv").wait_for()
    page.set_input_files("#live-image", str(lw.shipped("ocr_date.png")))
    done(page, "digits_faulty.lite: median")


def test_other_models_and_wrong_files(served: Any, site: Path, tmp_path: Path) -> None:
    page = served(site).page
    done(page, "Digits: median")
    page.select_option("#live-model", label="Text lines (OCR)")
    done(page, "(OCR): median")
    assert page.locator("[data-answer]").inner_text() == answer_of("ocr.onnx", "ocr_date.png")
    page.locator(".lite-errors .verdict", has_text="recorded layers agree").wait_for()
    (tmp_path / "broken.lite").write_bytes(b"nothing")
    page.set_input_files("#live-file", str(tmp_path / "broken.lite"))
    page.locator("#live-status.bad", has_text="not a .lite file").wait_for()
    optimize(classifier(), targets=["wasm"]).save(tmp_path / "other.lite")
    page.set_input_files("#live-file", str(tmp_path / "other.lite"))
    done(page, "other.lite: median")
    page.locator(".lite-graph", has_text="stem").first.wait_for()
    assert page.locator(".lite-errors .verdict").count() == 0  # nothing is recorded of it


@functools.cache
def answer_of(model: str, image: str) -> str:
    """The reference's first answer."""
    session = lw.open(lw.shipped(model))
    session.convert()
    return session.run(lw.shipped(image), backend="reference").text


@pytest.mark.cpu
def test_a_live_report_runs_again(served: Any, tmp_path: Path) -> None:
    session = Session(optimize(classifier()).save(tmp_path / "small.lite"))
    session.set_input()
    session.profile("reference", runs=1)
    (tmp_path / "page").mkdir()
    written = write_report([session], tmp_path / "page" / "index.html", live=True)
    assert json.dumps("small.lite") in written.read_text("utf-8")
    page = served(written.parent).page
    page.click("#live-run")
    done(page, "small.lite: median")
    page.locator("#live .lite-table", has_text="simd128").first.wait_for()
