"""What training would have changed in a new network."""

from __future__ import annotations

import torch

SPREAD = 0.02


def settle(network: torch.nn.Module) -> None:
    """Parameters that begin at 0 get small numbers: a head of zeros would hide every difference,
    and a bias of zeros is no work."""
    with torch.no_grad():
        for parameter in network.parameters():
            if parameter.is_floating_point() and not parameter.any():
                parameter.normal_(0, SPREAD)


def settle_norms(network: torch.nn.Module, size: int) -> None:
    """Gives batch norms the statistics of their own inputs: with those of a new network, deep ones
    multiply their numbers up or down to nothing. `size`: rows and columns of an image."""
    norms = [m for m in network.modules() if isinstance(m, torch.nn.modules.batchnorm._BatchNorm)]
    for norm in norms:
        norm.momentum = 1.0
        norm.train()
    # Two images: a norm after a global pool has one number of each.
    with torch.no_grad():
        network(torch.randn(2, 3, size, size))
