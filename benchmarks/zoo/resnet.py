"""ResNet-18 and ResNet-50 (He 2015), stride on the 3x3 convolution."""

from __future__ import annotations

import onnx

from ._net import Net, Tensor


def _basic(net: Net, x: Tensor, mid: int, s: int) -> Tensor:
    y = net.cbr(net.cbr(x, mid, 3, s), mid, 3, 1, "", gain=0.5)
    short = x if s == 1 and x.channels == mid else net.cbr(x, mid, 1, s, "")
    return net.act(net.add(y, short), "relu")


def _bottleneck(net: Net, x: Tensor, mid: int, s: int) -> Tensor:
    y = net.cbr(net.cbr(net.cbr(x, mid, 1), mid, 3, s), 4 * mid, 1, 1, "", gain=0.5)
    short = x if s == 1 and x.channels == 4 * mid else net.cbr(x, 4 * mid, 1, s, "")
    return net.act(net.add(y, short), "relu")


def _resnet(name: str, block: object, repeats: tuple[int, ...]) -> onnx.ModelProto:
    net = Net(name)
    x = net.cbr(net.input("input", (1, 3, 224, 224)), 64, 7, 2)
    x = net.max_pool(x, 3, 2, 1)
    for stage, count in enumerate(repeats):
        for i in range(count):
            x = block(net, x, 64 << stage, 2 if stage and i == 0 else 1)  # type: ignore[operator]
    net.classifier(x)
    return net.build()


def resnet18() -> onnx.ModelProto:
    return _resnet("resnet18", _basic, (2, 2, 2, 2))


def resnet50() -> onnx.ModelProto:
    return _resnet("resnet50", _bottleneck, (3, 4, 6, 3))
