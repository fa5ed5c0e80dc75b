"""What a model's outputs say: a line of text, classes, boxes, masks, or plain values."""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.errors import UsageError, reason_of
from lite_engine.preprocess import Placement, Preprocess

from .pictures import OVERLAP, THRESHOLD, find_boxes, find_mask, is_one_row
from .regions import find_regions

if TYPE_CHECKING:
    from lite_engine.ir import QuantParams
    from lite_engine.model_file import Model
    from lite_engine.runtime.shares import Share

TOP = 5
#: how dictionaries name the class that stands for no letter
_BLANKS = ("-", "_", "<blank>", "blank", "[blank]", "")
#: fewer labels than this are not taken for a dictionary that lacks its blank
_DICTIONARY = 10


@dataclass
class Answer:
    """`kind` is "text" (items: letters in order), "top" (classes, best first), "boxes" (best first,
    in parts of the picture) or "values" (one item per class of a mask, or per output); items are
    as `lite_widgets.ResultCard` takes them."""

    kind: str
    text: str
    items: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""

    @property
    def confidence(self) -> float | None:
        """Mean over the letters of a line; a mean of classes or boxes would say nothing."""
        scores = [item["score"] for item in self.items if self.kind == "text"]
        return float(np.mean(scores)) if scores else None

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "text": self.text, "items": self.items}


def answer(
    outputs: Mapping[str, np.ndarray],
    labels: Sequence[str],
    *,
    top: int = TOP,
    size: tuple[int, int] | None = None,
    placed: Placement | None = None,
    threshold: float = THRESHOLD,
    overlap: float = OVERLAP,
) -> Answer:
    """Reads the outputs by their shapes: a line of text (CTC), a classifier's vector, boxes,
    classes of pixels, regions of a map; otherwise their ranges. `size` is the input's (height,
    width), for boxes in pixels; `placed` says where the picture lies in it, otherwise the input is
    taken for the picture."""
    arrays = [np.asarray(a) for a in outputs.values()]
    if not all(a.size and not (a.dtype.kind == "f" and np.isnan(a).any()) for a in arrays):
        return Answer("values", "", [_value(name, array) for name, array in outputs.items()])
    if len(arrays) == 1 and arrays[0].dtype.kind in "fiu":
        squeezed = np.squeeze(arrays[0])
        if labels and squeezed.ndim == 2:
            alphabet = _alphabet(squeezed.shape, labels)
            if alphabet is not None:
                return _line(squeezed if alphabet[2] else squeezed.T, *alphabet[:2])
        if squeezed.ndim == 1 and squeezed.size >= 2 and not is_one_row(arrays[0]):
            fits = len(labels) >= squeezed.size
            found = _top(squeezed, labels if fits else (), top)
            if labels and not fits:
                found.note = (
                    f"class names are not shown: there are {len(labels)} labels for "
                    f"{squeezed.size} classes"
                )
            return found
    boxes = find_boxes(outputs, labels, size, threshold, overlap)
    if boxes is not None:
        return Answer("boxes", _listed([b["label"] for b in boxes]), _on_picture(boxes, placed))
    mask = find_mask(outputs, labels, placed)
    if mask is not None:
        said = ", ".join(f"{m['label']} {m['text'].partition(' of')[0]}" for m in mask)
        return Answer("values", said, mask)
    regions = find_regions(outputs)
    if regions is not None:
        return Answer("boxes", f"{len(regions)} regions", _on_picture(regions, placed))
    return Answer("values", "", [_value(name, array) for name, array in outputs.items()])


def answer_of(
    model: Model,
    feeds: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
    labels: Sequence[str] | None = None,
    *,
    picture: tuple[int, int] | None = None,
    **options: Any,
) -> Answer:
    """`answer` with the model's own labels; integers with a scale are turned into what they stand
    for. `picture` is the (width, height) of the image that the input was made of."""
    whole = any(a.dtype.kind in "iu" for a in outputs.values())  # only then the graph is needed
    quants = {v.name: v.quant for v in model.graph.outputs} if whole else {}
    real = {n: _real(a, quants.get(n)) for n, a in outputs.items()}
    known = model.metadata.get("labels", ()) if labels is None else labels
    size = _input_size(feeds)
    placed = None
    if picture is not None and size is not None:
        placed = replace(Preprocess.of(model.metadata), size=size).placed(picture)
    return answer(real, list(known), size=size, placed=placed, **options)


def _on_picture(items: list[dict[str, Any]], placed: Placement | None) -> list[dict[str, Any]]:
    """The boxes in parts of the picture instead of the input's."""
    if placed is None:
        return items
    return [{**item, "box": placed.to_picture(item["box"]).tolist()} for item in items]


def _real(array: np.ndarray, quant: QuantParams | None) -> np.ndarray:
    if quant is None or array.dtype.kind not in "iu" or np.ndim(quant.scale):
        return array
    return (array.astype(np.float32) - np.float32(quant.zero_point)) * np.float32(quant.scale)


def _input_size(feeds: Mapping[str, np.ndarray]) -> tuple[int, int] | None:
    """(height, width) of the first input that is an image."""
    shape = next((a.shape for a in feeds.values() if a.ndim == 4), None)
    if shape is None:
        return None
    height, width = shape[1:3] if shape[3] in (1, 3) else shape[2:]
    return int(height), int(width)


def read_labels(path: str | Path) -> list[str]:
    """One label per line. Raises UsageError."""
    try:
        return Path(path).read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"labels cannot be read ({reason_of(error)})", where=path) from None


def _listed(names: Sequence[str]) -> str:
    """How many of each, in order of the first: 2 cat, 1 dog."""
    counts = Counter(names)
    return ", ".join(f"{n} {name}" for name, n in counts.items()) or "nothing above the threshold"


def _alphabet(shape: tuple[int, ...], labels: Sequence[str]) -> tuple[list[str], int, bool] | None:
    """(a label per class, the blank's index, whether classes are the last axis) of CTC scores.

    As many classes as labels: the blank is among them, last if that is named like one, else first.
    One or two classes more: a dictionary without the blank, which comes first, and perhaps without
    the space, which comes last (PaddleOCR).
    """
    for classes, last in ((shape[1], True), (shape[0], False)):
        if classes == len(labels):
            at_end = labels[-1] in _BLANKS and labels[0] not in _BLANKS
            return list(labels), classes - 1 if at_end else 0, last
    for classes, last in ((shape[1], True), (shape[0], False)):
        if 0 < classes - len(labels) <= 2 and len(labels) >= _DICTIONARY:
            return ["", *labels, " "][:classes], 0, last
    return None


def _line(scores: np.ndarray, labels: Sequence[str], blank: int) -> Answer:
    """(T,C) → best label of each step, repeats merged, blanks dropped; logits become
    probabilities."""
    if scores.min() < 0 or scores.max() > 1:
        scores = np.exp(scores.astype(np.float64) - scores.max(axis=1, keepdims=True))
        scores /= scores.sum(axis=1, keepdims=True)
    best = scores.argmax(axis=1)
    fresh = np.concatenate([[True], best[1:] != best[:-1]])
    steps = np.flatnonzero(fresh & (best != blank))
    items = [{"label": labels[best[t]], "score": float(scores[t, best[t]])} for t in steps]
    return Answer("text", "".join(item["label"] for item in items), items)


def _top(scores: np.ndarray, labels: Sequence[str], count: int) -> Answer:
    order = np.argsort(-scores.astype(np.float64), kind="stable")[:count]
    names = [labels[i] if labels else str(i) for i in order]
    items = [
        {"label": name, "score": float(scores[i]), "index": int(i)} for name, i in zip(names, order)
    ]
    return Answer("top", names[0] if names else "", items)


def _value(name: str, array: np.ndarray) -> dict[str, Any]:
    shape = "×".join(map(str, array.shape)) or "scalar"
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    text = f"{finite.min():.4g} … {finite.max():.4g}" if finite.size else "no finite values"
    return {"label": name, "shape": shape, "text": text}


def mark_different(a: Answer, b: Answer) -> None:
    """Marks the letters or classes of `b` that `a` has otherwise."""
    for i, item in enumerate(b.items):
        item["bad"] = i >= len(a.items) or a.items[i]["label"] != item["label"]
    if len(b.items) < len(a.items) and b.kind == "text":
        b.items += [
            {"label": "∅", "score": 0.0, "bad": True} for _ in range(len(a.items) - len(b.items))
        ]


@dataclass
class Run:
    """One inference: where, what came out, what it says. `ms` is this one run, not a profile;
    `shares` are each backend's of the layers and of their time in it."""

    backend: str
    precision: str
    version: str
    outputs: dict[str, np.ndarray]
    answer: Answer
    ms: float
    shares: dict[str, Share] = field(default_factory=dict)

    @property
    def text(self) -> str:
        return self.answer.text

    def __getitem__(self, name: str) -> np.ndarray:
        return self.outputs[name]

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(item['label'])}</td>"
            f"<td>{item.get('text') or format(item['score'], '.3f')}</td></tr>"
            for item in self.answer.items
        )
        head = f"{self.backend} {self.precision} · {html.escape(self.text)}"
        return f"<b>{head}</b><table>{rows}</table>"

    def __repr__(self) -> str:
        return f"<Run on {self.backend} {self.precision}: {self.text or list(self.outputs)}>"
