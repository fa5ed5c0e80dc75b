"""Fills the recipes of scripts/packaging/ for a release: version, address and SHA-256 of its sdist.

    recipes.py SDIST URL [FOLDER]     default: build/recipes

`conda/recipe.yaml` goes to conda-forge, `homebrew/lite-workbench.rb` into a tap, and `debian/` into
the unpacked sources, where `dpkg-buildpackage -b` makes the package lite-run of it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import sys
from datetime import datetime, timezone
from email.utils import format_datetime
from pathlib import Path

ROOT = Path(__file__).parent.parent
TEMPLATES = ROOT / "scripts" / "packaging"
#: Homebrew wants a description of at most 80 characters.
SHORT = "Convert, quantize, profile and compare vision models on ARM, x86 and OpenCL"


def version() -> str:
    text = (ROOT / "engine" / "lite_engine" / "_version.py").read_text("utf-8")
    return re.search(r'^__version__ = "([^"]+)"', text, re.M)[1]


def dependencies() -> list[str]:
    """What pyproject.toml requires at run time."""
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    table = text.split("\ndependencies = [")[1].split("]")[0]
    return re.findall(r'"([^"]+)"', table)


def fields(sdist: Path, url: str) -> dict[str, str]:
    """What stands between @ and @ in the templates."""
    described = re.search(r'^description = "([^"]+)"', (ROOT / "pyproject.toml").read_text(), re.M)
    when = int(os.environ.get("SOURCE_DATE_EPOCH", datetime.now(timezone.utc).timestamp()))
    needs = (re.sub(r"(?=[<>=])", " ", need, count=1) for need in dependencies())
    return {
        "VERSION": version(),
        "URL": url,
        "SHA256": hashlib.sha256(sdist.read_bytes()).hexdigest(),
        "DESCRIPTION": described[1],
        "SHORT": SHORT,
        "CONDA_DEPENDENCIES": "\n".join(f"    - {need}" for need in needs),
        "DATE": format_datetime(datetime.fromtimestamp(when, timezone.utc)),
    }


def fill(sdist: Path, url: str, folder: Path) -> None:
    """Every template with its fields filled in, under the same names."""
    known = fields(sdist, url)
    for template in sorted(p for p in TEMPLATES.rglob("*") if p.is_file()):
        text = re.sub(r"@([A-Z0-9_]+)@", lambda m: known[m[1]], template.read_text("utf-8"))
        path = folder / template.relative_to(TEMPLATES)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        path.chmod(template.stat().st_mode)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sdist", type=Path)
    parser.add_argument("url")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "build" / "recipes")
    args = parser.parse_args()
    fill(args.sdist, args.url, args.folder)


if __name__ == "__main__":
    sys.exit(main())
