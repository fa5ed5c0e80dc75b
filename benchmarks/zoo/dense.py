"""Networks with dense outputs: YOLOv3-tiny, UNet, DeepLabV3 on MobileNetV2."""

from __future__ import annotations

from dataclasses import replace

import onnx

from ._net import Net, Tensor
from .mobilenet import mobilenet_v2_features


def yolov3_tiny() -> onnx.ModelProto:
    """416x416, two heads of 3·(5 + 80) channels at strides 32 and 16."""
    net = Net("yolov3_tiny")
    x = net.cbr(net.input("image", (1, 3, 416, 416)), 16, 3, act="leaky")
    for c in (32, 64, 128, 256, 512):
        route = x  # ends as the 256-channel features of stride 16
        x = net.cbr(net.max_pool(x, 2, 2), c, 3, act="leaky")
    x = net.max_pool(x, 2, 1, pads=(0, 0, 1, 1))
    x = net.cbr(net.cbr(x, 1024, 3, act="leaky"), 256, 1, act="leaky")
    large = net.conv(net.cbr(x, 512, 3, act="leaky"), 255, 1, bias=True)
    up = net.resize(net.cbr(x, 128, 1, act="leaky"), 2)
    small = net.cbr(net.concat(up, route), 256, 3, act="leaky")
    net.output(large, "stride32")
    net.output(net.conv(small, 255, 1, bias=True), "stride16")
    return net.build()


def unet() -> onnx.ModelProto:
    """256x256, 32 channels at the top, four levels, transposed convolutions up."""
    net = Net("unet_256_32")
    x = net.input("image", (1, 3, 256, 256))
    skips = []

    def double(x: Tensor, c: int) -> Tensor:
        return net.cbr(net.cbr(x, c, 3), c, 3)

    for level in range(4):
        x = double(x, 32 << level)
        skips.append(x)
        x = net.max_pool(x, 2, 2)
    x = double(x, 512)
    for level in reversed(range(4)):
        x = net.conv_transpose(x, 32 << level)
        x = double(net.concat(x, skips[level]), 32 << level)
    net.output(net.act(net.conv(x, 1, 1, bias=True), "sigmoid"), "mask")
    return net.build()


def deeplab_v3() -> onnx.ModelProto:
    """257x257, output stride 16, 21 classes, image pooling branch, bilinear upsampling."""
    net = Net("deeplab_v3_mobilenet")
    image = net.input("image", (1, 3, 257, 257))
    x = mobilenet_v2_features(net, image, output_stride=16)
    size = x.shape[2:]
    pooled = net.cbr(net.global_pool(x), 256, 1)
    up = net.op("Resize", pooled, "", "", net.ints(1, 256, *size), mode="linear",
                coordinate_transformation_mode="align_corners")[0]  # fmt: skip
    branch = net.cbr(x, 256, 1)
    x = net.concat(replace(pooled, name=up, shape=(1, 256, *size)), branch)
    x = net.conv(net.cbr(x, 256, 1), 21, 1, bias=True)
    y = net.op("Resize", x, "", "", net.ints(1, 21, 257, 257), mode="linear",
               coordinate_transformation_mode="align_corners")[0]  # fmt: skip
    net.output(Tensor(y, (1, 21, 257, 257)), "logits")
    return net.build()
