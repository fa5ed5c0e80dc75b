"""The report in a browser: nothing asked of a network, no errors, a thousand layers in 10 MB."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anywidget", reason="the report draws with the widgets: pip install .[lab]")

from lite_engine import optimize
from lite_engine.runtime import host_target
from lite_workbench import Session
from lite_workbench.report import write_report

from tests.report.thousand import thousand_layers
from tests.small_models import classifier

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


def test_headings_are_found_in_a_narrow_window(tmp_path: Path, chromium: Any) -> None:
    """The links stay one line, so that they hide no heading; long names of layers break."""
    graph = classifier()
    for number, node in enumerate(graph.nodes):
        node.name = f"{'a_layer_whose_name_is_long/' * 4}{number}"
    sessions = [Session(optimize(graph, targets=[host_target()]).save(tmp_path / f"{i}.lite"))
                for i in range(3)]  # fmt: skip
    for session in sessions:
        session.set_input()
        session.profile(host_target(), runs=2)
        session.profile("reference", runs=2)
        session.compare(host_target(), "reference")
    page = chromium.new_page(viewport={"width": 360, "height": 700})
    page.goto(write_report(sessions, tmp_path / "three.html").as_uri())
    links = page.locator("body > nav a")
    assert page.locator("body > nav").bounding_box()["height"] < 60
    page.wait_for_selector(".mounted .lite")
    for y in range(0, page.evaluate("() => document.body.scrollHeight"), 700):
        page.evaluate(SCROLL, y)
    assert page.evaluate("() => document.documentElement.scrollWidth <= innerWidth")
    links.nth(links.count() - 2).click()
    target = links.nth(links.count() - 2).get_attribute("href")
    below = page.evaluate(
        "(id) => document.querySelector(id + ' > h2').getBoundingClientRect().top"
        " - document.querySelector('nav').getBoundingClientRect().bottom",
        target,
    )
    assert below >= 0
    page.close()
