"""How a picture becomes the input, as choices in a step's header."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lite_engine.errors import UsageError
from lite_engine.preprocess import PRESETS, Preprocess
from lite_messages import tr

from ..inputs import may_be_image
from ..session import Session
from ._base import UNDER_WAY

#: How pixels become floats, where the file does not say it.
_PIXELS = [["unit", "0…1"], ["pm1", "−1…1"], ["imagenet", "ImageNet"], ["raw", "0…255"]]
_OWN = ["own", "custom"]  # that session.prepare was told
#: How a picture of another shape meets the input's size.
_FITS = [["stretch", tr("stretch")], ["crop", tr("center crop")], ["letterbox", tr("letterbox")]]


def choices(session: Session) -> list[dict[str, Any]]:
    """`StepHeader.selects` for a model of one picture."""
    graph = session.graph
    types = [v.type for v in graph.inputs if may_be_image(v.shape) and v.dtype is not None]
    if not len(types) == len(graph.inputs) == 1:
        return []
    now = chosen(session)
    own = [] if now["fit"] in dict(_FITS) else [[now["fit"], now["fit"]]]
    busy = bool(session.jobs)
    fits = {"name": "fit", "label": tr("Resize"), "options": [*_FITS, *own], "disabled": busy,
            "why": UNDER_WAY,
            "says": tr("How an image of another size is brought to the input's size")}  # fmt: skip
    if session.pixels_known or not types[0].dtype.is_float:
        return [fits]
    numbers = [*_PIXELS, _OWN] if now["pixels"] == _OWN[0] else _PIXELS
    return [
        {
            "name": "pixels",
            "label": tr("Pixels"),
            "options": numbers,
            "disabled": busy,
            "why": UNDER_WAY,
        },
        fits,
    ]


def chosen(session: Session) -> dict[str, str]:
    """What the model says now, as `StepHeader.values`."""
    try:
        said = Preprocess.of(session.metadata)
    except UsageError:
        said = Preprocess()  # choosing says it anew
    known = {(v["mean"], v["std"]): name for name, v in PRESETS.items()}
    unsaid = said.mean is None or said.std is None
    pixels = _PIXELS[0][0] if unsaid else known.get((said.mean, said.std), _OWN[0])
    return {"pixels": pixels, "fit": said.fit_word}


def prepare(session: Session, values: Mapping[str, str]) -> bool:
    """Tells the session what was chosen; was anything new? Raises UsageError while a job runs,
    which reads its pictures by what was chosen before."""
    before = chosen(session)
    pixels, fit = (values.get(k, before[k]) for k in ("pixels", "fit"))
    if {"pixels": pixels, "fit": fit} == before:
        return False
    if session.jobs:
        raise UsageError(
            tr("{title} still runs", title=session.jobs[0].title),
            fix=tr("wait for it or cancel it"),
        )
    words = [pixels] if pixels != before["pixels"] else []
    session.prepare(",".join([*words, *([fit] if fit != "stretch" or not words else [])]))
    return True
