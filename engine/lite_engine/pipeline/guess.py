"""Which family of ready pipelines do models belong to? Only shapes and operators count, so that it
is a guess: whoever has trained the model confirms it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from lite_messages import tr

from ..model_file import Model
from .front_end import split_front_end

_STRIDES = (8, 16, 32)
#: Boxes of UltraFace at 320x240 and 640x480.
_ULTRAFACE = (4420, 17640)


@dataclass(frozen=True)
class Guess:
    """A family, and what speaks for it."""

    family: str
    evidence: str


@dataclass(frozen=True)
class _Seen:
    """A model's input (height, width), and its outputs' shapes without the batch; None is open."""

    size: tuple[int | None, int | None]
    outputs: list[tuple[int | None, ...]]
    last: tuple[str, str]  # operator and fused activation that make the only output

    @property
    def cells(self) -> int | None:
        """Of the grids of the usual strides."""
        return self.cells_of(_STRIDES)

    def cells_of(self, strides: Sequence[int]) -> int | None:
        height, width = self.size
        if height is None or width is None:
            return None
        return sum((height // s) * (width // s) for s in strides)


def guess(models: Sequence[Model]) -> list[Guess]:
    """The families that these models may be, the likeliest first; empty without evidence."""
    if len(models) == 1:
        if split_front_end(models[0]):
            return [Guess("keywords", tr("it begins with TensorFlow's sound front end"))]
        return _of_one(_look(models[0]))
    kinds = [_role(_look(model)) for model in models]
    known = {("map", "classes", "line"): "ppocr", ("map", "line"): "text",
             ("boxes", "line"): "plates"}  # fmt: skip
    family = known.get(tuple(kinds))
    return [Guess(family, ", ".join(_ROLES[kind]() for kind in kinds))] if family else []


_ROLES = {
    "map": lambda: tr("a probability map"),
    "classes": lambda: tr("class scores"),
    "line": lambda: tr("scores of letters"),
    "boxes": lambda: tr("boxes"),
}


def _role(seen: _Seen) -> str:
    """What a model of several gives."""
    if _is_map(seen):
        return "map"
    if _is_line(seen):
        return "line"
    found = _of_one(seen)
    if not found:
        return ""
    return {"classification": "classes"}.get(found[0].family, "boxes")


def _look(model: Model) -> _Seen:
    graph = model.graph
    shape = graph.inputs[0].shape or () if graph.inputs else ()
    dims = [d if isinstance(d, int) else None for d in shape]
    size: tuple[int | None, int | None] = (None, None)
    if len(dims) == 4:
        size = (dims[1], dims[2]) if dims[3] in (1, 3) else (dims[2], dims[3])
    outputs = [
        tuple(d if isinstance(d, int) else None for d in (value.shape or ())[1:])
        for value in graph.outputs
    ]
    made = graph.outputs[0].producer if len(graph.outputs) == 1 else None
    last = (made.op, str(made.attrs.get("activation", ""))) if made is not None else ("", "")
    return _Seen(size, outputs, last)


def _is_map(seen: _Seen) -> bool:
    """One plane of probabilities as large as the input."""
    planes = [d for d in seen.outputs[0] if d != 1]
    return len(seen.outputs) == 1 and "Sigmoid" in seen.last and len(seen.outputs[0]) == 3 \
        and seen.outputs[0][0] == 1 and len(planes) == 2  # fmt: skip


def _is_line(seen: _Seen) -> bool:
    """(T,C) or (C,T) scores of letters: the larger one is the dictionary."""
    dims = [d for d in seen.outputs[0] if d != 1] if len(seen.outputs) == 1 else []
    if len(dims) != 2 or len(seen.outputs[0]) > 3:
        return False
    return max((d for d in dims if d), default=0) > 36 and seen.cells not in dims


def _of_one(seen: _Seen) -> list[Guess]:
    shapes = seen.outputs
    told = ", ".join("×".join("?" if d is None else str(d) for d in shape) for shape in shapes)
    evidence = tr("its outputs are {shapes}", shapes=told)
    if len(shapes) == 2 and sorted(len(s) for s in shapes) == [2, 2]:
        boxes, scores = sorted(shapes, key=lambda s: s[1] != 4)
        if boxes[1] == 4 and boxes[0] == scores[0]:
            faces = boxes[0] in _ULTRAFACE and scores[1] == 2
            return [Guess("ultraface" if faces else "ssd", evidence)]
    if len(shapes) == 4 and [len(s) for s in shapes][:3] == [2, 1, 1] and shapes[0][1] == 4:
        return [Guess("ssd", tr("it ends with TensorFlow Lite's post-processing"))]
    if len(shapes) == 1 and shapes[0][-1:] == (7,) and len(shapes[0]) == 3:
        return [Guess("ssd", tr("it ends with Caffe's DetectionOutput"))]
    if grids := _grids(seen):
        return [Guess(family, evidence) for family in grids]
    if len(shapes) != 1:
        return []
    (shape,) = shapes
    wide = [d for d in shape if d != 1]
    if len(shape) == 2 and len(wide) == 2 and seen.cells:
        if shape[0] == seen.cells_of((*_STRIDES, 64)) and (shape[1] or 0) > 32:
            return [Guess("nanodet-plus", evidence)]  # scores and four distributions of 8
        return [Guess(family, evidence) for family in _rows(wide, seen.cells)]
    if len(wide) == 1 and wide[0] is not None and wide[0] > 1:
        return [Guess("classification", evidence)]
    if len(shape) == 3 and len(wide) == 3 and None not in shape:
        classes = min(d for d in shape if d)
        if classes <= 256 and sorted(d for d in shape if d)[1] > max(8, classes):
            found = (
                "heatmaps" if classes in (16, 17, 21) and seen.last[0] == "Conv" else "segmentation"
            )
            other = "segmentation" if found == "heatmaps" else None
            return [Guess(f, evidence) for f in (found, other) if f]
    return []


def _rows(dims: Sequence[int | None], cells: int) -> list[str]:
    """Rows of boxes, by how many there are for each cell of the grids."""
    if 3 * cells in dims:
        return ["yolo"]
    if cells not in dims:
        return []
    columns = dims[0] if dims[1] == cells else dims[1]
    if columns == 56:  # a box, its score and 17 keypoints
        return ["pose", "yolo"]
    return ["yolo"] if dims[1] == cells else ["yolox", "yolo"]


def _grids(seen: _Seen) -> list[str]:
    """Three outputs of the usual strides, or two of the coarser ones."""
    height, width = seen.size
    if height is None or width is None or len(seen.outputs) not in (2, 3):
        return []
    strides = _STRIDES[-len(seen.outputs) :]
    columns = set()
    for stride, shape in zip(strides, sorted(seen.outputs, key=_area, reverse=True), strict=True):
        grid = [height // stride, width // stride]
        rest = [d for d in shape if d is not None]
        for side in grid:
            if side not in rest:
                return []
            rest.remove(side)
        count = 1
        for d in rest:
            count *= d
        columns.add(count)
    if len(columns) != 1:
        return []
    (count,) = columns
    anchored = count % 3 == 0 and count // 3 > 5
    if len(strides) == 2:
        return ["yolov3-tiny"] if anchored else []
    return (["yolov5", "yolov3"] if anchored else []) + (["yolov8"] if count > 64 else [])


def _area(shape: Sequence[int | None]) -> int:
    area = 1
    for d in shape:
        area *= d or 1
    return area
