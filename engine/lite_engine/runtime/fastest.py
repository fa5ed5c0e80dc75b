"""The fastest backend of a file, measured here instead of taken from the file's order."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import LiteError
from ..model_file import Model
from .choice import Decision, choose, host_target, validity
from .predictor import Predictor

TUNE_RUNS = 7


def fastest(
    model: Model,
    feeds: Mapping[str, Any],
    *,
    threads: int | None = None,
    precision: str | None = None,
) -> Predictor:
    """A predictor on the backend with the smallest median time; its decision tells the others'.

    Runs of the candidates alternate, so that a slow moment hits all of them. Emulation is not a
    candidate. Raises as `choose` does when nothing can be used.
    """
    targets = [
        t for t in model.targets or [host_target(), "opencl"] if t in (host_target(), "opencl")
    ]
    reasons: list[tuple[str, bool, str]] = []
    made: dict[str, Predictor] = {}
    for target in targets:
        state = validity(model, target)
        if not state.usable:
            reasons.append((target, False, str(state)))
            continue
        try:
            predictor = Predictor(model, target, threads=threads, precision=precision)
            predictor.run(feeds)
            made[target] = predictor
        except LiteError as error:
            reasons.append((target, False, str(error)))
    if not made:
        choose(model, "auto", precision)  # says why
        raise LiteError("; ".join(f"{name}: {reason}" for name, _, reason in reasons))
    times: dict[str, list[float]] = {target: [] for target in made}
    for _ in range(TUNE_RUNS):
        for target, predictor in made.items():
            began = time.perf_counter()
            predictor.run(feeds)
            times[target].append((time.perf_counter() - began) * 1e3)
    medians = {target: float(np.median(ms)) for target, ms in times.items()}
    best = min(medians, key=lambda t: medians[t])
    for target, ms in sorted(medians.items(), key=lambda item: item[1]):
        reasons.insert(
            len(reasons),
            (
                target,
                True,
                tr("{ms:.3f} ms, median of {tune_runs} runs", ms=ms, tune_runs=TUNE_RUNS),
            ),
        )
    chosen = made[best]
    ordered = sorted(reasons, key=lambda r: r[0] != best)
    chosen.decision = Decision(best, chosen.precision, ordered, chosen.decision.layers)
    return chosen
