"""Widgets in another language: their own texts, and those that their Python class gives them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.accents import catalogue, english

pytestmark = pytest.mark.browser
MAKE = """
import sys
from pathlib import Path
import lite_widgets as lw
from tests.widgets import host_page, samples
profile = samples.profile()
widgets = [lw.TimingLine(profile=profile), lw.LatencyChart(), lw.Stepper(), lw.TypeSummary()]
host_page.write(Path(sys.argv[1]), widgets)
"""


def test_widgets_show_no_english(chromium, tmp_path, root):
    language = {"LITE_LANGUAGE": str(catalogue(tmp_path))}
    path = tmp_path / "page.html"
    subprocess.run([sys.executable, "-c", MAKE, path], check=True, cwd=Path(root),
                   env={**os.environ, **language})  # fmt: skip
    page = chromium.new_page()
    page.goto(path.as_uri())
    page.evaluate("() => window.ready")
    said = [page.locator(f"#w{i}").inner_text() for i in range(4)]
    assert "óñé" in said[1].lower() and "médíáñ" in said[0].lower()
    types = {"Conv", "Depthwise", "conv", "Elementwise", "Pool", "Copy", "Softmax", "Other", "min"}
    assert english(" ".join(said), types) == []
    assert page.evaluate("() => window.errors") == []
