"""Which backends ran the layers that a comparison is about: two sides that agree say little about
OpenCL where the CPU ran most layers of both."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from ..runtime.shares import layer_times, sentence, shares
from .comparison import Comparison
from .comparison_run import ComparisonRun
from .side import Side


def note_shares(result: Comparison, run: ComparisonRun) -> None:
    """Writes `shares`, `ran` and the rows' backends, of the last whole runs."""
    if not result.layers:
        return
    said: dict[str, str] = {}
    for key, side, feeds in (("baseline", run.a, run.feeds), ("candidate", run.b, run.feeds_b)):
        if isinstance(side, Side):
            said[key] = _of_side(key, side, feeds, result, run)
    texts = {key: text for key, text in said.items() if text}
    if len(texts) == 2 and texts["baseline"] == texts["candidate"]:
        result.ran = f"on both sides {texts['baseline']}"
    elif len(texts) == 2:
        result.ran = (
            f"{result.baseline}: {texts['baseline']}; {result.candidate}: {texts['candidate']}"
        )
    else:
        result.ran = next(iter(texts.values()), "")


def _of_side(
    key: str, side: Side, feeds: Mapping[str, np.ndarray], result: Comparison, run: ComparisonRun
) -> str:
    """What a person has to know of a side; empty where its own backend, no device, ran it all."""
    predictor = side.predictor
    known = layer_times(predictor.execution({n: x.shape for n, x in feeds.items()}))
    names = set()
    for row in result.layers:
        pair = run.pair_of[row.value_candidate]
        node = pair.node_a if key == "baseline" else pair.node_b
        name = node.name if node is not None else ""
        names.add(name)
        setattr(row, f"backend_{key}", known.get(name, ("", 0))[0])
    found = shares((known[n] for n in names if n in known), timed=not predictor.emulated)
    result.shares[key] = found
    plain = found.keys() <= {"cpu"} and side.backend in ("x86", "arm")
    if plain or found.keys() == {side.backend} == {"reference"}:
        return ""
    return sentence(found, side.backend, of="them", idle=len(names - known.keys()))
