"""Why the times of a profile may be unreliable, as sentences."""

from __future__ import annotations

from collections.abc import Mapping

from .measured import FEWEST_RUNS
from .record import Profile

#: Layers that a sentence names.
_NAMED = 3


def warnings_of(result: Profile) -> list[str]:
    if not result.times_meaningful:
        more = ", executed instructions" if result.instructions else ""
        return [f"emulated: kernels, shapes, memory{more} are exact, times are not"]
    out = []
    if result.runs < FEWEST_RUNS:
        out.append(
            f"{result.runs} run{'s' if result.runs > 1 else ''}: too few for confidence "
            f"intervals and for ranking layers; use --runs {FEWEST_RUNS} or more"
        )
    cores = result.environment.get("cores")
    if isinstance(cores, int) and result.threads > cores and result.backend != "opencl":
        out.append(
            f"{result.threads} threads on {cores} core{'s' if cores > 1 else ''} wait for each "
            f"other; use at most --threads {cores}"
        )
    median, p90 = result.total_ms["median"], result.total_ms["p90"]
    if median > 0 and p90 > 1.25 * median:
        out.append(
            f"noisy: one run in ten took at least {p90 / median:.2f} times the median"
            + unranked(result)
        )
    if median > 0 and abs(result.unexplained_ms) > 0.05 * median:
        out.append(_explained(result, median))
    medians = sum(x.median_ms for x in result.layers)
    if abs(result.sum_ms - medians) > 0.1 * result.sum_ms:
        out.append(
            f"the layers' own medians add up to only {medians:.3f} ms: every run was interrupted, "
            "each time in another layer, because the machine is busy"
        )
    return out


def refusals(layers: Mapping[str, str]) -> list[str]:
    """What failed on the device, once for each reason. `layers` maps them to reasons."""
    by_reason: dict[str, list[str]] = {}
    for name, reason in layers.items():
        by_reason.setdefault(reason, []).append(name)
    out = []
    for reason, names in by_reason.items():
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        out.append(
            f"{reason}; replaced by another variant or the CPU: {', '.join(names[:_NAMED])}{more}"
        )
    return out


def unranked(result: Profile) -> str:
    """How close two layers may be and still be ranked, as the end of a sentence."""
    if not result.rankable_us:
        return ""
    return f"; layers closer than {result.rankable_us:.1f} µs cannot be ranked"


def _explained(result: Profile, median: float) -> str:
    """Why the layers and the total differ by more than 5 %."""
    apart = result.profiled_ms - median
    said = f"the layers add up to {result.sum_ms:.3f} ms, the run takes {median:.3f} ms: "
    if abs(apart) > 0.5 * abs(result.unexplained_ms):
        return said + (
            f"the runs with layer timing took {result.profiled_ms:.3f} ms, so the speed of the "
            "machine changed"
        )
    if result.unexplained_ms > 0:
        return said + (
            f"{result.unexplained_ms:.3f} ms are spent on copying inputs and outputs and on "
            "waiting between backends"
        )
    return said + "steps overlap on the device"
