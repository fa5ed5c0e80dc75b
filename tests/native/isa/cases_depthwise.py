"""Calls of the depthwise kernel, as CONVS of cases_f32 without the kernel."""

from __future__ import annotations

from typing import Any

CASES: list[tuple[tuple[int, ...], int, tuple[int, int], dict[str, Any]]] = [
    ((1, 14, 14, 40), 40, (3, 3), {"pads": [1, 1, 1, 1]}),
    ((2, 13, 15, 35), 35, (3, 3), {"pads": [0, 0, 1, 1], "strides": [2, 2], "r": 1}),
    ((1, 7, 6, 72), 72, (5, 5), {"pads": [2, 2, 2, 2], "activation": "HardSwish"}),
    ((1, 14, 9, 33), 33, (5, 5), {"pads": [2, 2, 2, 2], "strides": [2, 2]}),
    ((1, 1, 3, 5), 5, (3, 3), {"pads": [1, 1, 1, 1]}),
    ((1, 9, 9, 20), 20, (3, 3), {"pads": [2, 2, 2, 2], "dilations": [2, 2]}),
    ((1, 9, 9, 50), 50, (7, 7), {"pads": [3, 3, 3, 3], "activation": "Relu"}),
    ((1, 4, 9, 18), 18, (1, 3), {"pads": [0, 5, 0, 5], "strides": [1, 3]}),
    # Rows in pieces, of 7, 5 and 3 taps, in tiles of 7 pixels and of 4; widths without pieces.
    ((1, 11, 21, 40), 40, (7, 7), {"pads": [3] * 4, "strides": [2, 2], "r": 1}),
    ((2, 9, 16, 35), 35, (9, 9), {"pads": [4] * 4, "activation": "HardSwish"}),
    ((1, 3, 30, 18), 18, (1, 22), {"pads": [0, 9, 0, 12]}),
    ((1, 8, 5, 33), 33, (3, 8), {"pads": [0, 4, 1, 4]}),
    ((1, 12, 4, 20), 20, (7, 1), {"pads": [3, 0, 3, 0]}),
    ((1, 5, 9, 35), 35, (1, 1), {"activation": "Relu", "r": 1}),
    ((2, 3, 4, 66), 66, (1, 1), {"activation": "HardSwish"}),
    ((1, 3, 3, 5), 5, (1, 1), {}),
    ((1, 6, 1, 8), 8, (1, 1), {"activation": "Clip", "activation_params": [-1.0, 0.5]}),
    ((1, 5, 7, 12), 12, (1, 1), {"pads": [0, 1, 1, 2], "strides": [2, 2]}),
    ((2, 3, 14, 37), 37, (1, 1), {"r": 1}),
    ((1, 3, 17, 40), 40, (1, 1), {"activation": "Clip", "activation_params": [-1.0, 0.5], "r": 1}),
    ((1, 4, 15, 28), 28, (1, 1), {"pads": [1, 1, 0, 0], "activation": "Relu"}),
    # Pairs of rows in tiles of 7 and 8 pixels, channels that do not fill a vector, uneven padding.
    ((1, 9, 14, 58), 58, (3, 3), {"pads": [1] * 4, "activation": "HardSwish"}),
    ((1, 6, 16, 35), 35, (3, 3), {"pads": [1] * 4, "activation": "Relu"}),
    ((2, 15, 28, 58), 58, (3, 3),
     {"pads": [1] * 4, "strides": [2, 2], "activation": "HardSwish"}),
    ((1, 17, 31, 21), 21, (3, 3), {"pads": [1] * 4, "strides": [2, 2], "activation": "Clip",
                                   "activation_params": [-0.5, 0.7]}),
    ((1, 8, 14, 12), 12, (3, 3), {"pads": [1, 0, 1, 2]}),
    ((1, 8, 15, 20), 20, (3, 3), {"pads": [0, 0, 1, 2], "strides": [2, 2]}),
    ((1, 6, 9, 3), 3, (3, 3), {"pads": [1] * 4}),
    ((1, 7, 14, 39), 39, (5, 5), {"pads": [2] * 4, "activation": "HardSwish"}),
    ((2, 6, 8, 20), 20, (5, 5), {"pads": [2, 1, 2, 2], "activation": "Relu"}),
    ((1, 17, 28, 72), 72, (5, 5), {"pads": [2] * 4, "strides": [2, 2], "activation": "Clip",
                                   "activation_params": [-0.5, 0.7]}),
    ((1, 13, 17, 16), 16, (5, 5), {"pads": [1, 1, 2, 2], "strides": [2, 2]}),
    ((1, 8, 16, 37), 37, (7, 7), {"pads": [3] * 4, "activation": "Relu"}),
    ((2, 10, 15, 24), 24, (7, 7), {"pads": [2, 0, 3, 3]}),
    # Low maps, which rows of taps exceed on either side, and as wide as a tile.
    ((1, 2, 8, 33), 33, (7, 7), {"pads": [3] * 4, "activation": "HardSwish"}),
    ((3, 4, 7, 20), 20, (7, 7), {"pads": [3] * 4}),
    ((1, 3, 7, 17), 17, (5, 5), {"pads": [2] * 4}),
    # Dilated: the outputs of a tile lie as far apart as its taps.
    ((1, 10, 17, 37), 37, (5, 5),
     {"dilations": [2, 2], "pads": [4] * 4, "r": 1, "activation": "HardSwish"}),
    ((2, 9, 26, 18), 18, (3, 3), {"dilations": [3, 3], "pads": [3] * 4, "activation": "Silu"}),
    ((1, 9, 30, 20), 20, (3, 3), {"dilations": [1, 4], "pads": [1, 4, 1, 2]}),
]  # fmt: skip
