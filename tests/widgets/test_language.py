"""Every widget and every step of the Workbench in another language, in a real page: what shows no
accent did not go through the catalogue, and in Chinese nothing overflows or overlaps."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.accents import catalogue

pytestmark = [pytest.mark.browser, pytest.mark.cpu]
#: Writes three pages into a folder: all widgets, all steps, the report.
PAGES = """
import sys
from pathlib import Path
import lite_workbench as lw
from lite_workbench.report import write_report
from lite_workbench.steps import STEPS
from tests.widgets import host_page
from tests.widgets.showcase import showcase

folder = Path(sys.argv[1])
host_page.write(folder / "widgets.html", showcase())
session = lw.open(lw.shipped("digits.onnx"))
session.convert(targets=["x86", "opencl"])
session.run(backend="x86")
session.profile(backend="x86", runs=3)
session.profile(backend="reference", runs=2)
session.compare("reference", "x86")
bench = lw.Workbench(session)
shown = [bench.top, bench.code]

def drawn(widget):
    if hasattr(widget, "_esm"):
        shown.append(widget)
    for child in getattr(widget, "children", ()):
        drawn(child)

for name in STEPS:
    drawn(bench.step(name))
host_page.write(folder / "steps.html", [w for w in shown if w.layout.display != "none"])
write_report([session], folder / "report.html")
"""
SPOKEN = """names => names.flatMap(n =>
  [...document.querySelectorAll(`[${n}]`)].map(e => e.getAttribute(n))).join("\\n")"""
#: Gives the widgets' column a width and waits until they have drawn themselves for it.
RESIZE = """async (width) => {
  const column = document.body.firstElementChild;
  if (column.style.width) column.style.width = `${width}px`;
  for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
  await new Promise((done) => setTimeout(done, 150));
}"""
MISPLACED = """() => {
  const seen = (e) => e.getClientRects().length && getComputedStyle(e).visibility !== 'hidden';
  const all = (q) => [...document.querySelectorAll('.lite')]
    .flatMap((e) => [...e.querySelectorAll(q)]).filter(seen);
  const wide = all('.frame').filter((e) => e.scrollWidth > e.closest('.lite').clientWidth + 1)
    .map((e) => `wider than its place: ${e.closest('.lite').className}`);
  const cut = all('.verdict, .verdict *, h2, h3, .bd, .nm, .rs, .btn, button, label, th')
    .filter((e) => e.clientWidth && e.scrollWidth > e.clientWidth + 1
      && getComputedStyle(e).overflowX !== 'visible')
    .map((e) => `cut off: ${e.textContent.trim().slice(0, 60)}`);
  const covered = all('svg.chart').flatMap((chart) => {
    const boxes = [...chart.querySelectorAll('text')].filter((t) => t.textContent.trim())
      .map((t) => [t.textContent.trim(), t.getBoundingClientRect()]);
    return boxes.flatMap(([a, p], i) => boxes.slice(i + 1).filter(([, q]) =>
      Math.min(p.right, q.right) - Math.max(p.left, q.left) > 2
      && Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 4).map(([b]) => `${a} | ${b}`));
  });
  const page = document.documentElement.scrollWidth > innerWidth ? ['wider than the page'] : [];
  return [...page, ...wide, ...cut, ...covered];
}"""
#: Without a font of its letters, every character is drawn as the same box.
CAN_WRITE_CHINESE = """() => {
  const pen = new OffscreenCanvas(40, 40).getContext('2d');
  const drawn = (letter) => {
    pen.clearRect(0, 0, 40, 40);
    pen.font = '30px sans-serif';
    pen.fillText(letter, 2, 34);
    return String(pen.getImageData(0, 0, 40, 40).data);
  };
  return drawn('一') !== drawn('图');
}"""
#: Paths, shapes, options, code, and names in capitals or with a digit.
CODE = re.compile(
    r"from \w+ import \w+|\w+\([^)]*\)|[\w-]+( = \S.*|\.\w+)|\S*[./:=\[\]{}|_…×→\\]\S*|--?[\w-]+"
    r"|[\w-]*\d[\w-]*|\b(fold|fuse|drop|layout|quantize)-[\w-]+|\b[A-Z]{2,}\w*\b"
)
#: Types of layers and operators, backends, devices, instruction sets, methods and units; "Op" is
#: the field's word.
NAMES = set(
    """Conv Depthwise conv Elementwise Pool Copy Softmax Other Layout Activation MatMul Norm Add Op
    GlobalAveragePool Gemm Relu Clip Reshape Flatten HardSwish BatchNormalization ReduceMean
    OpenCL opencl reference float auto arm wasm cpu local minmax hist avg mse rms min max abs instr
    GFLOP FLOP Lite Workbench Netron NaN Python Java avxvnni""".split()
)
#: What the shipped model calls its layers and values, and how this machine's driver is called.
DIGITS = set(
    """digits image probability onnx stem head dw pw pool se fc
    Portable Computing Language pthread""".split()
)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, root: Path) -> Callable[[str], Path]:
    """pages(language) → the folder of the pages in it, which are written once."""

    @functools.cache
    def written(language: str) -> Path:
        folder = tmp_path_factory.mktemp("pages")
        spoken = str(catalogue(folder)) if language == "accents" else language
        done = subprocess.run(
            [sys.executable, "-c", PAGES, folder], cwd=root,
            env={**os.environ, "LITE_LANGUAGE": spoken},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return folder

    return written


@pytest.fixture
def opened(chromium: Any) -> Iterator[Callable[[Path], Any]]:
    """A page of the browser that has this file."""
    page = chromium.new_page()

    def open_file(path: Path) -> Any:
        page.goto(path.as_uri())
        page.evaluate("() => window.ready")
        assert not page.evaluate("() => window.errors")
        return page

    yield open_file
    page.close()


def texts(page: Any) -> str:
    """What a page shows, speaks and puts into tooltips."""
    named = page.evaluate(SPOKEN, ["title", "aria-label", "placeholder", "alt", "data-tip"])
    return f"{page.locator('body').inner_text()}\n{named}"


def unaccented(text: str, data: set[str]) -> list[str]:
    """Words of a text that went through no catalogue."""
    words = re.findall(r"[^\W\d_]{3,}", CODE.sub(" ", text))
    plain = {w for w in words if re.search("[aeiouAEIOU]", w) and w.isascii()}
    return sorted(plain - NAMES - data)


def test_widgets_show_no_english(pages: Any, opened: Any, root: Path) -> None:
    said = texts(opened(pages("accents") / "widgets.html"))
    assert "médíáñ" in said.lower() and "Whíçh láýérš" in said
    sample = (root / "tests/widgets").glob("s*.py")  # what showcase and samples put in is data
    data = {w for p in sample for w in re.findall(r"[^\W\d_]+", p.read_text("utf-8"))}
    assert unaccented(said, data) == []


@pytest.mark.opencl
def test_steps_show_no_english(pages: Any, opened: Any) -> None:
    said = texts(opened(pages("accents") / "steps.html"))
    assert "Whéré dóéš thé tímé gó?" in said
    assert unaccented(said, DIGITS) == []


def test_a_report_shows_no_english(pages: Any, opened: Any) -> None:
    said = texts(opened(pages("accents") / "report.html"))
    assert "Whéré thé tímé góéš" in said
    assert unaccented(said, DIGITS) == []


def misplaced(page: Any) -> dict[str, list[str]]:
    """What is cut off, too wide, or covers other text, by the width where it was seen."""
    found = {}
    for width in (1100, 760, 340):
        page.set_viewport_size({"width": width + 40, "height": 900})
        page.evaluate(RESIZE, width)
        found[f"{width} pixels"] = page.evaluate(MISPLACED)
    return {width: faults for width, faults in found.items() if faults}


@pytest.mark.parametrize("name", ["widgets", "steps", "report"])
def test_chinese_fits(pages: Any, opened: Any, name: str) -> None:
    page = opened(pages("zh") / f"{name}.html")
    if not page.evaluate(CAN_WRITE_CHINESE):
        pytest.skip("no Chinese font; sudo apt-get install fonts-wqy-microhei")
    assert re.search("[\u4e00-\u9fff]", page.locator("body").inner_text())
    assert misplaced(page) == {}


@pytest.mark.parametrize(
    ("html", "said"),
    [
        ("<div class=frame style='width:900px'>图层</div>", "wider than its place"),
        (
            "<h2 style='width:3em;overflow:hidden;white-space:nowrap'>最慢的几层</h2>",
            "cut off: 最慢",
        ),
        (
            "<svg class=chart><text y=20>最慢的层</text><text x=9 y=22>类型</text></svg>",
            "最慢的层 | 类型",
        ),
    ],
)
def test_a_misplaced_text_is_found(chromium: Any, html: str, said: str) -> None:
    page = chromium.new_page()
    page.set_content(
        f"<meta charset=utf-8><div style='width:1100px'><div class=lite>{html}</div></div>"
    )
    assert any(said in fault for fault in misplaced(page)["340 pixels"])
    page.close()
