"""Finding OpenCL: every place it may hide is tried, and every refusal is kept with its reason.

Candidates in order: LITE_OPENCL_LIBRARY, OCL_ICD_VENDORS, the ICD folders, the loaders' usual
names, and the vendors' own libraries (Mali, PowerVR, Adreno), which often come without an ICD file.
Each is opened in another process, because a broken driver may crash the one that loads it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from lite_messages import tr

from ... import settings
from .opening import Opening, open_all

#: What may be where: kind (icd-folder, loader, vendor-library, vendor-path) and name. The native
#: runtime has the same file built in.
PLACES = [
    (kind, name.strip())
    for kind, _, name in (
        line.partition(" ")
        for line in (Path(__file__).parent / "places.txt").read_text().splitlines()
        if line and not line.startswith("#")
    )
]


def _places(kind: str) -> list[str]:
    return [name for k, name in PLACES if k == kind]


@dataclass(frozen=True)
class Attempt:
    """One candidate and what came of it."""

    candidate: str
    found_by: str
    opening: Opening

    @property
    def reason(self) -> str:
        """Why it cannot be used; empty when it could be opened and has a platform."""
        return self.opening.reason

    @property
    def good(self) -> bool:
        return self.opening.kind == "opened"


def candidates() -> list[tuple[str, str]]:
    """(library, how it came to be a candidate), each library once, in the order of preference."""
    found: list[tuple[str, str]] = []
    named = settings.get("LITE_OPENCL_LIBRARY")
    if named:
        found.append((named, "LITE_OPENCL_LIBRARY"))
    vendors = os.environ.get("OCL_ICD_VENDORS")
    if vendors:
        found += _icd_libraries(Path(vendors), "OCL_ICD_VENDORS")
    else:
        for folder in _places("icd-folder"):
            found += _icd_libraries(Path(folder), folder)
    found += [(name, "loader") for name in _places("loader")]
    found += [(name, "vendor library") for name in _places("vendor-library")]
    found += [(path, "vendor path") for path in _places("vendor-path") if Path(path).exists()]
    seen: dict[str, str] = {}
    for library, how in found:
        seen.setdefault(library, how)
    return list(seen.items())


def _icd_libraries(place: Path, how: str) -> list[tuple[str, str]]:
    """Libraries named by an ICD folder, one .icd file, or a library itself."""
    if place.suffix == ".icd":
        files = [place]
    elif place.is_dir():
        files = sorted(place.glob("*.icd"))
    else:
        return [(str(place), how)] if place.exists() else []
    out = []
    for file in files:
        try:
            text = file.read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError):
            text = ""
        out.append((text.splitlines()[0].strip() if text else str(file), f"{how}/{file.name}"))
    return out


@lru_cache(maxsize=4)
def _attempts(key: tuple[str | None, ...]) -> tuple[Attempt, ...]:
    how = dict(candidates())
    found = open_all(list(how))
    return tuple(Attempt(name, how[name], found[name]) for name in how)


def attempts() -> tuple[Attempt, ...]:
    """Every candidate with what came of it. Cached for one set of variables."""
    names = ("LITE_OPENCL_LIBRARY", "OCL_ICD_VENDORS", "LD_LIBRARY_PATH")
    return _attempts(tuple(os.environ.get(n) for n in names))


def why_not() -> tuple[str, str]:
    """(reason, fix) when no candidate is good: that of the first one that is there."""
    tried = attempts()
    there = [a for a in tried if a.opening.kind != "missing"]
    if there:
        worst = there[0]
        return f"{worst.candidate} ({worst.found_by}): {worst.reason}", worst.opening.fix
    return (
        tr("no OpenCL library found in the {searched} locations searched", searched=len(tried)),
        tr(
            "sudo apt-get install pocl-opencl-icd ocl-icd-libopencl1 (CPU), or "
            "install the GPU vendor's driver; for a library in another place set "
            "LITE_OPENCL_LIBRARY=/path/libmali.so"
        ),
    )
