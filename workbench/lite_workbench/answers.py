"""What a model's outputs say: a line of text, classes, or plain values."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

TOP = 5


@dataclass
class Answer:
    """`kind` is "text" (items: letters in order), "top" (classes, best first) or "values" (one
    item per output); items are as `lite_widgets.ResultCard` takes them."""

    kind: str
    text: str
    items: list[dict[str, Any]] = field(default_factory=list)

    @property
    def confidence(self) -> float | None:
        scores = [item["score"] for item in self.items if "score" in item]
        return float(np.mean(scores)) if scores else None


def answer(outputs: Mapping[str, np.ndarray], labels: Sequence[str]) -> Answer:
    """Reads the outputs by their shape: (1,T,C) with C labels is a line of text with a blank at
    label 0 (CTC); one vector is a classifier's."""
    arrays = list(outputs.values())
    if len(arrays) == 1 and arrays[0].size and arrays[0].dtype.kind in "fiu":
        squeezed = np.squeeze(arrays[0])
        if labels and squeezed.ndim == 2 and squeezed.shape[1] == len(labels):
            return _line(squeezed, labels)
        if squeezed.ndim == 1 and squeezed.size >= 2 and len(labels) in (0, squeezed.size):
            return _top(squeezed, labels)
    return Answer("values", "", [_value(name, array) for name, array in outputs.items()])


def _line(scores: np.ndarray, labels: Sequence[str]) -> Answer:
    """(T,C) → best label of each step, repeats merged, blanks dropped."""
    best = scores.argmax(axis=1)
    fresh = np.concatenate([[True], best[1:] != best[:-1]])
    steps = np.flatnonzero(fresh & (best != 0))
    items = [{"label": labels[best[t]], "score": float(scores[t, best[t]])} for t in steps]
    return Answer("text", "".join(item["label"] for item in items), items)


def _top(scores: np.ndarray, labels: Sequence[str]) -> Answer:
    order = np.argsort(-scores.astype(np.float64), kind="stable")[:TOP]
    items = [{"label": labels[i] if labels else str(i), "score": float(scores[i])} for i in order]
    return Answer("top", items[0]["label"], items)


def _value(name: str, array: np.ndarray) -> dict[str, Any]:
    shape = "×".join(map(str, array.shape)) or "scalar"
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    text = f"{finite.min():.4g} … {finite.max():.4g}" if finite.size else "no finite value"
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
    """One inference: where, what came out, what it says. `ms` is this one run, not a profile."""

    backend: str
    precision: str
    version: str
    outputs: dict[str, np.ndarray]
    answer: Answer
    ms: float

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
