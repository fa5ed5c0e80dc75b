"""The five networks of the comparison in PyTorch, random weights, the zoo's shapes."""

from __future__ import annotations

import torch
from torch import nn


def _block(cin: int, cout: int, stride: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(cin, cin, 3, stride, 1, groups=cin, bias=False), nn.BatchNorm2d(cin), nn.ReLU(),
        nn.Conv2d(cin, cout, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(),
    )  # fmt: skip


def mobilenet_v1() -> nn.Module:
    layers = [nn.Conv2d(3, 32, 3, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    channels = 32
    for cout, stride in (
        (64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *[(512, 1)] * 5, (1024, 2),
        (1024, 1),
    ):  # fmt: skip
        layers.append(_block(channels, cout, stride))
        channels = cout
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(1024, 1000))


def _double(cin: int, cout: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(cin, cout, 3, 1, 1), nn.BatchNorm2d(cout), nn.ReLU(),
        nn.Conv2d(cout, cout, 3, 1, 1), nn.BatchNorm2d(cout), nn.ReLU(),
    )  # fmt: skip


class UNet(nn.Module):
    """256x256, 32 channels at the top, four levels down."""

    def __init__(self) -> None:
        super().__init__()
        sizes = [32, 64, 128, 256, 512]
        self.down = nn.ModuleList(_double(a, b) for a, b in zip([3, *sizes], sizes))
        self.up = nn.ModuleList(nn.ConvTranspose2d(2 * c, c, 2, 2) for c in sizes[-2::-1])
        self.join = nn.ModuleList(_double(2 * c, c) for c in sizes[-2::-1])
        self.head = nn.Conv2d(32, 1, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skips = []
        for i, block in enumerate(self.down):
            x = block(x if i == 0 else nn.functional.max_pool2d(x, 2))
            skips.append(x)
        for up, join, skip in zip(self.up, self.join, skips[-2::-1]):
            x = join(torch.cat([skip, up(x)], 1))
        return torch.sigmoid(self.head(x))


def build(name: str) -> tuple[nn.Module, torch.Tensor]:
    """(network in eval mode on the GPU, input). Raises KeyError for an unknown name."""
    import torchvision.models as tv

    made = {
        "mobilenet_v1": mobilenet_v1, "resnet18": tv.resnet18, "resnet50": tv.resnet50,
        "squeezenet": tv.squeezenet1_1, "unet": UNet,
    }[name]()  # fmt: skip
    size = 256 if name == "unet" else 224
    return made.eval().cuda(), torch.randn(1, 3, size, size, device="cuda")
