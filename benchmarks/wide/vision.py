"""Image networks of torchvision and timm."""

from __future__ import annotations

import torch

from benchmarks.wide.settle import settle, settle_norms

SEGMENTED = 256
#: Where torchvision's own size is not 224; timm's networks say theirs.
SIZES = {"inception_v3": 299, "swin_v2_t": 256}


class First(torch.nn.Module):
    """The one output that inference uses, of networks that return several."""

    def __init__(self, network: torch.nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, image: torch.Tensor) -> torch.Tensor:
        found = self.network(image)
        if isinstance(found, dict):
            return found["out"]
        return found if isinstance(found, torch.Tensor) else found[0]


def build(name: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """The network and its inputs by name. Raises ValueError for a name that no library has."""
    if name.startswith("timm."):
        import timm

        if not timm.is_model(name.removeprefix("timm.")):
            raise ValueError(f"timm has no network {name.removeprefix('timm.')}")
        network = timm.create_model(name.removeprefix("timm."), pretrained=False)
        size = network.default_cfg["input_size"][-1]
    else:
        import torchvision.models as library

        segments = hasattr(library.segmentation, name)
        size = SEGMENTED if segments else SIZES.get(name, 224)
        options = {"weights_backbone": None} if segments else {}
        if name in ("googlenet", "inception_v3"):
            options = {"init_weights": True}
        network = library.get_model(name, weights=None, **options)
    settle(network)
    settle_norms(network, size)
    return First(network), {"image": torch.randn(1, 3, size, size)}
