"""What a model's outputs say: a line of text, classes, boxes, masks, or plain values.

The native runtime reads them, as it does on a device; here they get their words.
"""

from __future__ import annotations

import html
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.adapter import Adapter
from lite_engine.errors import UsageError
from lite_engine.ir.bfloat16 import widened
from lite_engine.pipeline.native import read_outputs
from lite_engine.preprocess import Placement, Preprocess
from lite_messages import tr, trn

from .pictures import class_name, image_of, mask_items

if TYPE_CHECKING:
    from lite_engine.ir import QuantParams
    from lite_engine.model_file import Model
    from lite_engine.runtime.shares import Share

TOP = 5


@dataclass
class Answer:
    """`kind` is "text" (items: letters in order), "top" (classes, best first), "boxes" (best first,
    in parts of the picture) or "values" (one item per class of a mask, or per output); items are
    as `lite_widgets.ResultCard` takes them. `mask` (H,W) is the class of each pixel, over the
    picture; `image` (H,W,3) uint8 what a model made that makes images."""

    kind: str
    text: str
    items: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""
    mask: np.ndarray | None = None
    image: np.ndarray | None = None
    #: x0, y0, x1, y1 of what the mask covers, in parts of the picture: a center that was cut out.
    window: tuple[float, float, float, float] = (0.0, 0.0, 1.0, 1.0)

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
    size: tuple[int, int] | None = None,
    placed: Placement | None = None,
    pixels: Preprocess | None = None,
    picture: tuple[int, int] | None = None,
    **how: Any,
) -> Answer:
    """Reads the outputs as the adapter `how` says, or as the first kind that fits their shapes;
    where none does, the answer is their ranges. `size` is the input's (height, width), for boxes in
    pixels; `placed` says where the picture lies in it, otherwise the input is taken for the
    picture; `pixels` how numbers become pixels, for outputs that are images; things have masks
    where the picture's own (width, height) is known. Raises UsageError for an adapter that is not
    valid."""
    arrays = [np.asarray(a) for a in outputs.values()]
    readable = all(a.dtype.kind in "fiub" and a.ndim <= 8 for a in arrays)
    if not arrays or not readable:
        return _values(outputs)
    if placed is None:
        whole = (size[1], size[0]) if size else (1, 1)
        placed = Placement(whole, whole, (0, 0))
    document: dict[str, Any] = {
        "labels": list(labels),
        "read": how,
        "placed": [*placed.size, *placed.scaled, *placed.offset],
    }
    if picture is not None:
        document["picture"] = list(picture)
    if pixels is not None:
        document["pixels"] = {"size": [1, 1], **pixels.to_dict()}
    made = read_outputs(json.dumps(document).encode(), arrays)
    kind, found, scores = made["kind"], made["found"], made["classes"]
    if kind == "text":
        letters = [{"label": labels[i] if i >= 0 else " ", "score": s} for i, s in scores]
        return Answer("text", "".join(str(item["label"]) for item in letters), letters)
    if kind == "top" and scores[0][1] is None:  # infinite: an overflow, or no class at all
        return _values(outputs)
    if kind == "top":
        return _top(scores, labels, arrays[0].size)
    if kind == "boxes" or kind == "keypoints":
        return _boxes(found, labels)
    if kind == "regions":
        items = [
            {"label": tr("region {number}", number=n), **_placed(item)}
            for n, item in enumerate(found, 1)
        ]
        return Answer("boxes", trn("{n} region", "{n} regions", len(items)), items)
    if kind == "mask":
        return _mask(made["mask"], labels, placed)
    if kind == "image":
        return _image(image_of(made["image"]))
    if kind == "vector" and scores:
        return _top(scores, labels, len(labels))
    return _values(outputs)


def _values(outputs: Mapping[str, np.ndarray]) -> Answer:
    return Answer("values", "", [_value(n, np.asarray(a)) for n, a in outputs.items()])


def _top(scores: list[tuple[int, float | None]], labels: Sequence[str], classes: int) -> Answer:
    named = labels if len(labels) >= classes else ()
    items = [{"label": named[i] if named else str(i), "score": s, "index": i} for i, s in scores]
    made = Answer("top", str(items[0]["label"]) if items else "", items)
    if labels and not named:
        made.note = tr(
            "class names are not shown: there are {labels} labels for {classes} classes",
            labels=len(labels),
            classes=classes,
        )
    return made


def _placed(item: Mapping[str, Any]) -> dict[str, Any]:
    """Score and box of something that was found, and its keypoints or mask."""
    made = {"score": item["score"][0], "box": item["box"]}
    return made | {key: item[key] for key in ("keypoints", "mask") if key in item}


def _boxes(found: list[dict[str, Any]], labels: Sequence[str]) -> Answer:
    items = [
        {"label": class_name(labels, i["index"]), "index": i["index"], **_placed(i)} for i in found
    ]
    return Answer("boxes", listed([item["label"] for item in items]), items)


def _mask(mask: Mapping[str, Any], labels: Sequence[str], placed: Placement) -> Answer:
    runs = np.array(mask["runs"], np.int64).reshape(-1, 2)
    seen = np.repeat(runs[:, 0], runs[:, 1]).reshape(mask["size"])
    what = tr("the image") if placed.whole else tr("the center of the image")
    items = mask_items(seen, labels, what)
    said = ", ".join(f"{m['label']} {m['text'].partition(' of')[0]}" for m in items)
    x0, y0, x1, y1 = placed.to_picture([0.0, 0.0, 1.0, 1.0]).tolist()
    return Answer("values", said, items, mask=seen, window=(x0, y0, x1, y1))


def _image(image: np.ndarray) -> Answer:
    height, width = image.shape[:2]
    return Answer(
        "values", tr("image of {width}x{height}", width=width, height=height), image=image
    )


def answer_of(
    model: Model,
    feeds: Mapping[str, np.ndarray],
    outputs: Mapping[str, np.ndarray],
    labels: Sequence[str] | None = None,
    *,
    picture: tuple[int, int] | None = None,
    adapter: Adapter | None = None,
    **options: Any,
) -> Answer:
    """`answer` with the model's own labels and adapter (or the one given); integers with a scale
    and bf16 are turned into what they stand for. `picture` is the (width, height) of the image that
    the input was made of. `options` hold where the adapter leaves them open. Raises LiteError for
    an adapter's function that fails."""
    outputs = widened(outputs, lambda: model.graph)
    whole = any(a.dtype.kind in "iu" for a in outputs.values())  # only then the graph is needed
    quants = {v.name: v.quant for v in model.graph.outputs} if whole else {}
    real = {n: real_of(a, quants.get(n)) for n, a in outputs.items()}
    known = model.metadata.get("labels", ()) if labels is None else labels
    size = _input_size(feeds)
    own = adapter or Adapter.of(model.metadata)
    if own.function is not None:
        return of_function(own.call(real, picture), list(known))
    pixels = Preprocess.of(model.metadata)
    placed = None
    if picture is not None and size is not None:
        placed = replace(pixels, size=size).placed(picture)
    said = {**options, **own.options()}
    made = answer(
        real, list(known), size=size, placed=placed, pixels=pixels, picture=picture, **said
    )
    if made.kind == "top" and any(quants.values()):
        (integers,) = outputs.values()
        for item in made.items:
            item["raw"] = int(integers.reshape(-1)[item["index"]])
    return made


def of_function(made: Any, labels: Sequence[str]) -> Answer:
    """What an adapter's function returned → an Answer: a text; class scores (1-D floats); boxes
    (dicts with label, score and box or keypoints, in parts of the image); classes of pixels (2-D
    integers); an image (H,W,3) uint8; or an Answer. Raises UsageError."""
    if isinstance(made, Answer):
        return made
    if isinstance(made, str):
        return Answer("text", made, [{"label": letter, "score": 1.0} for letter in made])
    if isinstance(made, list) and all(isinstance(b, dict) and _has_box(b) for b in made):
        made = [b if "box" in b else {**b, "box": _around(b["keypoints"])} for b in made]
        boxes = [{"score": 1.0, **b, "label": str(b.get("label", ""))} for b in made]
        boxes.sort(key=lambda b: -b["score"])
        return Answer("boxes", listed([b["label"] for b in boxes]), boxes)
    array = np.asarray(made)
    if array.ndim == 1 and array.size > 1 and array.dtype.kind in "fiu":
        return answer({"scores": array}, labels, kind="top")
    if array.ndim == 2 and array.dtype.kind in "iu":
        return Answer("values", "", mask_items(array, labels, tr("the image")), mask=array)
    if array.ndim == 3 and array.dtype == np.uint8:
        return Answer("values", "", image=array)
    raise UsageError(
        tr("the adapter's function returned {kind}", kind=type(made).__name__),
        fix=tr("return a text, class scores, boxes, classes of pixels or an image"),
    )


def _has_box(item: dict[str, Any]) -> bool:
    return "box" in item or bool(item.get("keypoints"))


def _around(keypoints: Sequence[Sequence[float]]) -> list[float]:
    """x0, y0, x1, y1 of keypoints."""
    xs, ys = [float(p[0]) for p in keypoints], [float(p[1]) for p in keypoints]
    return [min(xs), min(ys), max(xs), max(ys)]


def real_of(array: np.ndarray, quant: QuantParams | None) -> np.ndarray:
    """What integers of one scale stand for; any other array as it is."""
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


def listed(names: Sequence[str]) -> str:
    """How many of each, in order of the first: 2 cat, 1 dog."""
    counts = Counter(names)
    return ", ".join(f"{n} {name}" for name, n in counts.items()) or tr(
        "nothing above the threshold"
    )


def _value(name: str, array: np.ndarray) -> dict[str, Any]:
    shape = "×".join(map(str, array.shape)) or "scalar"
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    text = f"{finite.min():.4g} … {finite.max():.4g}" if finite.size else tr("no finite values")
    text = text.replace("-", "\N{MINUS SIGN}") if finite.size else text
    if finite.size and (rest := array.size - finite.size):
        text = f"{text}, {_not_finite(rest)}"
    return {"label": name, "shape": shape, "text": text}


def _not_finite(count: int) -> str:
    return trn("{n} value is not finite", "{n} values are not finite", count)


def score_text(item: Mapping[str, Any], digits: int = 3) -> str:
    """The score of a class; a dash for a class that was ruled out by minus infinity."""
    score = item["score"]
    return "\N{EN DASH}" if score is None else f"{score:.{digits}f}"


@dataclass
class Run:
    """One inference: where, what came out, what it says. `ms` is this one run, not a profile;
    `shares` are each backend's of the layers and of their time in it, `idle` layers needed no
    computation, `note` is what to know before the answer; `feeds` and `image` are the input, as
    the session has it."""

    backend: str
    precision: str
    version: str
    outputs: dict[str, np.ndarray]
    answer: Answer
    ms: float
    shares: dict[str, Share] = field(default_factory=dict)
    note: str = ""
    idle: int = 0
    feeds: Mapping[str, np.ndarray] = field(default_factory=dict)
    image: bytes = b""

    @property
    def text(self) -> str:
        return self.answer.text

    @property
    def gist(self) -> str:
        """What tells two answers apart: the text, or where there is none, what is not finite."""
        if self.answer.kind != "values" or self.text:
            return self.text
        arrays = [np.asarray(a) for a in self.outputs.values()]
        count = sum(int((~np.isfinite(a)).sum()) for a in arrays if a.dtype.kind == "f")
        return _not_finite(count) if count else ""

    def same_input(self, other: Run) -> bool:
        """Were both given the same values? Answers to different inputs say nothing of each
        other."""
        return self.feeds is other.feeds or (
            self.feeds.keys() == other.feeds.keys()
            and all(
                np.array_equal(array, other.feeds[name], equal_nan=array.dtype.kind == "f")
                for name, array in self.feeds.items()
            )
        )

    def __getitem__(self, name: str) -> np.ndarray:
        return self.outputs[name]

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape('␣' if item['label'] == ' ' else item['label'])}</td>"
            f"<td>{item.get('text') or score_text(item)}</td>"
            + (f"<td>{tr('raw {value}', value=item['raw'])}</td>" if "raw" in item else "")
            + "</tr>"
            for item in self.answer.items
        )
        head = f"{self.backend} {self.precision} · {html.escape(self.text)}"
        note = f"<p>{html.escape(tr('note: {note}', note=self.note))}</p>" if self.note else ""
        return f"{note}<b>{head}</b><table>{rows}</table>"

    def __repr__(self) -> str:
        note = f"{self.note}; " if self.note else ""
        return f"<Run on {self.backend} {self.precision}: {note}{self.text or list(self.outputs)}>"
