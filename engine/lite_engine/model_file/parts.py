"""What takes how many bytes of a `.lite` file."""

from __future__ import annotations

from pathlib import Path

from ._container import read_container

_PARTS = {
    "weights": ("WEIGHTS", "WINDEX", "WDERIVE"),
    "cpu_programs": ("PROG.", "HALF.", "LIB", "VIEW."),
    "opencl_programs": ("OCL.", "CLTEXT."),
}


def file_parts(path: Path) -> dict[str, int]:
    """Bytes by part: weights, programs of CPUs and of kinds of OpenCL devices, and the rest
    (graphs, metadata, tables). Programs that are equal for two CPU targets lie in the file once.
    Raises ModelFormatError, VersionError."""
    found = dict.fromkeys(_PARTS, 0)
    for tag, size in read_container(path).sizes().items():
        part = next((name for name, starts in _PARTS.items() if tag.startswith(starts)), "")
        if part:
            found[part] += size
    return {**found, "rest": path.stat().st_size - sum(found.values())}
