"""Planted failures of kernel variants, to test and to show what happens then: none by itself.

with planted(Fault("build", "conv2d", "matrix units")):
    Predictor(model, "opencl").run(feeds)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from .launch import Launch
from .options import join

#: More work-items in a group than any device takes.
_TOO_MANY = 1 << 24


#: Every work-item computes what the first one should: no access leaves its memory. Written so that
#: they are not taken for options, which a kernel lists (reach.py).
_FIRST_ONLY = "# define get_global_id(d) 0\n# define get_group_id(d) 0"


class Fault(NamedTuple):
    """`kind`: the program does not "build", the device refuses the "launch", or the "numbers" are
    wrong, because most of them are not computed. Without `variant` every one of the kernel's."""

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


def spoilt(launches: list[Launch], kernel: str, variant: str) -> list[Launch]:
    """A variant's launches, or what a planted fault makes of them."""
    for fault in _planted:
        if fault.kernel == kernel and fault.variant in ("", variant):
            return [_spoilt(launch, fault.kind) for launch in launches]
    return launches


def _spoilt(launch: Launch, kind: str) -> Launch:
    if kind == "build":
        return replace(launch, options=join(launch.options, "#error planted failure"))
    group = (_TOO_MANY,) * len(launch.global_size)
    if kind == "launch":
        return replace(launch, global_size=group, local_size=group)
    return replace(launch, options=join(launch.options, _FIRST_ONLY))
