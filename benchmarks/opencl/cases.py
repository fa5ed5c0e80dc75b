"""The networks on which OpenCL is measured: how each is built, as ONNX and in PyTorch.

A name of the zoo is built by `benchmarks/zoo` and has no module. `tv/NAME` is torchvision's with
random weights, `wide/NAME` one of `benchmarks/wide`, with the inputs that it is made for.
"""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import wide, zoo

#: Side of the images of networks that are not listed.
SIDE = 224
#: One network of each family: name → side of its images.
FAMILIES = {
    "alexnet": 224, "convnext_tiny": 224, "densenet121": 224, "efficientnet_b0": 224,
    "efficientnet_v2_s": 224, "googlenet": 224, "inception_v3": 299, "maxvit_t": 224,
    "mnasnet1_0": 224, "mobilenet_v2": 224, "mobilenet_v3_large": 224, "mobilenet_v3_small": 224,
    "regnet_x_400mf": 224, "regnet_y_400mf": 224, "resnet18": 224, "resnet50": 224,
    "resnext50_32x4d": 224, "shufflenet_v2_x0_5": 224, "squeezenet1_0": 224, "swin_t": 224,
    "swin_v2_t": 224, "vgg11": 224, "vgg11_bn": 224, "vit_b_32": 224, "wide_resnet50_2": 224,
    "deeplabv3_mobilenet_v3_large": 256, "deeplabv3_resnet50": 256, "fcn_resnet50": 256,
    "lraspp_mobilenet_v3_large": 256,
}  # fmt: skip


#: The sets by name, in the order in which they run.
SETS: dict[str, list[str]] = {
    "zoo": [*zoo.NAMES],
    "torchvision": [f"tv/{name}" for name in FAMILIES],
    "wide": [f"wide/{name}" for name in wide.NAMES],
}

#: PyTorch's module and inputs by name; None for a network that exists as ONNX alone, or for inputs
#: that may be any.
Built = tuple[Any, dict[str, np.ndarray] | None]


def build(name: str, path: Path) -> Built:
    """The network, and its ONNX file at `path` unless it is there already."""
    if name.startswith("wide/"):
        return _wide(name.removeprefix("wide/"), path)
    if name.startswith("tv/"):
        return _torchvision(name.removeprefix("tv/"), path), None
    path.write_bytes(zoo.build(name).SerializeToString())
    return None, None


def fresh(module: Any, dtype: Any, device: str) -> Any:
    """A module of its own in this type on this device. Some keep what they computed in a call for
    the next one, which may be in another type or elsewhere: `module` itself is never called."""
    return copy.deepcopy(module).to(device, dtype)


def tensors(feeds: dict[str, np.ndarray], dtype: Any, device: str) -> list[Any]:
    """PyTorch's positional inputs; those that are not floats keep their type."""
    import torch

    found = [torch.from_numpy(x) for x in feeds.values()]
    return [x.to(device, dtype if x.is_floating_point() else x.dtype) for x in found]


def _wide(name: str, path: Path) -> Built:
    from benchmarks.wide import export

    network, inputs = export.build(name)
    if not path.exists():
        export.write(copy.deepcopy(network), inputs, path)
    return network, {key: x.numpy() for key, x in inputs.items()}


def _torchvision(name: str, path: Path) -> Any:
    import torch
    import torchvision

    section = torchvision.models
    section = section if hasattr(section, name) else section.segmentation
    options: dict[str, Any] = {"weights": None}
    if section is torchvision.models.segmentation:
        options["weights_backbone"] = None
    if name in ("googlenet", "inception_v3"):
        options.update(aux_logits=False, init_weights=True)
    torch.manual_seed(0)
    side = FAMILIES.get(name, SIDE)
    module = _calibrated(getattr(section, name)(**options), side)
    if not path.exists():
        x = torch.zeros(1, 3, side, side)
        torch.onnx.export(
            copy.deepcopy(module),
            (x,),
            str(path),
            input_names=["x"],
            opset_version=17,
            dynamo=False,
        )
    return module


def _calibrated(module: Any, side: int) -> Any:
    """In evaluation mode, batch norms with the statistics of random images: with the initial ones
    the values of deep networks vanish or explode."""
    import torch

    for part in module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.reset_running_stats()
            part.momentum = None  # cumulative average
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
        if isinstance(part, torch.nn.Linear) and not part.weight.any():
            torch.nn.init.xavier_uniform_(part.weight)  # a head of zeros answers zero to anything
    module.train()
    with torch.no_grad():
        for seed in range(2):
            torch.manual_seed(seed)
            module(torch.randn(4, 3, side, side))
    return module.eval()
