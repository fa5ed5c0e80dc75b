"""A network of the wide set, or any of torchvision, timm or transformers, as ONNX, with its seeded
inputs (.npz) beside it.

python -m benchmarks.wide.export NAME FILE.onnx [BATCH]
"""

from __future__ import annotations

import argparse
import importlib
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch

from benchmarks.wide import builder_of

#: Every peer reads it, and attention is still written out in it.
OPSET = 18

#: Alive as long as what it defines.
_OPERATORS = torch.library.Library("torchvision", "FRAGMENT")


def build(name: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """The network and its inputs by name; the same numbers every time. Raises ValueError for a name
    that no library has."""
    torch.manual_seed(0)
    torch.set_num_threads(1)
    _describe()
    builder = importlib.import_module(f"benchmarks.wide.{builder_of(name)}")
    network, inputs = builder.build(name)
    return network.eval(), inputs


def repeated(inputs: dict[str, torch.Tensor], batch: int) -> dict[str, torch.Tensor]:
    """So many samples: the one that is given, and its elements further and further on."""
    return {
        key: torch.cat([value.roll(i, -1) for i in range(batch)]) for key, value in inputs.items()
    }


def write(network: torch.nn.Module, inputs: dict[str, torch.Tensor], out: Path) -> None:
    """Writes both files."""
    with torch.no_grad():
        torch.onnx.export(
            network, tuple(inputs.values()), str(out), input_names=list(inputs),
            opset_version=OPSET, dynamo=True, external_data=False, verbose=False,
        )  # fmt: skip
    arrays = {key: value.numpy() for key, value in inputs.items()}
    np.savez(out.with_suffix(".npz"), **arrays)  # type: ignore[arg-type]


def _describe() -> None:
    """Beside a PyTorch for processors, the usual torchvision cannot load its operators, which want
    CUDA. No network here calls one, but the import of torchvision gives two a meaning."""
    builds = [version(name).endswith("+cpu") for name in ("torch", "torchvision")]
    if builds == [True, False]:
        for name in ("nms", "qnms"):
            _OPERATORS.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m benchmarks.wide.export", description=__doc__)
    parser.add_argument("name", help="as in `benchmarks.wide`")
    parser.add_argument("out", type=Path, metavar="FILE.onnx")
    parser.add_argument("batch", type=int, nargs="?", default=1)
    options = parser.parse_args()
    network, inputs = build(options.name)
    write(network, repeated(inputs, options.batch), options.out)
