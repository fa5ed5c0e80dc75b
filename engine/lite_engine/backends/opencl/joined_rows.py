"""Two launches that go through the same rows as one, inside a kernel that does many launches.

Between them the whole device would have to meet, which takes as long as a short launch.
"""

from __future__ import annotations

from math import prod
from typing import Any

from .kernels import Kernel
from .launch import Launch
from .options import join


def joined(run: list[Any]) -> list[Any]:
    """Kernels of a run, each sum of a split product and the normalization of its rows as one."""
    out: list[Any] = []
    for kernel in run:
        both = _sum_normalised(out[-1], kernel) if out else None
        if both:
            out[-1] = both
        else:
            out.append(kernel)
    return out


def _sum_normalised(first: Kernel, second: Kernel) -> Kernel | None:
    """conv_sum (kernels/conv_tile.cl), then normalise_row (kernels/norm.cl) of its rows."""
    if (first.launch.kernel, second.launch.kernel) != ("conv_sum", "normalise_row"):
        return None
    partial, bias, residual, sums, size, columns, parts, step, at = first.args
    x, scale, offset, y, n, epsilon = second.args
    items = prod(second.group or ())
    whole = n == columns == step and at == 0 and second.grid[0] // items * n == size
    apart = all(y is not a for a in (partial, bias, sums))  # a residual's rows are the same ones
    plain = "ACT" not in first.launch.options and "#define HOLD 0" not in second.launch.options
    vector = second.launch.options.partition("#define V ")[2].split("\n")[0]
    if x is not sums or not (whole and apart and plain) or n % int(vector or 1):
        return None
    own, other = first.launch.args, second.launch.args
    options = join(
        second.launch.options,
        "#define RESIDUAL" if "#define RESIDUAL" in first.launch.options else "",
    )
    given = [*own[:4], *other[1:4], own[4], own[5], own[6], other[5]]
    launch = Launch(
        "norm", "sum_normalise_row", given, second.launch.global_size, options, second.group
    )
    # One kernel does it: nothing calls it by itself.
    args = [partial, bias, residual, sums, scale, offset, y, size, n, parts, epsilon]
    return Kernel(launch, None, second.grid, second.group, second.call, args)
