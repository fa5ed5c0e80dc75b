"""What launches on 8-bit integers need: bytes as u8, and what a layer ends with.

Kernels compute with all bytes as u8: those of i8 have their highest bit flipped, and 128 more as
zero point (kernels/i8.h). Tensors lie as on every other backend, channels last and dense: no step
changes a layout for integers, and four neighbouring channels are the word of a dot product.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from ...ir import DType
from ...plan import Plan, PlanTensor, Step
from .constants import Constant
from .launch import Scratch, place
from .problem import POINTWISE


def flip_of(tensor: PlanTensor) -> int:
    """Bits that make its bytes u8."""
    return 128 if tensor.dtype is DType.I8 else 0


def number(plan: Plan, step: Step, index: int, otherwise: float = 0) -> Any:
    """The only element of a constant input."""
    if index >= len(step.inputs) or step.inputs[index] < 0:
        return otherwise
    data = plan.tensors[step.inputs[index]].data
    assert data is not None, "the registry's condition asks for constants"
    return data.ravel()[0]


@dataclass(frozen=True)
class Quantization:
    """One tensor's bytes, as kernels see them: u8 with this zero point."""

    flip: int
    scale: np.float32
    zero: int

    @classmethod
    def of(cls, tensor: PlanTensor, scale: Any, zero: Any) -> Quantization:
        flip = flip_of(tensor)
        return cls(flip, np.float32(np.ravel(scale)[0]), int(np.ravel(zero)[0]) + flip)

    @classmethod
    def read(cls, plan: Plan, step: Step, tensor: PlanTensor, index: int) -> Quantization:
        """The constant inputs `index` (scale) and the next one (zero point)."""
        return cls.of(tensor, number(plan, step, index, 1), number(plan, step, index + 1))

    @property
    def inverse(self) -> float:
        """1 / scale, rounded."""
        with np.errstate(divide="ignore", over="ignore"):
            return float(np.float32(1) / self.scale)


@dataclass(frozen=True)
class Ending:
    """Sums of products → bytes of y: arguments of kernels that REQUANTIZE (i8.h). `scale` (O,)
    f32 and `bias` (O,) int64 are those of the sums."""

    scale: np.ndarray
    bias: np.ndarray
    arguments: tuple[float | int, ...]
    residual: PlanTensor | None = None

    @classmethod
    def of(
        cls, step: Step, plan: Plan, channels: int, bias: int, names: str = "xw",
        residual: PlanTensor | None = None,
    ) -> Ending:  # fmt: skip
        """`bias` is the index of that input, `names` the letters of the operands' attributes."""
        a, y = step.attrs, plan.tensors[step.outputs[0]]
        of_y = Quantization.of(y, a["y_scale"], a["y_zero_point"])
        left = np.float32(a[f"{names[0]}_scale"]).reshape(-1)[:1]
        product = left * np.float32(a[f"{names[1]}_scale"]).reshape(-1)
        scale, more = product / of_y.scale, (0, 0, 0, 0.0, 0.0, 0.0)
        if residual is not None:
            r = Quantization.of(residual, a["residual_scale"], a["residual_zero_point"])
            s_zero = s_ratio = 0.0
            if a.get("sum_scale") is not None:
                s = Quantization.of(y, a["sum_scale"], a["sum_zero_point"])
                scale, s_zero, s_ratio = (
                    product / s.scale,
                    float(s.zero),
                    float(s.scale / of_y.scale),
                )
            adding = 1 if s_ratio == 0 else 2
            more = (adding, r.flip, r.zero, float(r.scale / of_y.scale), s_zero, s_ratio)
        given = step.inputs[bias] if bias < len(step.inputs) else -1
        data = plan.tensors[given].data if given >= 0 else np.zeros(channels)
        assert data is not None, "the registry's condition asks for constants"
        return cls(
            np.broadcast_to(scale.astype(np.float32), channels),
            np.broadcast_to(data.astype(np.int64), channels),
            (of_y.flip, float(of_y.zero), *more, 0),
            residual,
        )

    def scales(self, wide: int) -> Constant:
        return Constant.of(np.array(self.scale)).padded(wide)

    def biases(self, wide: int, more: np.ndarray | int = 0) -> Constant:
        """As int32, which wraps around as the sums do."""
        return Constant.of(_wrapped(self.bias + more)).padded(wide)


@dataclass(frozen=True, eq=False)
class IntegerConvolution:
    """Channels-last x and y. `weight` (O, C, taps) are bytes with the zero points `zeros` (O,). A
    product of M rows is a convolution of M pixels, H = M and W = 1."""

    x: PlanTensor
    y: PlanTensor | Scratch
    of_x: Quantization
    sizes: list[int]  # M, H, W, C, OH, OW, O; M = N·OH·OW
    window: list[int]  # KH, KW, SH, SW, PT, PL, DH, DW
    weight: np.ndarray
    zeros: np.ndarray
    ending: Ending

    def __str__(self) -> str:
        return "_".join(map(str, [*self.sizes, *self.window]))

    @property
    def pointwise(self) -> bool:
        return self.window == POINTWISE

    @property
    def images(self) -> int:
        m, _, _, _, out_h, out_w, _ = self.sizes
        return m // (out_h * out_w)

    @property
    def places(self) -> list[int]:
        """Elements from pixel to pixel of x and before the first, and the same of y."""
        return [*place(self.x, self.sizes[3]), *place(self.y, self.sizes[6])]

    @property
    def finish(self) -> list[Any]:
        return list(self.ending.arguments)

    @property
    def residual(self) -> PlanTensor | Scratch:
        """What kernels get in its place without one is not read."""
        return self.ending.residual or self.y


class SignedWeights(NamedTuple):
    """Weights as i8 `taps` (O, taps, C) with zero points `zeros` (O,); `bias` (O,) is what the
    zero points of x and of them add to every sum."""

    taps: Constant
    zeros: np.ndarray
    bias: np.ndarray


def signed_weights(problem: IntegerConvolution, x_zero: int) -> SignedWeights:
    """For x with this zero point, also outside of its image."""
    weight, zeros = Constant.of(problem.weight), problem.zeros
    values = problem.weight.astype(np.int64).reshape(len(zeros), -1)
    sums, depth = values.sum(1), values.shape[1]
    if weight.dtype is DType.U8:
        weight, zeros, sums = weight.flipped(), zeros - 128, sums - depth * 128
    bias = depth * x_zero * zeros - x_zero * sums
    return SignedWeights(weight.transpose(0, 2, 1), zeros, bias)


def word_of(byte: int) -> int:
    """Four times the byte, as int32."""
    return int(np.uint32((byte & 255) * 0x01010101).view(np.int32))


def _wrapped(numbers: np.ndarray) -> np.ndarray:
    return (numbers & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def zeros_of(zero: Any, count: int) -> np.ndarray:
    """A zero point for each of `count` channels."""
    return np.broadcast_to(np.asarray(zero, np.int64).reshape(-1), count)


def widened(weight: np.ndarray, zeros: np.ndarray, group: int = 1) -> Constant:
    """Bytes (O, …), or (group, C, O/group, …), less the zero points (O,), as int16."""
    if (zeros == zeros[0]).all():
        return Constant.of(weight).widened(int(zeros[0]))
    shape = (group, 1, -1) if group > 1 else (-1, 1)
    own = zeros.reshape(*shape, *[1] * (weight.ndim - len(shape)))
    return Constant.of((weight - own).astype(np.int16))
