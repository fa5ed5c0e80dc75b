"""Networks without weights files: built by `onnx.helper` with seeded weights.

model = zoo.build("mobilenet_v1")        # onnx.ModelProto, the same bytes every time
"""

from __future__ import annotations

from collections.abc import Callable

import onnx

from . import dense, light, mobilenet, ocr, resnet, transformer

_BUILDERS: dict[str, Callable[[], onnx.ModelProto]] = {
    "mobilenet_v1": mobilenet.mobilenet_v1,
    "mobilenet_v2": mobilenet.mobilenet_v2,
    "mobilenet_v3_small": mobilenet.mobilenet_v3_small,
    "shufflenet_v2": light.shufflenet_v2,
    "squeezenet": light.squeezenet,
    "resnet18": resnet.resnet18,
    "resnet50": resnet.resnet50,
    "yolov3_tiny": dense.yolov3_tiny,
    "unet": dense.unet,
    "ocr_recogniser": ocr.ocr_recogniser,
    "ocr_detector": ocr.ocr_detector,
    "efficientnet_b0": light.efficientnet_b0,
    "ghostnet": light.ghostnet,
    "deeplab_v3": dense.deeplab_v3,
    "vit_tiny": transformer.vit_tiny,
    "text_encoder": transformer.text_encoder,
}
NAMES = tuple(_BUILDERS)


def build(name: str) -> onnx.ModelProto:
    """The network of that name. Raises KeyError that lists the names."""
    if name not in _BUILDERS:
        raise KeyError(f"no network {name!r} in the zoo; there are: {', '.join(NAMES)}")
    return _BUILDERS[name]()


def macs(model: onnx.ModelProto) -> int:
    """Multiply-accumulates of a network that this zoo built."""
    return int({p.key: p.value for p in model.metadata_props}["macs"])


__all__ = ["NAMES", "build", "macs"]
