"""Our own engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

FORMAT = "lite"
PRECISIONS = ("fp32", "bf16", "fp16", "int8")


def convert(onnx: Path, out: Path, precision: str) -> None:
    from lite_engine import optimize
    from lite_engine.runtime import host_target

    floats = "fp32" if precision == "int8" else precision
    optimize(onnx, targets=[host_target()], precision=floats).save(out)


def open(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str
) -> Callable[[], list[np.ndarray]]:
    from lite_engine import Predictor

    predictor = Predictor(model, threads=threads)
    return lambda: list(predictor.run(feeds).values())


def layers(
    model: Path, feeds: dict[str, np.ndarray], threads: int, precision: str, runs: int
) -> list[dict[str, Any]]:
    from lite_engine import Predictor
    from lite_engine.profile import profile

    taken = profile(Predictor(model, threads=threads), feeds, runs=runs).to_dict()
    return [
        {"nodes": list(row["sources"]), "ms": row["min_ms"], "kernel": row["kernel"]}
        for row in taken["layers"]
    ]
