"""MobileNet V1, V2 and V3-small (Howard 2017, Sandler 2018, Howard 2019)."""

from __future__ import annotations

import onnx

from ._net import Net, Tensor


def round8(channels: float) -> int:
    """Nearest multiple of 8 that is not more than 10 % smaller."""
    rounded = max(8, int(channels + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * channels else rounded


def mobilenet_v1() -> onnx.ModelProto:
    net = Net("mobilenet_v1")
    x = net.cbr(net.input("input", (1, 3, 224, 224)), 32, 3, 2)
    for out, s in ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5,
                   (1024, 2), (1024, 1)):  # fmt: skip
        x = net.cbr(net.depthwise(x, 3, s), out, 1)
    net.classifier(x, softmax=True)
    return net.build()


def inverted_residual(
    net: Net, x: Tensor, out: int, k: int, s: int, expand: int, act: str,
    *, se: int = 0, gate: str = "hsigmoid", se_act: str = "relu", d: int = 1, s_hw: object = None,
) -> Tensor:  # fmt: skip
    """Expansion 1x1, depthwise, optional squeeze-excite, linear projection, shortcut."""
    y = net.cbr(x, expand, 1, 1, act) if expand != x.channels else x
    y = net.depthwise(y, k, s_hw or s, act, d)  # type: ignore[arg-type]
    if se:
        y = net.squeeze_excite(y, se, gate, se_act)
    same = s == 1 and s_hw is None and out == x.channels
    y = net.cbr(y, out, 1, 1, "", gain=0.5 if same else 1.0)
    return net.add(y, x) if same else y


V2_BLOCKS = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
             (6, 160, 3, 2), (6, 320, 1, 1))  # fmt: skip


def mobilenet_v2_features(net: Net, x: Tensor, output_stride: int = 32) -> Tensor:
    """The body up to 320 channels; beyond `output_stride` strides become dilations."""
    x = net.cbr(x, 32, 3, 2, "relu6")
    stride, dilation = 2, 1
    for t, c, n, s in V2_BLOCKS:
        if stride * s > output_stride:
            dilation, s = dilation * s, 1
        stride *= s
        for i in range(n):
            step = s if i == 0 else 1
            x = inverted_residual(net, x, c, 3, step, t * x.channels, "relu6", d=dilation)
    return x


def mobilenet_v2() -> onnx.ModelProto:
    net = Net("mobilenet_v2")
    x = mobilenet_v2_features(net, net.input("input", (1, 3, 224, 224)))
    net.classifier(net.cbr(x, 1280, 1, 1, "relu6"))
    return net.build()


#: kernel, expansion, out, squeeze-excite, activation, stride
V3_SMALL = (
    (3, 16, 16, True, "relu", 2),
    (3, 72, 24, False, "relu", 2),
    (3, 88, 24, False, "relu", 1),
    (5, 96, 40, True, "hswish", 2),
    (5, 240, 40, True, "hswish", 1),
    (5, 240, 40, True, "hswish", 1),
    (5, 120, 48, True, "hswish", 1),
    (5, 144, 48, True, "hswish", 1),
    (5, 288, 96, True, "hswish", 2),
    (5, 576, 96, True, "hswish", 1),
    (5, 576, 96, True, "hswish", 1),
)


def mobilenet_v3_small() -> onnx.ModelProto:
    net = Net("mobilenet_v3_small")
    x = net.cbr(net.input("input", (1, 3, 224, 224)), 16, 3, 2, "hswish")
    for k, expand, out, se, act, s in V3_SMALL:
        x = inverted_residual(net, x, out, k, s, expand, act, se=round8(expand / 4) if se else 0)
    x = net.global_pool(net.cbr(x, 576, 1, 1, "hswish"))
    x = net.act(net.conv(x, 1024, 1, bias=True), "hswish")
    x = net.conv(x, 1000, 1, bias=True)
    net.output(net.reshape(x, 1, 1000), "output")
    return net.build()
