"""Networks in the manner of PP-OCR: a DB text detector and a CRNN line recogniser."""

from __future__ import annotations

import math

import numpy as np
import onnx

from ._net import Net, Tensor
from .mobilenet import inverted_residual, round8

#: kernel, expansion, out, squeeze-excite, activation, stride: MobileNetV3-large
V3_LARGE = (
    (3, 16, 16, False, "relu", 1), (3, 64, 24, False, "relu", 2), (3, 72, 24, False, "relu", 1),
    (5, 72, 40, True, "relu", 2), (5, 120, 40, True, "relu", 1), (5, 120, 40, True, "relu", 1),
    (3, 240, 80, False, "hswish_hs", 2), (3, 200, 80, False, "hswish_hs", 1),
    (3, 184, 80, False, "hswish_hs", 1), (3, 184, 80, False, "hswish_hs", 1),
    (3, 480, 112, True, "hswish_hs", 1), (3, 672, 112, True, "hswish_hs", 1),
    (5, 672, 160, True, "hswish_hs", 2), (5, 960, 160, True, "hswish_hs", 1),
    (5, 960, 160, True, "hswish_hs", 1),
)  # fmt: skip


def ocr_detector() -> onnx.ModelProto:
    """DB detector: half-width MobileNetV3-large, feature pyramid of 96, shrink map 320x320."""
    net = Net("ppocr_det")
    x = net.cbr(net.input("x", (1, 3, 320, 320)), 8, 3, 2, "hswish_hs")
    levels: list[Tensor] = []
    for k, expand, out, _, act, s in V3_LARGE:
        if s == 2 and x.shape[2] <= 80:
            levels.append(x)
        x = inverted_residual(net, x, round8(out / 2), k, s, round8(expand / 2), act)
    levels.append(net.cbr(x, 480, 1, 1, "hswish_hs"))
    lateral = [net.conv(level, 96, 1) for level in levels]
    for i in (2, 1, 0):
        lateral[i] = net.add(lateral[i], net.resize(lateral[i + 1], 2))
    heads = [net.conv(level, 24, 3) for level in lateral]
    merged = net.concat(*[net.resize(h, 1 << i) if i else h for i, h in enumerate(heads)][::-1])
    x = net.cbr(merged, 24, 3)
    x = net.act(net.batch_norm(net.conv_transpose(x, 24)), "relu")
    net.output(net.act(net.conv_transpose(x, 1), "sigmoid"), "sigmoid_0.tmp_0")
    return net.build()


def _lstm(net: Net, x: Tensor, hidden: int) -> Tensor:
    """Bidirectional LSTM over (T, N, C) → (T, N, 2·hidden), as torch exports it."""
    steps, batch, width = x.shape
    bound = 1 / math.sqrt(hidden)
    sizes = ((2, 4 * hidden, width), (2, 4 * hidden, hidden), (2, 8 * hidden))
    arrays = [net.rng.uniform(-bound, bound, s).astype(np.float32) for s in sizes]
    zero = net.const(np.zeros((2, batch, hidden), np.float32), "state")
    y = net.op("LSTM", x, *[net.const(a, "lstm") for a in arrays], "", zero, zero, outputs=3,
               hidden_size=hidden, direction="bidirectional")[0]  # fmt: skip
    net.macs += steps * batch * 2 * 4 * hidden * (width + hidden)
    y = net.op("Transpose", y, perm=[0, 2, 1, 3])[0]
    y = net.op("Reshape", y, net.ints(0, 0, -1))[0]
    return Tensor(y, (steps, batch, 2 * hidden), 0.05)


def ocr_recogniser() -> onnx.ModelProto:
    """CRNN: 48x320 line → 80 steps of 6625 characters. Height shrinks 48 → 1, width by 4."""
    net = Net("ppocr_rec")
    x = net.cbr(net.input("x", (1, 3, 48, 320)), 32, 3, 2, "hswish_hs")
    for out, s, k, se in (
        (64, 1, 3, False), (128, 1, 3, False), (128, 1, 3, False), (256, (2, 1), 3, False),
        (360, (2, 1), 3, False), (360, 1, 5, False), (480, (2, 2), 5, True), (480, 1, 5, True),
    ):  # fmt: skip
        y = net.depthwise(x, k, s, "hswish_hs")
        if se:
            y = net.squeeze_excite(y, y.channels // 4)
        x = net.cbr(y, out, 1, 1, "hswish_hs")
    kernel = x.shape[2]
    y = net.op("AveragePool", x, kernel_shape=[kernel, 1], strides=[kernel, 1])[0]
    x = Tensor(y, (1, x.channels, 1, x.shape[3]), 0.2)
    y = net.op("Squeeze", x, net.ints(2))[0]
    x = net.transpose(Tensor(y, (1, x.channels, x.shape[3]), x.moment), 2, 0, 1)
    x = _lstm(net, _lstm(net, x, 96), 96)
    x = net.matmul(net.transpose(x, 1, 0, 2), 6625)
    net.output(net.unary("Softmax", x, axis=2), "softmax_0.tmp_0")
    return net.build()
