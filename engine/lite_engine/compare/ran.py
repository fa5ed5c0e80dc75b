"""Which backends ran the layers that a comparison is about: two sides that agree say little about
OpenCL where the CPU ran most layers of both."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from lite_messages import tr

from ..model_file.precision import CPU_TARGETS
from ..runtime.shares import Share, layer_times, sentence, shares
from .comparison import LayerDifference
from .matched import Matched
from .side import Side
from .words import called

Shares = dict[str, dict[str, Share]]


def with_backends(
    on: Matched, rows: Sequence[LayerDifference]
) -> tuple[list[LayerDifference], Shares, str]:
    """The rows with their backends in the last whole runs, what each backend ran, and that as a
    sentence."""
    found: Shares = {}
    said: dict[str, str] = {}
    told: dict[str, list[str]] = {}
    if not rows:
        return [], found, ""
    for key, side in (("baseline", on.a), ("candidate", on.b)):
        if isinstance(side, Side):
            told[f"backend_{key}"], found[key], said[key] = _of_side(on, key, side, rows)
    rows = [
        replace(row, **dict(zip(told, backends, strict=True)))
        for row, backends in zip(rows, zip(*told.values(), strict=True), strict=True)
    ]
    texts = {key: text for key, text in said.items() if text}
    if len(texts) == 2 and texts["baseline"] == texts["candidate"]:
        ran = tr("on both sides {said}", said=texts["baseline"])
    elif len(texts) == 2:
        a, b = (called(side.label) for side in (on.a, on.b))
        ran = f"{a}: {texts['baseline']}; {b}: {texts['candidate']}"
    else:
        ran = next(iter(texts.values()), "")
    return rows, found, ran


def _of_side(
    on: Matched, key: str, side: Side, rows: Sequence[LayerDifference]
) -> tuple[list[str], dict[str, Share], str]:
    """The backends of the rows' layers on a side, and what a person has to know of it; no text
    where its own backend, no device, ran it all."""
    predictor, feeds = side.predictor, on.feeds if key == "baseline" else on.feeds_b
    known = layer_times(predictor.execution({n: x.shape for n, x in feeds.items()}))
    names, told = set(), []
    for row in rows:
        pair = on.pair_of[row.value_candidate]
        node = pair.node_a if key == "baseline" else pair.node_b
        name = node.name if node is not None else ""
        names.add(name)
        told.append(known.get(name, ("", 0))[0])
    found = shares((known[n] for n in names if n in known), timed=not predictor.emulated)
    idle = len(names - known.keys())
    if found.keys() <= {"cpu"} and side.backend in CPU_TARGETS:
        return told, found, ""
    if found.keys() == {side.backend} == {"reference"}:
        return told, found, ""
    return told, found, sentence(found, side.backend, of="them", idle=idle)


__all__ = ["with_backends"]
