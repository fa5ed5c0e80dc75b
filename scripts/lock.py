"""Writes binder/constraints.txt: the version of every package that the Binder image and continuous
integration install, as they are in this environment.

    python scripts/lock.py          writes the file
    python scripts/lock.py --check  says what differs (exit code 1)

It names no index: pip asks the one that it is set up for.
"""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import tomllib
from packaging.requirements import Requirement

FILE = Path(__file__).parent.parent / "binder" / "constraints.txt"
ROOT, EXTRAS = "lite-workbench", ("lab", "opencl", "dev", "docs")
HEAD = "# Written by scripts/lock.py; pip install -c binder/constraints.txt\n"


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def closure() -> dict[str, str]:
    """Name → version of everything that the extras need here, the project itself left out."""
    found: dict[str, str] = {}
    seen: set[tuple[str, str]] = set()
    waiting = [(ROOT, extra) for extra in ("", *EXTRAS)]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        if name == ROOT:
            needs = own_needs(extra)
        else:
            try:
                package = distribution(name)
            except PackageNotFoundError:
                continue  # of another platform, or not installed: pip is free to choose
            found[name] = package.version
            needs = package.requires or []
        for need in map(Requirement, needs):
            if need.marker is None or need.marker.evaluate({"extra": extra}):
                waiting += [(normal(need.name), given) for given in ("", *need.extras)]
    return found


def own_needs(extra: str) -> list[str]:
    """What pyproject.toml says of an extra, "" for the project itself."""
    project = tomllib.loads((FILE.parent.parent / "pyproject.toml").read_text())["project"]
    return project["optional-dependencies"][extra] if extra else project["dependencies"]


def main() -> int:
    text = HEAD + "".join(f"{name}=={version}\n" for name, version in sorted(closure().items()))
    if "--check" not in sys.argv[1:]:
        FILE.write_text(text)
        return 0
    differ = sorted(set(text.splitlines()) ^ set(FILE.read_text().splitlines()))
    print("\n".join(differ))
    return 1 if differ else 0


if __name__ == "__main__":
    raise SystemExit(main())
