"""What a wheel holds and needs, as CycloneDX 1.6 (PEP 770: `.dist-info/sboms`).

    sbom.py FOLDER     writes it into an unpacked wheel

The native files with their SHA-256, what the widgets' bundles contain, and the packages that pip
installs with it.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from email.parser import HeaderParser
from pathlib import Path
from typing import Any

LOCK = Path(__file__).parent.parent / "widgets" / "package-lock.json"
#: What scripts/bundle.py joins into the bundles; the rest of the lock file only builds.
BUNDLED = ("lit-html",)


def library(name: str, version: str, scope: str, kind: str) -> dict[str, Any]:
    known = f"@{version}" if version else ""
    return {"type": "library", "name": name, "scope": scope, "purl": f"pkg:{kind}/{name}{known}",
            **({"version": version} if version else {})}  # fmt: skip


def components(folder: Path, needs: list[str]) -> list[dict[str, Any]]:
    packages = json.loads(LOCK.read_text())["packages"]
    found = []
    for name in BUNDLED:
        package = packages[f"node_modules/{name}"]
        entry = library(name, package["version"], "required", "npm")
        found.append({**entry, "licenses": [{"license": {"id": package["license"]}}]})
    for need in needs:
        if "extra ==" not in need:
            name = re.match(r"[A-Za-z0-9._-]+", need)
            assert name, need
            found.append(library(name[0].lower(), "", "required", "pypi"))
    for path in sorted((folder / "lite_engine" / "_native").rglob("*")):
        if path.is_file() and path.suffix != ".py":
            digest = hashlib.sha256(path.read_bytes()).hexdigest()
            found.append({"type": "file", "name": path.relative_to(folder).as_posix(),
                          "hashes": [{"alg": "SHA-256", "content": digest}]})  # fmt: skip
    return found


def write(folder: Path) -> Path:
    """Writes the document and returns its path."""
    (info,) = folder.glob("*.dist-info")
    about = HeaderParser().parsestr((info / "METADATA").read_text(encoding="utf-8"))
    name, version = about["Name"], about["Version"]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                **library(name, version, "required", "pypi"),
                "licenses": [{"license": {"id": about["License-Expression"] or "Apache-2.0"}}],
            }
        },
        "components": components(folder, about.get_all("Requires-Dist") or []),
    }
    path = info / "sboms" / "lite-workbench.cdx.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")
    return path


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    print(write(Path(sys.argv[1])))
