"""Files that a reader takes in at one sitting, and widgets that load at once."""

from __future__ import annotations

import statistics
from pathlib import Path

import pytest

MOST_LINES, MEDIAN_LINES = 400, 150
SOURCES = {".py", ".cc", ".h", ".inc", ".cl", ".js", ".mjs", ".css"}
#: Plotly is a library of its own, and only two widgets load it.
JAVASCRIPT_BYTES = 1_500_000


@pytest.fixture(scope="module")
def lines(root: Path, source_files: list[str]) -> dict[str, int]:
    """Lines of every source file: kernels, Python, JavaScript, styles, tests."""
    names = [name for name in source_files if Path(name).suffix in SOURCES]
    return {name: (root / name).read_text("utf-8").count("\n") for name in names}


def test_no_file_is_long(lines: dict[str, int]) -> None:
    assert len(lines) > 500  # the listing is whole
    long = {n: count for n, count in lines.items() if count > MOST_LINES}
    assert long == {}, f"split along its subjects, at most {MOST_LINES} lines"


def test_most_files_are_short(lines: dict[str, int]) -> None:
    assert statistics.median(lines.values()) < MEDIAN_LINES


def test_all_javascript_together_is_small(root: Path) -> None:
    bundles = list((root / "widgets" / "lite_widgets" / "static").glob("*.js"))
    if not bundles:
        pytest.skip("no bundles; run `make bundle`")
    sizes = {p.name: p.stat().st_size for p in bundles if "plotly" not in p.name}
    assert 0 < sum(sizes.values()) <= JAVASCRIPT_BYTES, sizes
