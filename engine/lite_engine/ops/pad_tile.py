"""Tensors made larger or cropped: Pad, Tile, CenterCropPad."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import Dim, Node, TypeInfo
from ._conditions import all_of, separate_axes
from ._core import define_op
from ._helpers import ANY, known_ints, normalise_axes, unknown_dims
from ._records import Cost
from ._samples import Draw, Sample, ints

_MOVE = Cost()

# ---- Pad and Tile

pad = define_op(
    "Pad",
    transpose_rule="pad",
    integer_form="keep",
    carries=slice(0, 3, 2),
    inputs="x pads value? axes?", attrs={"mode": "constant"}, layout="axis",
    attr_inputs=("pads", "value", "axes"), axis_attrs=("axes",), per_axis_attrs=("pads",),
    source="ONNX Pad-25", choices={"mode": ("constant", "edge", "reflect", "wrap")},
)  # fmt: skip


def pad_widths(rank: int, pads: list[int], axes: list[int] | None) -> list[tuple[int, int]]:
    chosen = normalise_axes(axes, rank) if axes is not None else list(range(rank))
    if len(pads) != 2 * len(chosen):
        raise ShapeError(
            tr(
                "expected two pads for each of {axes} axes, found {pads}",
                pads=len(pads),
                axes=len(chosen),
            )
        )
    out = [(0, 0)] * rank
    for i, axis in enumerate(chosen):
        out[axis] = (pads[i], pads[len(chosen) + i])
    return out


def repeated_places(size: int, ends: tuple[int, int], mode: str) -> np.ndarray:
    """From which of `size` elements of an axis each element of the padded one comes, in the modes
    edge, reflect and wrap; negative ends cut."""
    before, after = ends
    kept = np.arange(max(0, -before), size - max(0, -after))
    return np.pad(kept, (max(0, before), max(0, after)), mode=mode)  # type: ignore[call-overload]


@pad.infer
def _(
    x: TypeInfo, pads: TypeInfo, value: TypeInfo | None, axes: TypeInfo | None, *, mode: str
) -> TypeInfo:
    given = known_ints(pads)
    if given is None or (axes is not None and not axes.is_const):
        return x.with_shape(unknown_dims(x.rank))
    widths = pad_widths(x.rank, given, known_ints(axes))
    out = tuple(
        d + sum(w) if isinstance(d, int) else d if w == (0, 0) else None
        for d, w in zip(x.dims, widths)
    )
    if any(isinstance(d, int) and d < 0 for d in out):
        raise ShapeError(tr("negative pads {given} remove more than the input has", given=given))
    return x.with_shape(out)


@pad.reference
def _(
    x: np.ndarray, pads: np.ndarray, value: np.ndarray | None, axes: np.ndarray | None, *, mode: str
) -> np.ndarray:
    """Elements added (or cut, when negative) at both ends of axes: constant, edge, reflect, wrap"""
    chosen = None if axes is None else [int(a) for a in axes]
    widths = pad_widths(x.ndim, [int(p) for p in pads], chosen)
    kept = x[tuple(slice(max(0, -b), d - max(0, -e)) for (b, e), d in zip(widths, x.shape))]
    grown = [(max(0, b), max(0, e)) for b, e in widths]
    if mode == "constant":
        return np.pad(kept, grown, constant_values=0 if value is None else value.ravel()[0])
    if mode not in ("edge", "reflect", "wrap"):
        raise ShapeError(tr("the mode {mode!r} is not known", mode=mode))
    return np.pad(kept, grown, mode=mode)  # type: ignore[call-overload]


pad.cost(lambda *_, **__: _MOVE)
pad.kernel("cpu", "copy_pad", dtype=ANY, accepts_pitch=True, accepts_halo=True)

tile = define_op(
    "Tile",
    transpose_rule="per_axis",
    carries=slice(1),
    inputs="x repeats",
    layout="axis",
    attr_inputs=("repeats",),
    per_axis_attrs=("repeats",),
    source="ONNX Tile-13",
)


@tile.infer
def _(x: TypeInfo, repeats: TypeInfo) -> TypeInfo:
    given = known_ints(repeats)
    if given is None:
        return x.with_shape(unknown_dims(x.rank))
    if len(given) != x.rank or any(r < 0 for r in given):
        raise ShapeError(
            tr(
                "expected one repeat of 0 or more for each of {rank} axes, found {given}",
                given=given,
                rank=x.rank,
            )
        )
    return x.with_shape(
        tuple(d * r if isinstance(d, int) else d if r == 1 else None for d, r in zip(x.dims, given))
    )


@tile.reference
def _(x: np.ndarray, repeats: np.ndarray) -> np.ndarray:
    """x repeated along every axis"""
    return np.tile(x, tuple(int(r) for r in repeats))


def _few_turns(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """A device's copy walks six axes: an axis that repeats is two of them."""
    x, repeats = types[0], known_ints(types[1])
    if x is None or repeats is None:
        return tr("the repeats are not known")
    axes = sum(d != 1 for d in x.dims) + sum(r != 1 for r in repeats)
    return axes <= 6 or tr("more than six axes")


tile.cost(lambda *_, **__: _MOVE)
tile.kernel("cpu", "copy_tile", dtype=ANY)

center_crop_pad = define_op(
    "CenterCropPad",
    inputs="x shape",
    attrs={"axes": None},
    attr_inputs=("shape",),
    source="ONNX CenterCropPad-18",
)


@center_crop_pad.infer
def _(x: TypeInfo, shape: TypeInfo, *, axes: list[int] | None) -> TypeInfo:
    out: list[Dim] = list(x.dims)
    chosen = normalise_axes(axes, x.rank) if axes is not None else range(x.rank)
    wanted = known_ints(shape)
    for i, axis in enumerate(chosen):
        out[axis] = None if wanted is None else wanted[i]
    return x.with_shape(tuple(out))


@center_crop_pad.reference
def _(x: np.ndarray, shape: np.ndarray, *, axes: list[int] | None) -> np.ndarray:
    """Crops or zero-pads around the centre; an odd remainder goes to the end"""
    chosen = axes if axes is not None else range(x.ndim)
    y = x
    for axis, wanted in zip(chosen, (int(d) for d in shape)):
        have = y.shape[axis]
        if have >= wanted:
            begin = (have - wanted) // 2
            y = np.take(y, range(begin, begin + wanted), axis)
        else:
            widths = [(0, 0)] * x.ndim
            begin = (wanted - have) // 2
            widths[axis % x.ndim] = (begin, wanted - have - begin)
            y = np.pad(y, widths)
    return y


def _with_elements(node: Node, types: list[TypeInfo | None]) -> bool | str:
    """Of an axis without elements, none can be repeated."""
    x, constant = types[0], node.attrs.get("mode", "constant") == "constant"
    return constant or x is None or 0 not in x.dims or tr("an input without elements")


pad.kernel("opencl", "copy_pad", dtype=ANY, when=all_of(separate_axes, _with_elements))
tile.kernel("opencl", "copy_tile", dtype=ANY, when=_few_turns)


@pad.samples
def _(draw: Draw) -> Iterator[Sample]:
    for mode in pad.choices["mode"]:
        for shape, pads in (
            ((4, 5), (1, 2, 3, 4)), ((3, 4, 5), (0, 1, 0, 2, 0, 3)), ((7,), (3, 2)),
            ((4, 6), (-1, 2, 1, -2)), ((1, 6, 5, 7), (0, 1, 2, 0, 0, 0, 1, 3)),
        ):  # fmt: skip
            yield Sample([draw(*shape), ints(*pads), draw.scalar(1)], {"mode": mode})
        for pads, axes in (((1, 0, 0, 2), (2, 0)), ((2, -1), (-1,)), ((1, 3, 0, 1), (1, 3))):
            yield Sample([draw(3, 4, 5, 6), ints(*pads), None, ints(*axes)], {"mode": mode})


@tile.samples
def _(draw: Draw) -> Iterator[Sample]:
    for shape, repeats in (((5,), (3,)), ((2, 3, 17), (2, 1, 3)), ((1, 2, 3, 4), (1, 2, 1, 2))):
        yield Sample([draw(*shape), ints(*repeats)])
