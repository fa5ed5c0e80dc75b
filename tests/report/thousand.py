"""A report about a network of a thousand layers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from lite_engine import optimize
from lite_engine.ir import DType, Graph, Value
from lite_engine.runtime import host_target
from lite_workbench.report import write_report
from lite_workbench.session import Session

LAYERS = 1000


def chain(count: int) -> Graph:
    """A chain of small convolutions, each another operator to the optimiser."""
    rng = np.random.default_rng(0)
    graph = Graph("chain")
    y = Value("x", DType.F32, (1, 8, 8, 8))
    graph.inputs = [y]
    for i in range(count // 2):
        weight = graph.constant(rng.standard_normal((8, 8, 1, 1)).astype(np.float32) * 0.35)
        y = graph.add("Conv", [y, weight], {}, name=f"block{i // 10}/conv{i}").output
        y = graph.add("Softmax", [y], {"axis": 1}, name=f"block{i // 10}/soft{i}").output
    graph.outputs = [y]
    return graph


def thousand_layers(folder: Path) -> Path:
    """Timed and compared on this machine, told in folder/report.html."""
    optimize(chain(LAYERS), targets=[host_target()]).save(folder / "chain.lite")
    session = Session(folder / "chain.lite")
    session.set_input()
    session.profile(host_target(), runs=2)
    session.compare("reference", host_target())
    return write_report([session], folder / "report.html")
