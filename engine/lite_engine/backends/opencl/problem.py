"""A convolution or Gemm as data: what kernels of CPUs, GPUs and images all start from."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...plan import PlanTensor
from .constants import Constant
from .launch import Scratch, place
from .options import IDENTITY, Activation
from .profile import DeviceProfile

#: The window of one tap, as `Convolution.window` has it.
POINTWISE = [1, 1, 1, 1, 0, 0, 1, 1]
#: Neighbouring pixels that a depthwise work-item makes.
_DEPTHWISE_PIXELS = 4
#: Rows and pixels of an item that reads less twice, where a GPU's units still get so many items.
_DEPTHWISE_BLOCK = (2, 8)
DEPTHWISE_ITEMS = 512
#: A CPU's groups for depthwise layers of few and of many channels: two, because PoCL compiles a
#: kernel for every size.
_CPU_GROUPS = (1, 32), (8, 16)


@dataclass(frozen=True, eq=False)
class ByteWeights:
    """Taps of a convolution of one tap, or a Gemm, as integers: `taps` (O, K) i8, real =
    taps · `scales` (O,)."""

    taps: Constant
    scales: Constant

    @classmethod
    def of(
        cls, tensor: PlanTensor, columns: bool = False, factor: float = 1.0
    ) -> ByteWeights | None:
        """The weights of a tensor (O, K, 1…), or (K, O) where its outputs are `columns`. None where
        they were not made of such integers."""
        integers = tensor.integers
        if integers is None or integers.q.dtype != np.int8 or integers.q.size == 0:
            return None
        axis = 1 if columns else 0
        if integers.scale.size > 1 and integers.axis != axis:
            return None
        q = Constant.of(integers.q)
        taps = q.T if columns else q.reshape(q.shape[0], -1)
        scales = integers.scale.ravel()
        if scales.size != taps.shape[0]:  # one number for all
            scales = np.full(taps.shape[0], scales)
        return cls(taps, Constant.floats(scales).scaled(factor))


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
    #: The taps as 8-bit integers, where they were made of such.
    weights: ByteWeights | None = None

    @property
    def images(self) -> int:
        m, _, _, _, out_h, out_w, _ = self.sizes
        return m // (out_h * out_w)

    @property
    def of_group(self) -> list[int]:
        """`sizes` with the channels and outputs of one group."""
        *pixels, channels, out_h, out_w, outputs = self.sizes
        return [*pixels, channels // self.groups, out_h, out_w, outputs // self.groups]

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


def depthwise_block(
    sizes: list[int], window: list[int], v: int, profile: DeviceProfile
) -> tuple[int, int]:
    """Rows and columns of pixels that a depthwise work-item makes, of v channels."""
    m, _, _, channels, out_h, out_w, _ = sizes
    tall, wide = _DEPTHWISE_BLOCK
    blocks = channels // v * (m // (out_h * out_w)) * -(-out_h // tall) * -(-out_w // wide)
    enough = blocks >= DEPTHWISE_ITEMS * profile.compute_units
    if profile.local_tiles and enough and window[2:4] == window[6:] == [1, 1]:
        return tall, wide
    return 1, min(_DEPTHWISE_PIXELS, out_w)


def depthwise_grid(
    profile: DeviceProfile, blocks: int, items: int
) -> tuple[tuple[int, int], tuple[int, int] | None]:
    """(items, those of a group) for so many vectors of channels and blocks of pixels."""
    if profile.local_tiles:
        return (blocks, items), None
    wide, high = group = _CPU_GROUPS[blocks >= _CPU_GROUPS[1][0]]
    return (-(-blocks // wide) * wide, -(-items // high) * high), group
