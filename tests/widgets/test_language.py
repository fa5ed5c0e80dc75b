"""Every widget and every step of the Workbench in another language, in a real page: what shows no
accent did not go through the catalogue."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.accents import catalogue

pytestmark = pytest.mark.browser
WIDGETS = """
import sys
from pathlib import Path
from tests.widgets import host_page
from tests.widgets.showcase import showcase
host_page.write(Path(sys.argv[1]), showcase())
"""
SESSION = """
import sys
from pathlib import Path
import lite_workbench as lw
from lite_workbench.report import write_report
from lite_workbench.steps import STEPS
from tests.widgets import host_page

session = lw.open(lw.shipped("digits.onnx"))
session.convert(targets=["x86", "opencl"])
session.run(backend="x86")
session.profile(backend="x86", runs=3)
session.profile(backend="reference", runs=2)
session.compare("reference", "x86")
"""
STEPS = (
    SESSION
    + """
bench = lw.Workbench(session)
shown = [bench.top, bench.code]

def drawn(widget):
    if hasattr(widget, "_esm"):
        shown.append(widget)
    for child in getattr(widget, "children", ()):
        drawn(child)

for name in STEPS:
    drawn(bench.step(name))
host_page.write(Path(sys.argv[1]), [w for w in shown if w.layout.display != "none"])
"""
)
REPORT = SESSION + "write_report([session], sys.argv[1])"
SPOKEN = """names => names.flatMap(n =>
  [...document.querySelectorAll(`[${n}]`)].map(e => e.getAttribute(n))).join("\\n")"""
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
    "digits image probability onnx stem head dw pw pool se fc Portable Computing Language".split()
)


@pytest.fixture(scope="module")
def language(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return {"LITE_LANGUAGE": str(catalogue(tmp_path_factory.mktemp("language")))}


@pytest.fixture
def texts(
    chromium: Any, tmp_path: Path, root: Path, language: dict[str, str]
) -> Callable[..., Any]:
    """Writes a page with a script and returns what it shows, speaks and puts into tooltips."""

    def shown(script: str) -> str:
        path = tmp_path / "page.html"
        done = subprocess.run(
            [sys.executable, "-c", script, path], cwd=Path(root), env={**os.environ, **language},
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        page = chromium.new_page()
        page.goto(path.as_uri())
        page.evaluate("() => window.ready")
        assert not page.evaluate("() => window.errors")
        named = page.evaluate(SPOKEN, ["title", "aria-label", "placeholder", "alt", "data-tip"])
        said = page.locator("body").inner_text()
        page.close()
        return f"{said}\n{named}"

    return shown


def unaccented(text: str, data: set[str]) -> list[str]:
    """Words of a text that went through no catalogue."""
    words = re.findall(r"[^\W\d_]{3,}", CODE.sub(" ", text))
    plain = {w for w in words if re.search("[aeiouAEIOU]", w) and w.isascii()}
    return sorted(plain - NAMES - data)


def test_widgets_show_no_english(texts: Callable[[str], str], root: Path) -> None:
    said = texts(WIDGETS)
    assert "médíáñ" in said.lower() and "Whíçh láýérš" in said
    sample = (root / "tests/widgets").glob("s*.py")  # what showcase and samples put in is data
    data = {w for p in sample for w in re.findall(r"[^\W\d_]+", p.read_text("utf-8"))}
    assert unaccented(said, data) == []


@pytest.mark.cpu
@pytest.mark.opencl
def test_steps_show_no_english(texts: Callable[[str], str]) -> None:
    said = texts(STEPS)
    assert "Whéré dóéš thé tímé gó?" in said
    assert unaccented(said, DIGITS) == []


@pytest.mark.cpu
def test_a_report_shows_no_english(texts: Callable[[str], str]) -> None:
    said = texts(REPORT)
    assert "Whéré thé tímé góéš" in said
    assert unaccented(said, DIGITS) == []
