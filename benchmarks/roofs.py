"""Each layer of a network against the roofs of this machine, measured on the spot."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

RUNS = 30


def layers(model: Path, feeds: Path, threads: int) -> dict[str, Any]:
    """The profile of a `.lite` file: roofs, and per layer time, work and fraction of its roof."""
    from lite_engine import Predictor
    from lite_engine.profile import profile
    from lite_engine.runtime import host_target

    predictor = Predictor(model, host_target(), threads=threads)
    with np.load(feeds) as file:
        taken = profile(predictor, {n: file[n] for n in file.files}, runs=RUNS)
    return taken.to_dict()


def print_layers(network: str, found: dict[str, Any]) -> None:
    roof = found.get("roofline") or found.get("roof")
    if roof:
        print(
            f"{network}: roofs {roof['gflops']:.0f} GFLOP/s, {roof['gbytes_per_s']:.0f} GB/s "
            f"({roof['what']})"
        )
    for row in sorted(found["layers"], key=lambda r: -r["min_ms"]):
        fraction = row.get("roofline_fraction")
        print(
            f"  {row['min_ms']:8.3f} ms {'' if fraction is None else f'{fraction:4.0%}':>5}"
            f" of its roof  {row['kernel']:40} {row['name']}"
        )
