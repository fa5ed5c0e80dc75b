"""Older forms of operators that read images between pixels → the newest ones (see `upgrade`)."""

from __future__ import annotations

import numpy as np

from .call import Call, Emit
from .upgrade import upgrades


@upgrades("Upsample")
def _(call: Call, emit: Emit) -> None:
    """Upsample-1, -7 and -9 → Resize with asymmetric coordinates."""
    attrs = call.attrs
    if "width_scale" in attrs:
        scales = [1.0, 1.0, attrs["height_scale"], attrs["width_scale"]]
        call.set_input(1, call.constant("scales", scales, np.float32))
    call.to_input("scales", 1, np.float32)
    mode = {"bilinear": "linear"}.get(attrs.get("mode", "nearest"), attrs.get("mode", "nearest"))
    call.op = "Resize"
    call.inputs = [call.inputs[0], None, call.input(1)]
    call.attrs = {
        "mode": mode,
        "coordinate_transformation_mode": "asymmetric",
        "nearest_mode": "floor",
    }


@upgrades("Resize", before=11)
def _(call: Call, emit: Emit) -> None:
    call.inputs = [call.inputs[0], None, call.input(1)]
    call.attrs.update(coordinate_transformation_mode="asymmetric", nearest_mode="floor")


@upgrades("Resize")
def _(call: Call, emit: Emit) -> None:
    """Empty roi, scales and sizes stand for absent ones."""
    for i in (1, 2, 3):
        value = call.input(i)
        if value is not None and value.shape is not None and 0 in value.shape:
            call.inputs[i] = None
    while call.inputs and call.inputs[-1] is None:
        call.inputs.pop()


@upgrades("RoiAlign", before=16)
def _(call: Call, emit: Emit) -> None:
    """Until then regions began half a pixel further, which the newer default does not do."""
    call.attrs.setdefault("coordinate_transformation_mode", "output_half_pixel")


@upgrades("GridSample", before=20)
def _(call: Call, emit: Emit) -> None:
    """The modes had the names of two dimensions."""
    mode = call.attrs.get("mode", "bilinear")
    call.attrs["mode"] = {"bilinear": "linear", "bicubic": "cubic"}.get(mode, mode)
