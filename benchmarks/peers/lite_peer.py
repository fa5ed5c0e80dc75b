"""Our own engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

FORMAT = "lite"
PRECISIONS = ("fp32", "bf16", "int8")


def convert(onnx: Path, out: Path, precision: str) -> None:
    from lite_engine import optimize
    from lite_engine.runtime import host_target

    bf16 = "bf16" if precision == "bf16" else "fp32"
    optimize(onnx, targets=[host_target()], precision=bf16).save(out)


def open(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str
) -> Callable[[], list[np.ndarray]]:
    from lite_engine import Predictor

    predictor = Predictor(model, threads=threads)
    return lambda: list(predictor.run(feeds).values())
