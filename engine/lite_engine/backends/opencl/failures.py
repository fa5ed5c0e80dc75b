"""Kernel variants that failed on a device: kept in the cache folder per device and driver, so that
no later start tries them again. Another driver, or another text of the kernel, is tried anew.

    {"device": "NVIDIA H200", "driver": "550.54", "failures": [
      {"program": "9f0c…", "kernel": "conv2d", "variant": "matrix units", "kind": "build",
       "detail": "error: called object type 'int' is not a function"}]}
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ...documents import Part, parse
from ...errors import LiteError, ModelFormatError
from ...files import write_file
from ...terminal import one_line, shortened

#: How a variant fails, and whether it will fail the next time, too.
KINDS = {
    "build": ("does not build", True),
    "launch": ("does not run", True),
    "numbers": ("gives other numbers than the reference", True),
    "memory": ("gets no memory", False),
}
_DETAIL_LIMIT = 240
_FOLDERS = re.compile(r"(?<![\w.])(?:/[^\s/:]+)+/")
#: More than any device has, and few enough to read at every start.
_MOST_FAILURES = 2000
_MOST_BYTES = 1 << 21


class Failure(NamedTuple):
    """`program` names what failed (`launch_key`), `variant` is empty where a kernel has one way
    only, `kind` is a key of KINDS."""

    program: str
    kernel: str
    variant: str
    kind: str
    detail: str

    @property
    def name(self) -> str:
        return f"{self.kernel} ({self.variant})" if self.variant else self.kernel

    @property
    def what(self) -> str:
        return KINDS[self.kind][0]

    def __str__(self) -> str:
        return f"{self.name} {self.what}: {self.detail}"


def detail_of(error: object) -> str:
    """What a driver says, as one line that fits a table. Folders are left out: compilers name
    temporary files, which differ each time and tell where a person keeps them."""
    return shortened(_FOLDERS.sub("", one_line(str(error))), _DETAIL_LIMIT)


def launch_key(text: str, kernel: str, group: tuple[int, ...] | None) -> str:
    """Names one kernel of a program (its whole text) with its work-group."""
    return hashlib.blake2b(f"{kernel}\0{group}\0{text}".encode(), digest_size=12).hexdigest()


@dataclass
class Failures:
    """What failed on one device with one driver, by `Failure.program`."""

    path: Path
    device: str
    driver: str
    known: dict[str, Failure] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)

    @classmethod
    def load(cls, path: Path, device: str, driver: str) -> Failures:
        """A missing or damaged file, and one of another device or driver, is an empty table."""
        try:
            known = _read(path, device, driver)
        except (OSError, ModelFormatError):
            known = {}
        return cls(path, device, driver, known)

    def add(self, failure: Failure) -> None:
        """Remembers a failure, in the file too where it lasts; a full or read-only disk only costs
        another attempt at the next start."""
        if not KINDS[failure.kind][1]:
            return
        self.known[failure.program] = failure
        self._save()

    def forget(self, programs: Iterable[str]) -> None:
        """What runs rightly after all."""
        gone = self.known.keys() & set(programs)
        for program in gone:
            del self.known[program]
        if gone:
            self._save()

    def tell(self, failure: Failure, instead: str) -> None:
        """Warns, once in a process for each kernel variant."""
        if failure.name not in self._told:
            self._told.add(failure.name)
            warnings.warn(f"{self.device}: {failure}; {instead}", stacklevel=2)

    def _save(self) -> None:
        rows = [failure._asdict() for failure in self.known.values()][-_MOST_FAILURES:]
        document = {"device": self.device, "driver": self.driver, "failures": rows}
        with contextlib.suppress(OSError, LiteError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self.path, json.dumps(document, indent=1))


def _read(path: Path, device: str, driver: str) -> dict[str, Failure]:
    with path.open("rb") as file:
        document = parse(file.read(_MOST_BYTES), "table of failed kernels")
    if (document["device"].text(), document["driver"].text()) != (device, driver):
        return {}
    failures = [_failure(row) for row in document["failures"].items()[:_MOST_FAILURES]]
    return {failure.program: failure for failure in failures}


def _failure(row: Part) -> Failure:
    made = Failure(*(row[name].text() for name in Failure._fields))
    if made.kind not in KINDS:
        raise ModelFormatError(f"{row.where}.kind: expected one of {', '.join(KINDS)}")
    return Failure(*map(detail_of, made))
