"""SqueezeNet 1.1, ShuffleNetV2 x1.0, EfficientNet-B0, GhostNet x1.0."""

from __future__ import annotations

from dataclasses import replace

import onnx

from ._net import Net, Tensor
from .mobilenet import inverted_residual, round8


def squeezenet() -> onnx.ModelProto:
    net = Net("squeezenet_v1_1")
    x = net.act(net.conv(net.input("input", (1, 3, 224, 224)), 64, 3, 2, 0, bias=True), "relu")

    def fire(x: Tensor, mid: int, out: int) -> Tensor:
        y = net.act(net.conv(x, mid, 1, bias=True), "relu")
        a = net.act(net.conv(y, out, 1, bias=True), "relu")
        b = net.act(net.conv(y, out, 3, bias=True), "relu")
        return net.concat(a, b)

    for group in (((16, 64), (16, 64)), ((32, 128), (32, 128)),
                  ((48, 192), (48, 192), (64, 256), (64, 256))):  # fmt: skip
        x = net.max_pool(x, 3, 2, ceil=True)
        for mid, out in group:
            x = fire(x, mid, out)
    x = net.unary("Dropout", x)
    x = net.act(net.conv(x, 1000, 1, bias=True), "relu")
    y = net.unary("Flatten", net.global_pool(x), axis=1)
    net.output(replace(y, shape=(1, 1000)), "output")
    return net.build()


def shuffle(net: Net, x: Tensor, groups: int = 2) -> Tensor:
    """Channel shuffle as Reshape, Transpose, Reshape."""
    n, c, h, w = x.shape
    y = net.reshape(x, n, groups, c // groups, h, w)
    return net.reshape(net.transpose(y, 0, 2, 1, 3, 4), n, c, h, w)


def shufflenet_v2() -> onnx.ModelProto:
    net = Net("shufflenet_v2_x1_0")
    x = net.cbr(net.input("input", (1, 3, 224, 224)), 24, 3, 2)
    x = net.max_pool(x, 3, 2, 1)
    for out, count in ((116, 4), (232, 8), (464, 4)):
        half = out // 2
        for i in range(count):
            s = 2 if i == 0 else 1
            if s == 2:
                left, right = net.cbr(net.depthwise(x, 3, 2, ""), half, 1), x
            else:
                sizes = net.ints(half, half)
                names = net.op("Split", x, sizes, outputs=2, axis=1)
                left, right = (replace(x, name=n, shape=(1, half, *x.shape[2:])) for n in names)
            right = net.cbr(right, half, 1)
            right = net.cbr(net.depthwise(right, 3, s, ""), half, 1)
            x = shuffle(net, net.concat(left, right))
    x = net.cbr(x, 1024, 1)
    mean = net.op("ReduceMean", x, axes=[2, 3], keepdims=0)[0]
    net.output(net.gemm(Tensor(mean, (1, 1024), 0.4), 1000), "output")
    return net.build()


#: expansion, out, repeats, stride, kernel
B0 = ((1, 16, 1, 1, 3), (6, 24, 2, 2, 3), (6, 40, 2, 2, 5), (6, 80, 3, 2, 3), (6, 112, 3, 1, 5),
      (6, 192, 4, 2, 5), (6, 320, 1, 1, 3))  # fmt: skip


def efficientnet_b0() -> onnx.ModelProto:
    net = Net("efficientnet_b0")
    x = net.cbr(net.input("input", (1, 3, 224, 224)), 32, 3, 2, "silu")
    for t, c, n, s, k in B0:
        for i in range(n):
            x = inverted_residual(
                net, x, c, k, s if i == 0 else 1, t * x.channels, "silu",
                se=max(1, x.channels // 4), gate="sigmoid", se_act="silu",
            )  # fmt: skip
    net.classifier(net.cbr(x, 1280, 1, 1, "silu"))
    return net.build()


#: kernel, expansion, out, squeeze-excite, stride
GHOST = (
    (3, 16, 16, 0, 1), (3, 48, 24, 0, 2), (3, 72, 24, 0, 1), (5, 72, 40, 1, 2), (5, 120, 40, 1, 1),
    (3, 240, 80, 0, 2), (3, 200, 80, 0, 1), (3, 184, 80, 0, 1), (3, 184, 80, 0, 1),
    (3, 480, 112, 1, 1), (3, 672, 112, 1, 1), (5, 672, 160, 1, 2), (5, 960, 160, 0, 1),
    (5, 960, 160, 1, 1), (5, 960, 160, 0, 1), (5, 960, 160, 1, 1),
)  # fmt: skip


def _ghost(net: Net, x: Tensor, out: int, act: str, gain: float = 1.0) -> Tensor:
    """Half the channels by 1x1, the other half by a cheap depthwise 3x3 of them."""
    a = net.cbr(x, out // 2, 1, 1, act, gain=gain)
    b = net.cbr(a, out // 2, 3, 1, act, g=out // 2, gain=gain)
    return net.concat(a, b)


def ghostnet() -> onnx.ModelProto:
    net = Net("ghostnet_x1_0")
    x = net.cbr(net.input("input", (1, 3, 224, 224)), 16, 3, 2)
    for k, expand, out, se, s in GHOST:
        y = _ghost(net, x, expand, "relu")
        if s == 2:
            y = net.depthwise(y, k, 2, "")
        if se:
            y = net.squeeze_excite(y, round8(expand / 4))
        y = _ghost(net, y, out, "", 0.5)
        short = x
        if s == 2 or x.channels != out:
            short = net.cbr(net.depthwise(x, k, s, ""), out, 1, 1, "")
        x = net.add(y, short)
    x = net.global_pool(net.cbr(x, 960, 1))
    x = net.act(net.conv(x, 1280, 1, bias=True), "relu")
    y = replace(net.unary("Flatten", x, axis=1), shape=(1, 1280))
    net.output(net.gemm(y, 1000), "output")
    return net.build()
