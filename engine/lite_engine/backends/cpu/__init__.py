"""The native CPU backend: one C++ runtime for x86-64 and AArch64."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_messages import tr

from ...errors import LiteError
from .._usability import Usability
from .native import cpu_features, target

if TYPE_CHECKING:
    from ...plan import Segment
    from .executable import CpuExecutable


class CpuBackend:
    """Runs segments as programs of the native library."""

    name = "cpu"

    def usability(self) -> Usability:
        try:
            return Usability(
                True,
                tr("{target} with {features}", target=target(), features=" ".join(cpu_features())),
            )
        except LiteError as error:
            return Usability.refused(error)

    def compile(self, segment: Segment, *, threads: int) -> CpuExecutable:
        from .executable import CpuExecutable  # a stored program needs no planner

        return CpuExecutable(segment, threads=threads)
