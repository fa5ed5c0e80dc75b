"""Measuring, on this machine's CPU, whether skipping the zeros of a layer's weights is faster.

Both forms of all layers are measured at once: in one program every layer skips its zeros, in the
other none does, and the two take turns. Copies beside a layer are part of its time.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from lite_messages import tr

from ..backends import Measured
from ..errors import UsageError
from ..ops._sparse import sparse_and_dense
from ..plan import Plan
from ..plan.select import kernels_for
from ..runtime import Predictor, host_target
from ..runtime.inputs import random_feeds
from ._profile import profile

#: Turns of both programs, and the runs of each turn.
TURNS, RUNS = 5, 4
#: A form is changed where the other one saves more than this share of its time.
LEAST_GAIN = 0.03


def tune_forms(predictor: Predictor, feeds: Mapping[str, Any] | None = None) -> list[Measured]:
    """Measures layers with many zeros of a predictor that runs on this machine's CPU; from then on
    it, and its model for this target, take the faster form. `feeds` are random where None.
    Raises UsageError for another backend, ShapeError when a size is open and `feeds` is None.
    """
    if predictor.backend != host_target() or predictor.device is not None:
        raise UsageError(
            tr("forms of layers are measured on this machine's CPU, but this predictor runs on "
               "{backend}", backend=predictor.backend)
        )  # fmt: skip
    feeds = predictor.check_feeds(feeds or random_feeds(predictor.model))
    forms = _forms(predictor, _plan(predictor, feeds))
    if not forms:
        return []
    times, now = _times(predictor, feeds, forms), _kernels(predictor, feeds)
    found, changed = [], {}
    for name, (sparse, dense) in forms.items():
        seconds = {kernel: times[kernel, name] for kernel in (sparse, dense)}
        before = sparse if now[name] == sparse else dense
        way = min(seconds, key=seconds.__getitem__)
        if seconds[way] > (1 - LEAST_GAIN) * seconds[before]:
            way = before
        found.append(Measured(name, name, before, way, seconds))
        if way != before:
            changed[name] = way
    if changed:
        predictor.model.tuning.setdefault(predictor.backend, {}).update(changed)
        predictor.tuning.update(changed)
        predictor.forget_plans()
    return found


def _plan(predictor: Predictor, feeds: Mapping[str, np.ndarray]) -> Plan:
    return predictor.execution({n: a.shape for n, a in feeds.items()}).plan


def _kernels(predictor: Predictor, feeds: Mapping[str, np.ndarray]) -> dict[str, str]:
    """Layer → the kernel that runs it, where another one by name may have chosen it."""
    rows = profile(predictor, feeds, runs=1, warmup=0, roof=False).layers
    return {row.name: row.kernel.partition("__")[0] for row in rows}


def _forms(predictor: Predictor, plan: Plan) -> dict[str, tuple[str, str]]:
    """Layer → its sparse and its dense kernel, of the layers that have both."""
    found = {}
    for step in plan.steps:
        node = step.node
        if node is None or step.backend != "cpu" or step.name in predictor.overrides:
            continue
        types = [None if v is None else v.type for v in node.inputs]
        pair = sparse_and_dense([ref.name for ref in kernels_for(node, types, "cpu")[0]])
        if pair is not None:
            found[step.name] = pair
    return found


def _times(
    predictor: Predictor, feeds: Mapping[str, np.ndarray], forms: Mapping[str, tuple[str, str]]
) -> dict[tuple[str, str], float]:
    """(kernel, layer) → least seconds, with the copies beside it."""
    both = [
        Predictor(
            predictor.model, predictor.backend, threads=predictor.threads,
            precision=predictor.precision, overrides=predictor.overrides,
            tuning={**predictor.tuning, **{name: pair[i] for name, pair in forms.items()}},
        )
        for i in range(2)
    ]  # fmt: skip
    least: dict[tuple[str, str], float] = {}
    for _ in range(TURNS):
        for i, one in enumerate(both):
            rows = profile(one, feeds, runs=RUNS, warmup=1, roof=False).layers
            plan = _plan(one, feeds)
            for index, step in enumerate(plan.steps):
                if step.name in forms:
                    key = forms[step.name][i], step.name
                    ms = sum(rows[j].min_ms for j in (index, *_copies(plan, index)))
                    least[key] = min(least.get(key, np.inf), ms / 1e3)
    return least


def _copies(plan: Plan, index: int) -> list[int]:
    """Steps that are no layer and make an input of a step, or read its output."""
    step = plan.steps[index]
    return [
        i for i, other in enumerate(plan.steps)
        if other.node is None
        and (set(other.outputs) & set(step.inputs) or set(other.inputs) & set(step.outputs))
    ]  # fmt: skip
