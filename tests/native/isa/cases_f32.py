"""Calls of the float convolution kernels as tables, and what they must give."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lite_engine.ir.bfloat16 import bf16_to_f32, f32_to_bf16
from lite_engine.ops.activation import apply_activation

from ..oracles import conv, deconv
from .cases_depthwise import CASES

pytestmark = pytest.mark.cpu


GEMM = "f32_conv2d_gemm"
W23, W43, DEPTHWISE = "f32_conv2d_winograd23", "f32_conv2d_winograd43", "f32_conv2d_depthwise"
DECONV, BF16 = "f32_deconv2d", "bf16_conv2d_gemm"

SAME = {"pads": [1, 1, 1, 1]}
# Small groups, as CONVS without the kernel: a vector holds several, or parts of two, or one has
# several vectors; tiles of all widths, the last one of a row stepping back.
GROUPED: list[tuple[tuple[int, ...], int, tuple[int, int], dict[str, Any]]] = [
    ((1, 6, 30, 32), 32, (3, 3), {**SAME, "group": 8, "r": 1, "activation": "Relu"}),
    ((1, 5, 28, 128), 128, (3, 3), {**SAME, "group": 32}),
    ((2, 9, 29, 48), 48, (3, 3), {**SAME, "group": 6, "strides": [2, 2]}),
    ((1, 7, 7, 64), 64, (3, 3), {**SAME, "group": 4, "activation": "HardSwish", "r": 1}),
    ((1, 4, 14, 72), 72, (3, 3), {**SAME, "group": 3}),
    ((1, 3, 15, 168), 168, (3, 3), {**SAME, "group": 3, "strides": [1, 2]}),
    ((1, 4, 21, 60), 60, (3, 3), {**SAME, "group": 5, "activation": "Gelu"}),
    ((2, 4, 14, 24), 24, (3, 3), {**SAME, "group": 2, "r": 1}),
    ((1, 5, 9, 42), 42, (3, 3), {**SAME, "group": 7}),
    ((1, 5, 14, 30), 40, (3, 3), {**SAME, "group": 10}),
    ((1, 5, 14, 12), 36, (3, 3), {**SAME, "group": 6, "r": 1}),
    ((1, 3, 8, 64), 32, (3, 3), {**SAME, "group": 8}),
    ((1, 3, 2, 32), 32, (3, 3), {**SAME, "group": 4}),
    ((1, 12, 17, 32), 32, (5, 5), {"pads": [2, 2, 2, 2], "group": 8}),
    ((1, 9, 16, 32), 32, (2, 7), {"pads": [0, 9, 3, 5], "group": 4, "strides": [2, 1]}),
    ((1, 9, 16, 32), 32, (3, 3), {"pads": [2, 2, 2, 2], "group": 8, "dilations": [2, 2]}),
    ((1, 9, 23, 32), 32, (3, 3), {**SAME, "group": 8, "strides": [3, 3]}),
    ((1, 5, 6, 64), 64, (1, 1), {"group": 16}),
    ((1, 1, 33, 64), 64, (1, 3), {"pads": [0, 1, 0, 1], "group": 16, "activation": "LeakyRelu",
                                  "activation_params": [0.1]}),
    ((1, 6, 7, 1024), 1024, (3, 3), {**SAME, "group": 256, "strides": [2, 2]}),
]  # fmt: skip

# kernel, x (N,H,W,C), output channels, kernel (h,w), attributes; "r": with a residual
CONVS: list[tuple[str, tuple[int, ...], int, tuple[int, int], dict[str, Any]]] = [
    (GEMM, (1, 1, 1, 1), 1, (1, 1), {}),
    (GEMM, (1, 5, 5, 7), 9, (1, 1), {"r": 1}),
    (GEMM, (2, 3, 5, 33), 31, (1, 1), {"activation": "Relu"}),
    (GEMM, (1, 7, 7, 16), 65, (1, 1), {"strides": [2, 2]}),
    (GEMM, (1, 15, 13, 17), 35, (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    (
        GEMM,
        (2, 6, 6, 20),
        33,
        (3, 3),
        {"pads": [1, 1, 1, 1], "r": 1, "activation": "LeakyRelu", "activation_params": [0.1]},
    ),
    (GEMM, (1, 23, 20, 3), 32, (7, 7), {"strides": [2, 2], "pads": [3, 3, 3, 3]}),
    (
        GEMM,
        (1, 6, 16, 3),
        21,
        (3, 3),
        {"pads": [1, 1, 1, 1], "activation": "LeakyRelu", "activation_params": [0.1]},
    ),
    (
        GEMM,
        (2, 5, 9, 3),
        12,
        (3, 3),
        {"pads": [0, 0, 2, 2], "strides": [2, 1], "activation": "Relu"},
    ),
    (GEMM, (1, 1, 7, 3), 8, (1, 3), {"pads": [0, 1, 0, 1]}),
    (GEMM, (1, 9, 9, 5), 6, (3, 3), {"dilations": [2, 3], "pads": [2, 3, 2, 3]}),
    (GEMM, (1, 3, 3, 5), 6, (3, 3), {"pads": [4, 4, 4, 4]}),
    # One output, of padding alone; many channels with pixels that see padding alone.
    (GEMM, (1, 1, 1, 1024), 8, (1, 1), {"pads": [1, 1, 0, 0], "strides": [2, 2]}),
    (GEMM, (1, 3, 3, 1024), 264, (1, 1), {"pads": [1, 1, 1, 1]}),
    # Taps far apart: whole rectangles of outputs see a few of them, or the middle one alone.
    (GEMM, (2, 28, 19, 5), 6, (3, 3), {"dilations": [12, 6], "pads": [12, 6, 12, 6], "r": 1}),
    (GEMM, (1, 17, 4, 8), 33, (3, 3), {"dilations": [6, 3], "pads": [6, 3, 6, 3]}),
    (GEMM, (1, 9, 8, 16), 16, (3, 3), {"dilations": [24, 36], "pads": [24, 36, 24, 36]}),
    (GEMM, (1, 30, 23, 4), 5, (3, 4), {"dilations": [9, 7], "pads": [2, 20, 9, 0]}),
    (GEMM, (1, 8, 8, 4), 6, (3, 3), {"pads": [0, 1, 2, 0], "strides": [2, 1]}),
    (GEMM, (1, 1, 40, 5), 18, (1, 7), {"pads": [0, 3, 0, 3]}),
    (GEMM, (1, 9, 8, 6), 7, (2, 2), {"auto_pad": "SAME_UPPER", "strides": [2, 2]}),
    (GEMM, (1, 9, 8, 6), 7, (4, 4), {"auto_pad": "SAME_LOWER"}),
    (GEMM, (1, 30, 30, 8), 100, (1, 1), {"activation": "HardSwish"}),
    (GEMM, (1, 9, 9, 32), 64, (3, 3), {"group": 4, "pads": [1, 1, 1, 1], "r": 1}),
    (GEMM, (1, 9, 9, 24), 24, (3, 3), {"group": 8, "pads": [1, 1, 1, 1]}),
    (GEMM, (1, 6, 9, 24), 48, (3, 3), {"group": 24, "strides": [2, 2]}),
    (GEMM, (1, 4, 4, 6), 15, (1, 1), {"group": 3}),
    *[(GEMM, *case) for case in GROUPED],
    # pixels 4 KiB apart, which AVX-512 copies for many panels
    (GEMM, (1, 5, 7, 1024), 250, (1, 1), {"r": 1}),
    (GEMM, (1, 9, 12, 512), 256, (1, 1), {"strides": [2, 2], "activation": "Relu"}),
    (GEMM, (1, 9, 12, 512), 256, (3, 3), {"strides": [2, 2], "pads": [1] * 4, "r": 1}),
    (GEMM, (1, 1, 40, 512), 250, (1, 3), {"strides": [1, 2], "activation": "Silu"}),
    (GEMM, (2, 5, 6, 1024), 256, (3, 2), {"dilations": [2, 3], "pads": [2, 3, 1, 0]}),
    (W23, (1, 7, 7, 20), 33, (3, 3), {"pads": [1, 1, 1, 1], "r": 1, "activation": "Relu"}),
    (W23, (2, 3, 9, 16), 16, (3, 3), {"pads": [0, 1, 0, 1]}),
    (W43, (1, 14, 14, 144), 560, (3, 3), {"pads": [1, 1, 1, 1], "r": 1}),  # two groups of panels
    (
        W43,
        (1, 15, 14, 36),
        50,
        (3, 3),
        {"pads": [1, 1, 1, 1], "r": 1, "activation": "Clip", "activation_params": [0.0, 6.0]},
    ),
    (W43, (1, 5, 30, 16), 17, (3, 3), {"activation": "Silu"}),
    (W43, (2, 33, 30, 3), 8, (3, 3), {"pads": [2, 2, 2, 2]}),
    # dilated: outputs of every 2nd row and 3rd column are an image of their own, …
    (
        W43,
        (1, 14, 13, 36),
        50,
        (3, 3),
        {"dilations": [2, 3], "pads": [2, 3, 2, 3], "r": 1, "activation": "Silu"},
    ),
    (W23, (2, 9, 7, 20), 17, (3, 3), {"dilations": [4, 1], "pads": [4, 1, 3, 0], "r": 1}),
    (W43, (1, 5, 6, 16), 20, (3, 3), {"dilations": [7, 9], "pads": [7, 9, 7, 9]}),
    # one to four tiles: on AVX-512 the kernel that transforms weights as it reads them
    (W43, (1, 4, 4, 64), 16, (3, 3), {"pads": [1, 1, 1, 1]}),
    (W43, (2, 6, 5, 48), 70, (3, 3), {"pads": [0, 0, 0, 0], "r": 1}),
    (W43, (1, 3, 12, 35), 20, (3, 3), {"pads": [1, 1, 1, 1], "activation": "Silu"}),
    (W43, (1, 7, 7, 20), 33, (3, 3), {"pads": [1, 1, 1, 1], "r": 1, "activation": "Relu"}),
    *((DEPTHWISE, *case) for case in CASES),
    # Three channels in steps of two pixels, as a network's first layer has them.
    (
        GEMM,
        (1, 30, 29, 3),
        24,
        (3, 3),
        {"strides": [2, 2], "pads": [1] * 4, "activation": "HardSwish"},
    ),
    (
        GEMM,
        (2, 17, 14, 3),
        21,
        (3, 3),
        {"strides": [2, 2], "pads": [0, 0, 1, 1], "activation": "Relu"},
    ),
    (GEMM, (1, 16, 40, 3), 13, (3, 3), {"strides": [2, 2], "pads": [1] * 4, "activation": "Silu"}),
    (GEMM, (1, 20, 33, 3), 8, (3, 3), {"strides": [1, 2], "dilations": [2, 1]}),
    (
        GEMM,
        (1, 25, 30, 3),
        24,
        (7, 7),
        {"strides": [2, 2], "pads": [3] * 4, "activation": "Relu"},
    ),
    (GEMM, (2, 16, 37, 3), 13, (7, 7), {"strides": [2, 2], "pads": [3, 2, 0, 4]}),
    (GEMM, (1, 11, 24, 3), 21, (5, 7), {"strides": [1, 2], "activation": "HardSwish"}),
    # Rows of taps in whole fours of floats, of pixels of three channels.
    (GEMM, (1, 20, 24, 3), 20, (4, 4), {"strides": [4, 4]}),
    (GEMM, (2, 17, 26, 3), 24, (8, 8), {"strides": [4, 4], "pads": [2] * 4, "activation": "Relu"}),
    # One pixel: the weights are read where they lie.
    (GEMM, (1, 1, 1, 70), 21, (1, 1), {"activation": "Silu"}),
    (GEMM, (1, 1, 1, 300), 40, (1, 1), {"activation": "Relu"}),
    (DECONV, (1, 8, 8, 20), 12, (2, 2), {"strides": [2, 2]}),
    (
        DECONV,
        (2, 7, 9, 20),
        33,
        (3, 3),
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "output_padding": [1, 1], "activation": "Relu"},
    ),
    (DECONV, (1, 7, 5, 9), 18, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    (DECONV, (1, 7, 5, 8), 8, (2, 2), {"strides": [3, 3], "group": 8}),
    (DECONV, (1, 4, 5, 8), 6, (3, 3), {"strides": [2, 3], "dilations": [2, 2]}),
    (DECONV, (1, 6, 5, 8), 6, (3, 3), {"pads": [1, 1, 1, 1]}),
    # few channels: the pixels of a stride together, of even and uneven numbers of taps, and none
    (DECONV, (1, 9, 17, 20), 1, (8, 16), {"strides": [4, 8], "pads": [2, 4, 2, 4]}),
    (DECONV, (2, 6, 7, 10), 3, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}),
    (DECONV, (1, 5, 6, 12), 1, (9, 9), {"strides": [3, 3], "pads": [4, 4, 4, 4],
                                        "output_padding": [2, 2], "activation": "LeakyRelu",
                                        "activation_params": [0.1]}),
    (DECONV, (1, 4, 6, 8), 2, (2, 3), {"strides": [3, 4], "output_padding": [0, 1]}),
    (DECONV, (1, 4, 6, 8), 1, (3, 2), {"strides": [2, 3], "output_padding": [1, 1],
                                       "activation": "HardSwish"}),
]  # fmt: skip
CONVS += [(BF16, *c[1:]) for c in CONVS if c[0] == GEMM]
CONVS += [("bf16_deconv2d", *c[1:]) for c in CONVS if c[0] == DECONV]
# Large enough for AMX tiles, in every way that those read their input.
TILED: list = [
    (BF16, (1, 16, 16, 64), 64, (1, 1), {"r": True, "activation": "Relu"}),
    (BF16, (2, 10, 11, 37), 40, (1, 1), {"activation": "HardSwish"}),
    (BF16, (1, 28, 27, 64), 128, (1, 1), {"strides": [2, 2]}),
    (BF16, (2, 15, 13, 64), 33, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2], "r": True}),
    (BF16, (1, 30, 30, 9), 64, (3, 3), {"pads": [1, 1, 1, 1]}),
    (BF16, (1, 20, 37, 1), 64, (5, 5), {"pads": [2, 2, 2, 2]}),
    (BF16, (1, 16, 15, 64), 96, (3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    (BF16, (1, 20, 21, 14), 48, (3, 3), {"pads": [1, 1, 1, 1]}),
    (BF16, (1, 16, 17, 11), 33, (5, 5), {"pads": [2, 0, 2, 4], "strides": [2, 2], "r": True}),
    (BF16, (1, 12, 12, 128), 128, (3, 3), {"group": 2, "pads": [1, 1, 1, 1]}),
]
# Direct products of bf16 on matrix units, F(4,3) elsewhere: the tolerance is that of F(4,3).
W43_BF16 = "bf16_conv2d_3x3"
F32_3X3, F32_5X5 = "f32_conv2d_3x3", "f32_conv2d_5x5"
X2, DECONV_X2 = "f32_conv2d_bf16x2", "f32_deconv2d_bf16x2"
DECONV_BF16 = "bf16_deconv2d"
TRANSPOSED = (DECONV, DECONV_X2, DECONV_BF16)
TILED += [(X2, *c[1:]) for c in TILED]
# A network's first layer: pixels of one channel, which are too few for two parts, and of three.
TILED += [
    (BF16, (1, 9, 50, 1), 16, (3, 7), {"pads": [1, 9, 1, 9], "strides": [1, 3]}),
    (BF16, (2, 33, 31, 3), 32, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}),
    (BF16, (1, 45, 46, 3), 64, (7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}),
]
# More than the second-level cache holds: copied and computed some rows at a time.
TILED += [
    (X2, (2, 40, 41, 128), 33, (3, 3), {"pads": [1, 1, 1, 1], "r": True}),
    (
        X2,
        (1, 81, 80, 64),
        33,
        (3, 3),
        {"pads": [1, 1, 1, 1], "strides": [2, 2], "activation": "Silu"},
    ),
    (X2, (1, 64, 80, 80), 40, (1, 1), {"r": True, "activation": "Relu"}),
    (DECONV_X2, (1, 17, 16, 64), 48, (2, 2), {"strides": [2, 2], "activation": "Silu"}),
    (DECONV_X2, (2, 70, 50, 64), 33, (2, 3), {"strides": [2, 1]}),
]
TILED += [(DECONV_BF16, *c[1:]) for c in TILED if c[0] == DECONV_X2]
CONVS += TILED
CONVS += [(k, *c[1:]) for k in (F32_3X3,) for c in CONVS if c[0] in (W23, W43)]
CONVS += [  # stride 2: F(2,3), the GEMM on few pixels
    (
        F32_3X3,
        (2, 15, 13, 36),
        50,
        (3, 3),
        {"strides": [2, 2], "pads": [1, 1, 1, 1], "r": 1, "activation": "Relu"},
    ),
    (F32_3X3, (1, 18, 28, 33), 33, (3, 3), {"strides": [2, 2], "pads": [0, 0, 1, 1]}),
    (F32_3X3, (1, 5, 5, 40), 34, (3, 3), {"strides": [2, 2], "activation": "Silu"}),
]
CONVS += [  # tiles of 4x5 and 4x6 outputs on AArch64, whole and cut, channels in pairs and not
    (F32_3X3, (1, 8, 14, 40), 33, (3, 3), {"pads": [1] * 4, "r": 1, "activation": "Relu"}),
    (F32_3X3, (2, 9, 15, 20), 17, (3, 3), {"pads": [0, 1, 2, 1], "activation": "Silu"}),
    (F32_3X3, (1, 8, 24, 40), 33, (3, 3), {"pads": [1] * 4, "r": 1, "activation": "Relu"}),
    (F32_3X3, (2, 7, 23, 22), 20, (3, 3), {"pads": [2, 1, 1, 0], "activation": "LeakyRelu",
                                           "activation_params": [0.1]}),
    (F32_3X3, (1, 30, 36, 36), 40, (3, 3), {"dilations": [3, 3], "pads": [3] * 4}),
]  # fmt: skip
CONVS += [  # F(2,5) and F(4,5); the GEMM where most taps lie outside
    (F32_5X5, (1, 13, 14, 20), 33, (5, 5), {"pads": [2, 2, 2, 2], "r": 1, "activation": "Relu"}),
    (F32_5X5, (2, 9, 30, 16), 17, (5, 5), {"activation": "Silu"}),
    (F32_5X5, (1, 5, 6, 40), 20, (5, 5), {"pads": [4, 3, 0, 4]}),
    (F32_5X5, (1, 6, 6, 40), 20, (5, 5), {"pads": [2, 2, 2, 2], "r": 1}),  # F(2,5) both ways
    (F32_5X5, (1, 18, 17, 33), 16, (5, 5), {"dilations": [2, 3], "pads": [4, 6, 4, 6]}),
    (F32_5X5, (1, 2, 2, 64), 16, (5, 5), {"pads": [2, 2, 2, 2]}),
]
CONVS += [
    (W43_BF16, (1, 12, 14, 64), 48, (3, 3), {"pads": [1, 1, 1, 1], "activation": "Relu"}),
    (W43_BF16, (1, 17, 9, 20), 33, (3, 3), {"pads": [1, 1, 1, 1], "r": True}),
]
#: Sums of many products, added up in parts: of k, of taps, of rows of taps.
LONG: list = [
    (GEMM, (2, 5, 7, 600), 40, (1, 1), {"r": True, "activation": "HardSwish"}),
    (GEMM, (1, 6, 11, 130), 33, (3, 3), {"pads": [1, 1, 1, 1], "r": True, "activation": "Relu"}),
    (
        GEMM,
        (1, 7, 9, 40),
        50,
        (3, 3),
        {"strides": [2, 1], "pads": [1, 0, 1, 2], "activation": "Silu"},
    ),
    (GEMM, (1, 9, 12, 60), 30, (5, 5), {"dilations": [1, 2]}),
    (GEMM, (1, 5, 5, 1030), 24, (1, 1), {"r": True}),
    (W23, (1, 9, 10, 530), 40, (3, 3), {"pads": [1, 1, 1, 1], "r": True, "activation": "Relu"}),
    (W43, (1, 13, 17, 270), 33, (3, 3), {"pads": [1, 1, 1, 1]}),
]
CONVS += LONG
# As many pixels, and tiles of Winograd, as any height of the tile leaves behind twelves.
CONVS += [
    (GEMM, (1, 1, 12 + n, 40), columns, (1, 1), {"r": n % 2, "activation": "Relu"})
    for n in range(12)
    for columns in (20, 24)
]
CONVS += [
    (W43, (1, 4, 4 * n, 20), columns, (3, 3), {"pads": [1] * 4})
    for n in range(1, 12)
    for columns in (16, 20)
]
#: Root mean square of what rounding may add, as a share of the output's: one chain of so many sums
#: has three times as much, Winograd's F(4,3) at the points 0, ±1, ±2 twice as much. Tiles of eight
#: points in a row round twice as much as those of six.
ROUNDED: list = [
    (GEMM, (1, 6, 8, 512), 32, (3, 3), {"pads": [1, 1, 1, 1]}, 5e-7),
    (GEMM, (1, 6, 8, 2048), 32, (1, 1), {}, 5e-7),
    (W43, (1, 12, 12, 64), 32, (3, 3), {"pads": [1, 1, 1, 1]}, 1.2e-6),
    (F32_3X3, (1, 12, 12, 64), 32, (3, 3), {"pads": [1, 1, 1, 1]}, 2.2e-6),
    (F32_3X3, (1, 8, 15, 64), 32, (3, 3), {"pads": [1, 1, 1, 1]}, 2.2e-6),
    (F32_5X5, (1, 12, 12, 64), 32, (5, 5), {"pads": [2, 2, 2, 2]}, 2.2e-6),
]


def cases(convs: list) -> list:
    return [
        pytest.param(*c, id=f"{c[0]}-{'x'.join(map(str, c[1]))}-{c[2]}-{i}")
        for i, c in enumerate(convs)
    ]


def close(got: np.ndarray, want: np.ndarray, limit: float = 3e-5) -> None:
    """Within `limit` of the output's root mean square, everywhere."""
    assert got.shape == want.shape
    scale = float(np.sqrt(np.mean(np.square(want, dtype=np.float64)))) + 1e-30
    error = np.abs(got.astype(np.float64) - want)
    worst = np.unravel_index(int(np.argmax(error)), error.shape)
    assert np.all(np.isfinite(got)) and error[worst] <= limit * scale, (
        f"{got[worst]} instead of {want[worst]} at {worst}, output rms {scale}"
    )


def close_short(got: np.ndarray, want: np.ndarray, limit: float) -> None:
    """`close` of a result that was rounded to bf16: at most half a unit of its last place off."""
    nearest = bf16_to_f32(f32_to_bf16(want.astype(np.float32)))
    close(np.where(np.abs(got - want) <= np.abs(want) * 2.0**-8, nearest, got), nearest, limit)


def rounding_error(got: np.ndarray, want: np.ndarray) -> float:
    off = got.astype(np.float64) - want
    return float(np.sqrt(np.mean(off**2) / np.mean(np.square(want, dtype=np.float64))))


def limit_of(kernel: str, isa: str) -> float:
    """F(4,3) and floats as two bf16 lose more than plain sums."""
    return 1e-4 if kernel in (W43, F32_3X3, F32_5X5, W43_BF16, X2, DECONV_X2) else 3e-5


def short(x: np.ndarray) -> np.ndarray:
    """Numbers that bf16 holds, so that every instruction set multiplies the same."""
    return (x.view(np.uint32) & 0xFFFF0000).view(np.float32)


def conv_case(kernel: str, x_dims, out_c, k, options, seed=0, rounded=None):
    """(op, physical inputs, attributes, expected physical output) of one convolution."""
    rng = np.random.default_rng(seed)
    attrs = {name: v for name, v in options.items() if name != "r"}
    group = attrs.setdefault("group", x_dims[3] if "depthwise" in kernel else 1)
    transposed = kernel in TRANSPOSED
    w_dims = (x_dims[3], out_c // group, *k) if transposed else (out_c, x_dims[3] // group, *k)
    x, w, b = (rng.standard_normal(d, np.float32) for d in (x_dims, w_dims, out_c))
    if kernel in (BF16, W43_BF16, DECONV_BF16, DEPTHWISE_BF16):
        x, w = short(x), short(w)
    if rounded:
        x, w = rounded(x), rounded(w)
    geometry = {n: v for n, v in attrs.items() if not n.startswith("activation")}
    want = (deconv if transposed else conv)(x, w, **geometry) + b
    inputs = [x, w, b]
    if options.get("r"):
        inputs.append(short(rng.standard_normal(want.shape, np.float32)))
        want = want + inputs[3]
    want = apply_activation(attrs.get("activation", ""), attrs.get("activation_params", []), want)
    return "ConvTranspose" if transposed else "Conv", inputs, attrs, want


# Values that lie in memory in bf16: kernels of their own, or bf16.cc around those of floats.
DEPTHWISE_BF16 = "bf16_conv2d_depthwise"
