"""TensorFlow's operators that are computed from their inputs alone: which function makes each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from inspect import signature

from lite_messages import tr

from ..errors import ModelFormatError
from ..ir import Value
from ._emit import Emitter
from ._floor import floor_div, floor_mod
from ._tf_ops import (
    add_n,
    div_no_nan,
    expand_dims,
    is_finite,
    ones_like,
    range_,
    rank,
    select,
    select_v2,
    top_k,
    zeros_like,
)
from ._tf_pieces import (
    broadcast_args,
    broadcast_to,
    fill,
    gather_nd,
    matrix_band_part,
    reverse,
    scatter_nd,
    slice_,
    tile,
)

Computes = Callable[..., Value | list[Value]]
#: TensorFlow operator → what computes it from its inputs alone.
COMPUTED: dict[str, Computes] = {
    "AddN": add_n, "DivNoNan": div_no_nan, "FloorDiv": floor_div, "FloorMod": floor_mod,
    "IsFinite": is_finite, "OnesLike": ones_like, "Range": range_, "Rank": rank,
    "ZerosLike": zeros_like,
}  # fmt: skip
#: The same for operators that only move elements.
MOVED: dict[str, Computes] = {
    "BroadcastArgs": broadcast_args, "BroadcastTo": broadcast_to,
    "MatrixBandPart": matrix_band_part, "ExpandDims": expand_dims, "Fill": fill,
    "GatherNd": gather_nd,
    "ReverseV2": reverse, "ScatterNd": scatter_nd, "Select": select, "SelectV2": select_v2,
    "Slice": slice_, "Tile": tile, "TopKV2": top_k,
}  # fmt: skip


def compute(emit: Emitter, name: str, inputs: Sequence[Value]) -> Value | list[Value]:
    """An operator of COMPUTED or MOVED. Raises ModelFormatError for a wrong number of inputs."""
    function = COMPUTED.get(name) or MOVED[name]
    try:
        signature(function).bind(emit, *inputs)
    except TypeError:
        raise ModelFormatError(
            tr("{name} does not take {inputs} inputs", name=name, inputs=len(inputs)),
            where=emit.source,
        ) from None
    return function(emit, *inputs)
