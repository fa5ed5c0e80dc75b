"""docs/arm_tiles.md is what the AArch64 tiles compile to, and keeps its promise."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.hours
@pytest.mark.skipif(
    not shutil.which("aarch64-linux-gnu-g++"),
    reason="no cross compiler; sudo apt-get install g++-aarch64-linux-gnu",
)
def test_the_table_is_what_is_measured():
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "kernels" / "mca.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr


def test_the_full_tiles_reach_their_share():
    text = (ROOT / "docs" / "arm_tiles.md").read_text()
    for title, least in (("fp32 12x8, packed rows", 95), ("fp32 8x8", 95), ("sdot 8x8", 90)):
        a55, n1 = re.search(
            rf"\| {title} \|.*?\| (\d+) % \| (\d+) % \| [^|]* \|$", text, re.M
        ).groups()
        assert min(int(a55), int(n1)) >= least, title
