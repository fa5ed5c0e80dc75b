"""Integer convolutions through image2d (`i8_image.cl`): texels of 16 bytes, the four words of four
dot products, in images of unsigned 32-bit integers. Images of 8-bit integers would give four
channels, unpacked, for each read."""

from __future__ import annotations

from ...ir import DType
from .constants import Constant
from .integers import IntegerConvolution, signed_weights, word_of
from .launch import Image, Launch
from .options import join
from .profile import DeviceProfile

#: Channels of a texel.
_TEXEL = 16
#: Neighbouring pixels of a work-item; of a depthwise one, whose sums take 16 registers each.
_PIXELS, _DEPTHWISE_PIXELS = 4, 2


def _blocks(channels: int, of: int = _TEXEL) -> int:
    return -(-channels // of)


def suits(profile: DeviceProfile, problem: IntegerConvolution, depthwise: bool = False) -> bool:
    """Whether input and weights fit into the device's images, and the kernel into the weights."""
    _, height, width, channels, _, _, outputs = problem.sizes
    columns, rows = profile.images
    blocks = _blocks(channels)
    deep = problem.window[0] * problem.window[1] * (1 if depthwise else 4 * blocks)
    shifted = bool(signed_weights(problem, 0).zeros.any())
    return (
        profile.local_tiles
        and max(width * blocks, deep) <= columns
        and max(problem.images * height, _blocks(outputs, 4)) <= rows
        and (not shifted or (not depthwise and channels % _TEXEL == 0))
    )


def convolved(
    problem: IntegerConvolution, profile: DeviceProfile, depthwise: bool = False
) -> list[Launch]:
    """A layer that suits."""
    _, height, width, channels, out_h, out_w, outputs = problem.sizes
    signed = depthwise or profile.dot != "qcom"
    x_zero = problem.of_x.zero - (128 if signed else 0)
    weights, images, blocks = signed_weights(problem, x_zero), problem.images, _blocks(channels)
    columns, rows = width * blocks, images * height
    source = Image(columns, rows, DType.U32)
    wide = _TEXEL if depthwise else 4
    packed = _by_channels(weights.taps) if depthwise else _by_outputs(weights.taps)
    shifted, padded = bool(weights.zeros.any()), wide * _blocks(outputs, wide)
    biases = problem.ending.biases(padded, weights.bias)
    pixels = min(_DEPTHWISE_PIXELS if depthwise else _PIXELS, out_w)
    text = join(
        f"#define V {wide}\n#define TM {pixels}", "#define DEPTHWISE" if depthwise else "",
        "#define W_ZERO" if shifted else "",
        f"#define DOT_{profile.dot.upper()}" if profile.dot and not depthwise else "",
    )  # fmt: skip
    x_step, x_at, y_step, y_at = problem.places
    flip = problem.of_x.flip ^ (128 if signed else 0)
    args: list[object] = [
        source, Image(packed.shape[1], packed.shape[0], DType.U32, packed), biases,
        problem.ending.scales(padded),
        Constant.of(weights.zeros.astype("int32")).padded(padded) if shifted else biases,
        problem.residual, problem.y, images, height, width, blocks, out_h, out_w, outputs,
        *problem.window, y_step, y_at, word_of(x_zero), *problem.finish,
    ]  # fmt: skip
    grid = (_blocks(outputs, wide), images * out_h * -(-out_w // pixels))
    filled: list[object] = [problem.x, source, channels, columns, rows, x_step, x_at, flip]
    return [
        Launch("i8_image", "to_image", filled, (columns, rows), text),
        Launch("i8_image", "conv", args, grid, text),
    ]


def _by_outputs(taps: Constant) -> Constant:
    """(O, taps, C) → (blocks of four O, taps·blocks of C·4, 16), zeros beyond."""
    count, window, channels = taps.shape
    outputs, blocks = _blocks(count, 4), _blocks(channels)
    whole = taps.padded(4 * outputs, window, _TEXEL * blocks)
    by_four = whole.reshape(outputs, 4, window * blocks, _TEXEL).transpose(0, 2, 1, 3)
    return by_four.reshape(outputs, window * blocks * 4, _TEXEL)


def _by_channels(taps: Constant) -> Constant:
    """Depthwise (C, taps, 1) → (blocks of 16 C, taps, 16), zeros beyond."""
    count, window, _ = taps.shape
    whole = taps.reshape(count, window).padded(_TEXEL * _blocks(count), window)
    return whole.reshape(-1, _TEXEL, window).transpose(0, 2, 1)
