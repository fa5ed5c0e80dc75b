"""Verdicts on kernels: the variants that failed on a device, which no later start tries again, and
the launches whose numbers were compared with the reference, which LITE_CHECK=1 does not compare
again. Kept in the cache folder per device and driver; another driver, or another text of the
kernel, is tried and checked anew.

    {"device": "NVIDIA H200", "driver": "550.54", "passed": ["51d0…"], "failures": [
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

from lite_messages import tr

from ...documents import Part, parse
from ...errors import LiteError, LiteWarning, ModelFormatError
from ...files import write_file
from ...terminal import one_line, shortened
from .launch import Launch, shape_class

#: How a variant fails, and whether it will fail the next time, too.
KINDS = {
    "build": (tr("does not build"), True),
    "launch": (tr("does not run"), True),
    "reach": (tr("does not run with these sizes"), False),  # known before each launch, of no other
    "numbers": (tr("gives different results than the reference"), True),
    "crash": (tr("ends the process"), True),
    "memory": (tr("cannot allocate its memory"), False),
}
_DETAIL_LIMIT = 240
_PROGRAM = re.compile(r"(?<![\w.])(?:/[^\s/:]+)+\.cl\b")
_FOLDERS = re.compile(r"(?<![\w.])(?:/[^\s/:]+)+/")
#: More than any device has, and few enough to read at every start.
MOST_FAILURES = 2000
_MOST_PASSED = 20_000
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
    """What a driver says, as one line that fits a table. Folders are left out, and the
    names of temporary files: they differ each time and tell where a person keeps them."""
    text = _FOLDERS.sub("", _PROGRAM.sub("program", one_line(str(error))))
    return shortened(text, _DETAIL_LIMIT)


def launch_key(text: str, kernel: str, group: tuple[int, ...] | None) -> str:
    """Names one kernel of a program (its whole text) with its work-group."""
    return _digest(f"{kernel}\0{group}\0{text}")


def case_key(program: str, launch: Launch) -> str:
    """Names a program (its `launch_key`) with the class of sizes that a launch has."""
    return _digest(f"{program}\0{shape_class(launch)}")


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()


@dataclass
class Verdicts:
    """Of one device with one driver: what failed, by `Failure.program`, and what passed, by
    `case_key`, in the order of time."""

    path: Path
    device: str
    driver: str
    failures: dict[str, Failure] = field(default_factory=dict)
    passed: dict[str, None] = field(default_factory=dict)
    _told: set[str] = field(default_factory=set)
    _new: bool = False

    @classmethod
    def load(cls, path: Path, device: str, driver: str) -> Verdicts:
        """A missing or damaged file, and one of another device or driver, is an empty table."""
        try:
            known = _read(path, device, driver)
        except (OSError, ModelFormatError):
            known = {}, {}
        return cls(path, device, driver, *known)

    def refresh(self) -> None:
        """Takes what another process has found."""
        there = Verdicts.load(self.path, self.device, self.driver)
        self.failures, self.passed = there.failures, there.passed

    def add(self, failure: Failure) -> None:
        """Remembers a failure, in the file too where it lasts."""
        if KINDS[failure.kind][1]:
            self.failures[failure.program] = failure
            self._new = True
            self.save()

    def approve(self, cases: Iterable[str]) -> None:
        """These have the reference's numbers; `save` keeps that."""
        fresh = [case for case in cases if case not in self.passed]
        self.passed.update(dict.fromkeys(fresh))
        self._new |= bool(fresh)

    def forget(self, programs: Iterable[str]) -> None:
        """What runs rightly after all; `save` keeps that."""
        for program in self.failures.keys() & set(programs):
            del self.failures[program]
            self._new = True

    def tell(self, failure: Failure, instead: str) -> None:
        """Warns, once in a process for each kernel variant."""
        if failure.name not in self._told:
            self._told.add(failure.name)
            warnings.warn(f"{self.device}: {failure}; {instead}", LiteWarning, stacklevel=2)

    def save(self) -> None:
        """Writes what is new; a full or read-only disk only costs the next start."""
        if not self._new:
            return
        rows = [failure._asdict() for failure in self.failures.values()][-MOST_FAILURES:]
        passed = list(self.passed)[-_MOST_PASSED:]
        document = {
            "device": self.device,
            "driver": self.driver,
            "passed": passed,
            "failures": rows,
        }
        with contextlib.suppress(OSError, LiteError):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_file(self.path, json.dumps(document, indent=1))
        self._new = False


def _read(path: Path, device: str, driver: str) -> tuple[dict[str, Failure], dict[str, None]]:
    with path.open("rb") as file:
        document = parse(file.read(_MOST_BYTES), tr("table of verdicts"))
    if (document["device"].text(), document["driver"].text()) != (device, driver):
        return {}, {}
    failures = [failure_of(row) for row in document["failures"].items()[:MOST_FAILURES]]
    passed = [case.text() for case in document["passed"].items()[:_MOST_PASSED]]
    return {f.program: f for f in failures}, dict.fromkeys(passed)


def failure_of(row: Part) -> Failure:
    """Raises ModelFormatError for a row that is not a failure."""
    made = Failure(*(row[name].text() for name in Failure._fields))
    if made.kind not in KINDS:
        raise ModelFormatError(
            tr("expected one of {kinds}", kinds=", ".join(KINDS)), where=f"{row.where}.kind"
        )
    return Failure(*map(detail_of, made))
