"""Planted failures of kernel variants, to test and to show what happens then: none by itself.

    with planted(Fault("build", "conv2d", "matrix units")):
        Predictor(model, "opencl").run(feeds)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from ...errors import BackendUnavailableError
from .enqueue import Call

#: What goes wrong → the OpenCL status of a call (0: it computes nothing and says nothing).
KINDS = {"build": None, "launch": -5, "numbers": 0, "lost": -2}


class Fault(NamedTuple):
    """`kind` is a key of KINDS; without `variant` every one of the kernel's."""

    kind: str
    kernel: str
    variant: str = ""


_planted: list[Fault] = []


@contextmanager
def planted(*faults: Fault) -> Iterator[None]:
    """These variants fail in everything compiled inside the block."""
    _planted.extend(faults)
    try:
        yield
    finally:
        for fault in faults:
            _planted.remove(fault)


def spoilt_build(kernel: str, variant: str) -> None:
    """Raises BackendUnavailableError where a build failure is planted."""
    if _kind(kernel, variant) == "build":
        raise BackendUnavailableError("planted failure")


def spoilt_call(kernel: str, variant: str, call: Call) -> Call:
    """The call of a kernel, or what a planted fault makes of it."""
    kind = _kind(kernel, variant)
    status = KINDS[kind] if kind else None
    return call if status is None else lambda: status


def _kind(kernel: str, variant: str) -> str:
    for fault in _planted:
        if fault.kernel == kernel and fault.variant in ("", variant):
            return fault.kind
    return ""
