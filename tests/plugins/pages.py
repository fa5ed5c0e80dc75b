"""The package that docs/backends.md builds step by step."""

from __future__ import annotations

import re
from pathlib import Path

FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


def backend_of_the_page(root: Path, folder: Path) -> None:
    """Its two files in a folder of their own."""
    blocks = dict(FENCE.findall((root / "docs/backends.md").read_text()))
    folder.mkdir()
    (folder / "acme.py").write_text(blocks["python"])
    (folder / "pyproject.toml").write_text(blocks["toml"])
