"""The report in a browser: nothing asked of a network, no errors, a thousand layers in 10 MB."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("anywidget", reason="the report draws with the widgets: pip install .[lab]")

from lite_engine.runtime import host_target

from tests.report.thousand import thousand_layers

pytestmark = [pytest.mark.browser, pytest.mark.cpu]
#: Promised for 1000 layers.
BYTES = 10_000_000
#: Widgets are drawn when a frame shows their place.
SCROLL = """(y) => {
  scrollTo(0, y);
  return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
}"""


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    return thousand_layers(tmp_path_factory.mktemp("report"))


def test_a_thousand_layers(report, chromium) -> None:
    assert report.stat().st_size < BYTES
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    wrong: list[Any] = []
    page.on("pageerror", lambda e: wrong.append(str(e)))
    page.on("request", lambda r: wrong.append(r.url) if r.url.startswith("http") else None)
    page.goto(report.as_uri())
    page.wait_for_selector(".mounted .lite")
    for y in range(0, page.evaluate("() => document.body.scrollHeight"), 700):
        page.evaluate(SCROLL, y)
    page.wait_for_function("() => !document.querySelector('.mount:not(.mounted)')")
    assert wrong == []


def test_a_click_shows_the_layer(report, chromium) -> None:
    page = chromium.new_page(viewport={"width": 1400, "height": 900})
    page.goto(report.as_uri() + f"#time-{host_target()}")
    row = page.locator(f"#time-{host_target()} .lite-table tbody tr[data-k]").nth(3)
    row.click()
    name = row.get_attribute("data-k")
    inspector = page.locator(f"#time-{host_target()} .lite-inspector")
    inspector.scroll_into_view_if_needed()
    inspector.filter(has_text=name.split("/")[-1]).wait_for()
    page.keyboard.press("Escape")
