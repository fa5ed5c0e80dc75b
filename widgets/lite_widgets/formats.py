"""How numbers and names are written, as `_shared/format.js` writes them on the page."""

from __future__ import annotations

import math

#: Backends as people call them.
NAMES = {"x86": "x86", "opencl": "OpenCL", "arm": "arm", "reference": "reference"}


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with a true minus, or an en dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}".replace("-", "\N{MINUS SIGN}")


def error_text(value: float | None) -> str:
    """Return an error as 7.9e−2, or an en dash where there is none or it is not finite."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    if 0.1 <= abs(value) < 1000:
        return f"{value:.2g}".replace("-", "\N{MINUS SIGN}")
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}e{int(exponent)}".replace("-", "\N{MINUS SIGN}")


def ms_text(value: float, step: float | None = None) -> str:
    """Return milliseconds with three significant digits and at most three decimals; in steps of a
    power of ten, at least one of them, where no more is certain."""
    if step:
        decimals = max(0, -math.floor(math.log10(step) + 0.5))
        return number(max(1, math.floor(value / step + 0.5)) * step, decimals)
    size = abs(value)
    return number(value, 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3)


def bytes_text(value: float | None) -> str:
    """Return a size in decimal kB or MB."""
    if value is None:
        return "–"
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if value >= size:
            return f"{value / size:.2f} {unit}"
    return f"{value / 1e3:.0f} kB" if value >= 1e3 else f"{value:.0f} B"
