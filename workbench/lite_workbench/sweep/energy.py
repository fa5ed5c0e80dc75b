"""Energy of the CPU packages, where Linux lets it be read: the RAPL counters of powercap.

The counters hold what the whole package took, also for other processes and while it idles
(kernel documentation, "Power Capping Framework").
"""

from __future__ import annotations

from pathlib import Path

from lite_engine.errors import reason_of
from lite_messages import tr

ROOT = Path("/sys/class/powercap")


class Meter:
    """`why` says why there is nothing to read; it is empty where there is."""

    def __init__(self, root: Path = ROOT) -> None:
        # intel-rapl:0 is a package (on AMD, too), intel-rapl:0:0 a part of it
        self._packages = sorted(p for p in root.glob("intel-rapl:*") if p.name.count(":") == 1)
        self.why = "" if self._packages else tr("there are no RAPL counters")
        try:
            self._wraps = [_number(p / "max_energy_range_uj") for p in self._packages]
            self.read()
        except (OSError, ValueError) as error:
            self.why = tr("RAPL cannot be read: {reason}", reason=reason_of(error))

    def read(self) -> list[int]:
        """A counter in µJ for each package. Raises OSError, ValueError."""
        return [_number(p / "energy_uj") for p in self._packages]

    def now(self) -> list[int] | None:
        """As `read`; None where nothing can be read."""
        try:
            return None if self.why else self.read()
        except (OSError, ValueError):
            return None

    def spent_mj(self, before: list[int] | None, after: list[int] | None) -> float | None:
        """What was taken between two readings, in mJ; a counter may have begun again once."""
        if before is None or after is None:
            return None
        taken = [
            b - a if b >= a else b - a + wrap
            for a, b, wrap in zip(before, after, self._wraps, strict=True)
        ]
        return sum(taken) / 1e3


def _number(path: Path) -> int:
    return int(path.read_text())
