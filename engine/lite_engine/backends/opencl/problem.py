"""A convolution or Gemm as data: what kernels of CPUs, GPUs and images all start from."""

from __future__ import annotations

from dataclasses import dataclass

from ...plan import PlanTensor
from .constants import Constant
from .launch import Scratch, place
from .options import IDENTITY, Activation

#: The window of one tap, as `Convolution.window` has it.
POINTWISE = [1, 1, 1, 1, 0, 0, 1, 1]


@dataclass(frozen=True, eq=False)
class Convolution:
    """Channels-last x and y. `taps` are (O, KH·KW·C/groups), `bias` (O,). A Gemm of M rows is a
    convolution of M pixels, H = M and W = 1."""

    x: PlanTensor | Scratch
    y: PlanTensor | Scratch
    sizes: list[int]  # M, H, W, C, OH, OW, O; M = N·OH·OW
    window: list[int]  # KH, KW, SH, SW, PT, PL, DH, DW
    taps: Constant
    bias: Constant
    residual: PlanTensor | None = None
    act: Activation = IDENTITY
    groups: int = 1

    @property
    def images(self) -> int:
        m, _, _, _, out_h, out_w, _ = self.sizes
        return m // (out_h * out_w)

    @property
    def key(self) -> str:
        """Names its size where ways are measured."""
        return "_".join(map(str, [*self.sizes, *self.window]))

    @property
    def pointwise(self) -> bool:
        return self.window == POINTWISE

    @property
    def places(self) -> list[int]:
        """Elements from pixel to pixel of x and before the first, and the same of y."""
        return [*place(self.x, self.sizes[3]), *place(self.y, self.sizes[6])]

    @property
    def ending(self) -> list[object]:
        """Arguments of kernels that END a layer (common.h)."""
        return [*self.act.arguments, int(self.residual is not None)]

    @property
    def dense(self) -> bool:
        return self.places == [self.sizes[3], 0, self.sizes[6], 0]
