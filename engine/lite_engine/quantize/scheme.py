"""How numbers become integers: parameters from ranges, weights per channel, int32 biases."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from lite_messages import tr

from ..documents import Part
from ..errors import UsageError
from ..ir import DType, Node, QuantParams
from .observers import Range

#: rounding(node, weight, scale, axis) → integers of the weight
Rounding = Callable[[Node, np.ndarray, np.ndarray, "int | None"], np.ndarray]


@dataclass(frozen=True)
class Scheme:
    """Choices of a static quantisation; plain data, so that every result can be repeated.

    `keep_float` names nodes (of the prepared graph) that stay as they are.
    """

    activation: str = "u8"  # u8 | i8
    symmetric: bool = False  # activations; weights always are
    per_channel: bool = True
    keep_float: frozenset[str] = field(default_factory=frozenset)

    def __post_init__(self) -> None:
        if self.activation not in ("u8", "i8"):
            raise UsageError(
                tr("activation type {activation!r} is not u8 or i8", activation=self.activation)
            )

    @property
    def dtype(self) -> DType:
        return DType(self.activation)

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "keep_float": sorted(self.keep_float)}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Scheme:
        """Raises ModelFormatError for what `to_dict` did not make, UsageError."""
        made = Part(data, "scheme").into(Scheme)
        return made


def activation_params(low_high: Range, scheme: Scheme) -> QuantParams:
    """Scale f32 () and zero point () of a tensor whose values lie in (low, high); 0 is exact."""
    low, high = min(low_high[0], 0.0), max(low_high[1], 0.0)
    info = np.iinfo(scheme.dtype.np)
    if scheme.symmetric:
        reach = max(-low, high, 1e-8)
        if scheme.activation == "i8":
            return _params(reach / 127, 0, scheme.dtype)
        return _params(reach / 127, 128, scheme.dtype)
    scale = max(high - low, 1e-8) / (info.max - info.min)
    zero = int(np.clip(np.rint(info.min - low / scale), info.min, info.max))
    return _params(scale, zero, scheme.dtype)


def _params(scale: float, zero: int, dtype: DType) -> QuantParams:
    return QuantParams(np.array(scale, np.float32), np.array(zero, dtype.np))


def weight_scale(w: np.ndarray, axis: int | None, bits: int = 8) -> np.ndarray:
    """Scale of symmetric integers −max…max: f32 (C,) per `axis`, or ()."""
    others = tuple(i for i in range(w.ndim) if i != axis) if axis is not None else None
    reach = np.abs(w).max(axis=others) if w.size else np.zeros(())
    # the smallest normal float keeps a channel of zeros (or denormals) from dividing by 0
    return np.maximum(reach / _top(bits), np.finfo(np.float32).tiny).astype(np.float32)


def shaped_scale(scale: np.ndarray, rank: int, axis: int | None) -> np.ndarray:
    """The scale, made to broadcast against a weight."""
    if axis is None or scale.ndim == 0:
        return scale
    return scale.reshape([-1 if i == axis else 1 for i in range(rank)])


def clip_weight(q: np.ndarray, bits: int = 8) -> np.ndarray:
    return np.clip(q, -_top(bits), _top(bits)).astype(np.int8 if bits == 8 else np.int16)


def _top(bits: int) -> int:
    return (1 << (bits - 1)) - 1


def bias_integers(bias: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """int32 of scale x_scale·w_scale, saturated."""
    info = np.iinfo(np.int32)
    q = np.rint(bias.astype(np.float64) / np.broadcast_to(scale, bias.shape).astype(np.float64))
    return np.clip(q, info.min, info.max).astype(np.int32)
