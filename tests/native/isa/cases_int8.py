"""Calls of the integer kernels as tables: convolutions, also those for tiles and those whose sums
reach their limits, and transposed ones."""

from __future__ import annotations

import numpy as np
import pytest

pytestmark = pytest.mark.cpu


GEMM, DEPTHWISE, DECONV = "i8_conv2d_gemm", "i8_conv2d_depthwise", "i8_deconv2d"
U8, I8 = np.uint8, np.int8
LARGE = 2 << 20  # of a second-level cache, whatever this processor has

# kernel, x (N,H,W,C), output channels, kernel, attributes, x type, w type, y type
CONVS: list[tuple] = [
    (GEMM, (1, 1, 1, 1), 1, (1, 1), {}, U8, I8, U8),
    (GEMM, (1, 5, 5, 8), 9, (1, 1), {}, U8, I8, U8),
    (GEMM, (2, 4, 7, 33), 65, (1, 1), {}, I8, I8, I8),
    (GEMM, (1, 9, 9, 16), 40, (1, 1), {"strides": [2, 2]}, U8, I8, I8),
    (GEMM, (1, 11, 13, 3), 24, (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, U8, I8, U8),
    (GEMM, (1, 9, 8, 20), 33, (3, 3), {"pads": [1, 1, 1, 1]}, I8, U8, U8),
    (GEMM, (1, 9, 8, 32), 32, (3, 3), {"pads": [1, 1, 1, 1], "activation": "Relu"}, I8, I8, I8),
    (
        GEMM,
        (1, 7, 7, 6),
        10,
        (5, 5),
        {"pads": [2, 2, 2, 2], "dilations": [1, 2], "auto_pad": "SAME_UPPER"},
        U8,
        U8,
        I8,
    ),
    (GEMM, (1, 6, 6, 16), 16, (3, 3), {"group": 4, "pads": [1, 1, 1, 1]}, U8, I8, U8),
    (GEMM, (1, 6, 6, 10), 10, (3, 3), {"group": 10, "pads": [1, 1, 1, 1]}, I8, I8, I8),
    (GEMM, (1, 3, 3, 4), 6, (3, 3), {"pads": [3, 3, 3, 3]}, U8, I8, U8),
    (
        GEMM,
        (1, 16, 16, 64),
        64,
        (1, 1),
        {"activation": "Clip", "activation_params": [-0.5, 0.5]},
        U8,
        I8,
        U8,
    ),
    (GEMM, (2, 9, 10, 18), 20, (3, 3), {"pads": [0, 1, 1, 0]}, I8, I8, U8),
    (DEPTHWISE, (1, 8, 8, 64), 64, (3, 3), {"pads": [1, 1, 1, 1]}, U8, I8, U8),
    (DEPTHWISE, (2, 7, 9, 70), 70, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, I8),
    (DEPTHWISE, (1, 9, 9, 20), 20, (3, 3), {"pads": [0, 0, 1, 1], "strides": [2, 2]}, U8, U8, I8),
    (DEPTHWISE, (1, 9, 8, 33), 33, (5, 5), {"pads": [2, 2, 2, 2]}, I8, U8, U8),
    (DEPTHWISE, (1, 9, 8, 17), 17, (5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 2]}, U8, I8, U8),
    (DEPTHWISE, (1, 9, 1, 5), 5, (3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}, U8, I8, U8),
    (DEPTHWISE, (1, 1, 3, 130), 130, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, I8),
    (DEPTHWISE, (1, 5, 1, 4), 4, (1, 1), {"activation": "Relu"}, U8, I8, U8),
    # half a register of channels, an odd number of tiles in a row
    (DEPTHWISE, (1, 7, 17, 32), 32, (3, 3), {"pads": [1, 1, 1, 1]}, U8, I8, U8),
    (DEPTHWISE, (2, 9, 11, 96), 96, (5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 2]}, I8, I8, I8),
    # 3x3 tiles of two rows: an odd row at the end of each image, rows of one tile, strides and
    # dilations that part rows but not columns, and columns but not rows
    (DEPTHWISE, (2, 5, 4, 96), 96, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, U8),
    (DEPTHWISE, (1, 9, 13, 70), 70, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 1]}, I8, I8, I8),
    (DEPTHWISE, (2, 8, 13, 70), 70, (3, 3), {"pads": [2, 0, 1, 1], "strides": [1, 2]}, U8, I8, I8),
    (
        DEPTHWISE,
        (1, 11, 9, 32),
        32,
        (3, 3),
        {"pads": [2, 1, 2, 1], "dilations": [2, 1], "y_zero": 0},
        U8,
        I8,
        U8,
    ),
    # 5x5: rows that end in parts of tiles and of registers, rows left out, padding of either kind
    (DEPTHWISE, (2, 11, 23, 72), 72, (5, 5), {"pads": [2, 2, 2, 2]}, I8, I8, U8),
    (
        DEPTHWISE,
        (1, 12, 19, 120),
        120,
        (5, 5),
        {"pads": [1, 3, 2, 0], "strides": [2, 2]},
        U8,
        U8,
        U8,
    ),
    (
        DEPTHWISE,
        (1, 17, 9, 24),
        24,
        (5, 5),
        {"pads": [4, 4, 4, 4], "strides": [6, 1], "activation": "Relu"},
        I8,
        I8,
        I8,
    ),
    (DEPTHWISE, (1, 5, 5, 8), 8, (5, 5), {"zeros": "some"}, U8, U8, I8),
    (DEPTHWISE, (1, 6, 73, 40), 40, (5, 5), {"pads": [2, 2, 2, 2]}, U8, I8, U8),
    # a residual, whole vectors and parts of them, of either type
    (GEMM, (1, 16, 16, 64), 64, (1, 1), {"residual": I8}, U8, I8, U8),
    (GEMM, (2, 4, 7, 33), 65, (1, 1), {"residual": U8}, I8, I8, I8),
    (GEMM, (1, 9, 8, 20), 33, (3, 3), {"pads": [1, 1, 1, 1], "residual": U8}, I8, I8, U8),
    (
        GEMM,
        (1, 6, 6, 16),
        16,
        (3, 3),
        {"group": 4, "pads": [1, 1, 1, 1], "residual": I8, "activation": "Relu"},
        U8,
        I8,
        I8,
    ),
    # sums rounded before it
    (GEMM, (1, 16, 16, 64), 64, (1, 1), {"residual": I8, "sum_zero": 11}, U8, I8, U8),
    (GEMM, (2, 4, 7, 33), 65, (1, 1), {"residual": I8, "sum_zero": -7}, I8, I8, I8),
    (
        GEMM,
        (1, 9, 8, 20),
        9,
        (3, 3),
        {"pads": [1, 1, 1, 1], "residual": U8, "sum_zero": 128, "activation": "Relu"},
        I8,
        I8,
        U8,
    ),
    # zero points of 0, and of the least number; two rows of seven pixels in one tile
    (GEMM, (1, 9, 7, 24), 64, (1, 1), {"y_zero": 0}, U8, I8, U8),
    (
        GEMM,
        (1, 9, 7, 24),
        48,
        (1, 1),
        {"residual": U8, "residual_zero": 0, "y_zero": 0},
        U8,
        I8,
        U8,
    ),
    (
        GEMM,
        (1, 5, 5, 24),
        48,
        (1, 1),
        {"residual": I8, "residual_zero": -128, "y_zero": -128, "sum_zero": 5},
        U8,
        I8,
        I8,
    ),
    (
        GEMM,
        (2, 7, 7, 64),
        40,
        (3, 3),
        {"pads": [1, 1, 1, 1], "residual": U8, "sum_zero": 9, "residual_zero": 0, "y_zero": 0},
        U8,
        I8,
        U8,
    ),
    (GEMM, (1, 7, 7, 32), 33, (3, 3), {"pads": [1, 1, 1, 1], "zeros": "some"}, U8, U8, U8),
    # weights with zero points: one for all, or one per channel
    *(
        (kernel, dims, out_c, k, {**options, "zeros": zeros}, *types)
        for zeros in (0, 151, 255, "some", "near")
        for kernel, dims, out_c, k, options, *types in (
            (GEMM, (1, 5, 5, 8), 9, (1, 1), {}, U8, U8, U8),
            (GEMM, (2, 4, 7, 133), 65, (1, 1), {}, I8, U8, I8),
            (GEMM, (1, 9, 8, 20), 33, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, U8),
            (
                GEMM,
                (1, 11, 13, 3),
                24,
                (3, 3),
                {"strides": [2, 2], "pads": [1, 1, 1, 1]},
                U8,
                U8,
                U8,
            ),
            (GEMM, (1, 6, 6, 16), 16, (3, 3), {"group": 4, "pads": [1, 1, 1, 1]}, I8, U8, U8),
            (
                DEPTHWISE,
                (1, 9, 9, 20),
                20,
                (3, 3),
                {"pads": [0, 0, 1, 1], "strides": [2, 2]},
                U8,
                U8,
                I8,
            ),
            (DEPTHWISE, (1, 8, 8, 70), 70, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, U8),
            (DEPTHWISE, (1, 9, 8, 33), 33, (5, 5), {"pads": [2, 2, 2, 2]}, U8, U8, U8),
        )
    ),
    (GEMM, (1, 28, 19, 8), 33, (3, 3), {"pads": [12, 6, 12, 6], "dilations": [12, 6]}, U8, I8, U8),
]

# Large enough for AMX tiles: what lies where it is read, copies with padding, rows split by stride,
# taps joined to one row of a tile, depths that do not fill tiles, groups, a residual, sums rounded
# before it.
TILED: list[tuple] = [
    (GEMM, (1, 16, 16, 64), 64, (1, 1), {}, U8, I8, U8),
    (GEMM, (1, 10, 10, 96), 40, (1, 1), {"residual": I8}, I8, I8, U8),
    (GEMM, (2, 4, 13, 256), 16, (1, 1), {"activation": "Relu"}, U8, I8, I8),
    (GEMM, (1, 14, 14, 58), 58, (1, 1), {"residual": U8}, U8, I8, U8),
    (GEMM, (1, 10, 10, 96), 40, (1, 1), {"residual": U8, "sum_zero": 0}, U8, I8, U8),
    (GEMM, (1, 14, 14, 64), 10, (1, 1), {"residual": I8, "sum_zero": 5}, U8, I8, I8),
    (GEMM, (1, 28, 27, 64), 128, (1, 1), {"strides": [2, 2]}, U8, I8, I8),
    (GEMM, (1, 7, 7, 128), 64, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, I8),
    (GEMM, (2, 15, 13, 64), 33, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}, U8, I8, U8),
    (
        GEMM,
        (1, 17, 15, 72),
        48,
        (3, 3),
        {"pads": [0, 2, 1, 0], "strides": [3, 2], "residual": I8},
        I8,
        I8,
        U8,
    ),
    (GEMM, (1, 16, 15, 64), 96, (3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}, U8, I8, U8),
    (GEMM, (1, 40, 42, 3), 64, (7, 7), {"pads": [3, 3, 3, 3], "strides": [2, 2]}, U8, I8, U8),
    (GEMM, (1, 30, 30, 16), 32, (3, 3), {"pads": [1, 1, 1, 1]}, I8, I8, I8),
    (GEMM, (1, 20, 21, 32), 48, (3, 3), {"pads": [1, 1, 1, 1]}, U8, I8, U8),
    (GEMM, (2, 18, 17, 28), 32, (3, 3), {"pads": [1, 1, 1, 1], "strides": [2, 2]}, I8, I8, I8),
    (GEMM, (1, 16, 17, 21), 33, (5, 5), {"pads": [2, 0, 2, 4], "residual": U8}, U8, I8, U8),
    (GEMM, (1, 12, 12, 128), 128, (3, 3), {"group": 2, "pads": [1, 1, 1, 1]}, U8, I8, U8),
    (
        GEMM,
        (1, 20, 18, 64),
        64,
        (5, 1),
        {"pads": [2, 0, 2, 0], "activation": "Clip", "activation_params": [-0.5, 9]},
        U8,
        I8,
        I8,
    ),
    (
        GEMM,
        (1, 7, 16, 100),
        30,
        (2, 3),
        {"pads": [3, 2, 2, 1], "strides": [3, 1], "dilations": [1, 2]},
        I8,
        I8,
        I8,
    ),
    (GEMM, (1, 2, 30, 64), 64, (3, 3), {"pads": [3, 3, 3, 3]}, U8, I8, U8),
]

# Large enough for Winograd's F(4,3): whole tiles and parts of them, edges without padding and with
# more than the kernel asks for, channels that fill no register, several images, residuals.
EXACT: list[tuple] = [
    (GEMM, (1, 16, 16, 64), 64, (3, 3), {"pads": [1, 1, 1, 1]}, U8, I8, U8),
    (GEMM, (1, 24, 18, 64), 48, (3, 3), {"pads": [1, 1, 1, 1], "activation": "Relu"}, I8, I8, I8),
    (GEMM, (2, 17, 21, 61), 75, (3, 3), {"pads": [0, 2, 1, 3], "y_zero": 0}, U8, I8, U8),
    (GEMM, (1, 22, 23, 96), 100, (3, 3), {}, I8, I8, U8),
    (GEMM, (1, 24, 20, 64), 70, (3, 3), {"pads": [1, 1, 1, 1], "residual": I8}, U8, I8, I8),
    (
        GEMM,
        (1, 20, 19, 64),
        64,
        (3, 3),
        {"pads": [1, 1, 1, 1], "residual": U8, "sum_zero": 9, "residual_zero": 0, "y_zero": 0},
        U8,
        I8,
        U8,
    ),
]

# x (N,H,W,C), output channels, kernel, attributes, x type, w type, y type: taps that overlap, gaps
# between them, cut edges, groups; the last ones are large enough for AMX, read in place or copied.
DECONVS: list[tuple] = [
    ((1, 3, 4, 8), 5, (2, 2), {"strides": [2, 2]}, U8, I8, U8),
    ((2, 5, 3, 7), 33, (3, 3), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, I8, I8, I8),
    ((1, 4, 5, 12), 10, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, U8, U8, I8),
    ((1, 4, 4, 6), 4, (1, 2), {"strides": [3, 2]}, U8, I8, U8),
    (
        (1, 5, 4, 8),
        12,
        (3, 2),
        {
            "strides": [2, 3],
            "dilations": [3, 2],
            "group": 4,
            "output_padding": [1, 2],
            "activation": "Relu",
        },
        I8,
        I8,
        U8,
    ),
    ((1, 6, 6, 20), 20, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1], "group": 20}, U8, I8, U8),
    (
        (1, 5, 6, 12),
        8,
        (3, 3),
        {"strides": [2, 1], "pads": [3, 2, 1, 0], "group": 2, "zeros": "some"},
        U8,
        U8,
        U8,
    ),
    ((1, 9, 8, 64), 48, (2, 2), {"strides": [2, 2]}, U8, I8, U8),
    ((2, 5, 7, 64), 64, (2, 2), {"strides": [2, 2], "activation": "Relu"}, I8, I8, I8),
    ((1, 12, 13, 64), 64, (4, 4), {"strides": [2, 2], "pads": [1, 1, 1, 1]}, U8, I8, I8),
]
