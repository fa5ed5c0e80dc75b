"""Image networks of torchvision and timm."""

from __future__ import annotations

import torch

from benchmarks.wide.settle import settle, settle_norms

SEGMENTED = 256
#: Where a library's own size is not 224.
SIZES = {"inception_v3": 299, "swin_v2_t": 256, "timm.edgenext_small": 256, "timm.mobilevit_s": 256,
         "timm.fastvit_t8": 256}  # fmt: skip


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
    """The network and its inputs by name."""
    size = SIZES.get(name, 224)
    if name.startswith("timm."):
        import timm

        network = timm.create_model(name.removeprefix("timm."), pretrained=False)
    else:
        import torchvision.models as library

        segments = hasattr(library.segmentation, name)
        size = SEGMENTED if segments else size
        options = {"weights_backbone": None} if segments else {}
        if name in ("googlenet", "inception_v3"):
            options = {"init_weights": True}
        network = library.get_model(name, weights=None, **options)
    settle(network)
    settle_norms(network, size)
    return First(network), {"image": torch.randn(1, 3, size, size)}
