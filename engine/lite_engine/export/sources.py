"""The runtime's sources in a folder, for projects that build it with their own tools."""

from __future__ import annotations

import shutil
from pathlib import Path

from lite_messages import tr

from ..errors import BackendUnavailableError
from ..files import copy_tree
from .trim import SOURCES

#: Where the sources lie.
FOLDERS = ("native", "lite_engine")
#: What CMake needs of the runtime's sources, and of the files beside them that it builds in.
_SOURCES = ("CMakeLists.txt", "cmake", "include", "src")
_BESIDE = ("_version.py", "backends/opencl/places.txt", "backends/opencl/kernels")


def check_sources(option: str) -> None:
    """Raises BackendUnavailableError without the runtime's sources, which `option` writes."""
    if not (SOURCES / "CMakeLists.txt").is_file():
        raise BackendUnavailableError(
            tr(
                "{option} writes the runtime's sources, which a wheel does not carry", option=option
            ),
            fix=tr("use a source checkout"),
        )


def copy_sources(into: Path) -> None:
    """In the places that the runtime's CMake files know them by."""
    engine = SOURCES.parent / "lite_engine"
    pairs = [(SOURCES / name, into / "native" / name) for name in _SOURCES]
    pairs += [(engine / name, into / "lite_engine" / name) for name in _BESIDE]
    for source, target in pairs:
        target.parent.mkdir(parents=True, exist_ok=True)
        if source.is_dir():
            copy_tree(source, target)
        else:
            shutil.copyfile(source, target)


def told(sizes: dict[str, int], place: str) -> dict[str, int]:
    """Bytes by file, with the sources in the folder `place` counted by folder: a list of hundreds
    of files helps no one."""
    out: dict[str, int] = {}
    for file, size in sizes.items():
        folders = (f"{place}/{name}" for name in FOLDERS)
        folder = next((f for f in folders if file.startswith(f"{f}/")), file)
        out[folder] = out.get(folder, 0) + size
    return out
