"""Every Paddle file of the model collection reproduces its recorded outputs on the references."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from lite_engine.importers import load

from tests.importers.golden_runs import run_graph

MODELS = Path(os.environ.get("LITE_TEST_MODELS", ""))
FLUID = "paddle/shufflenet_v2_imagenet_fluid"


def program_of(name: str) -> Path:
    path = MODELS / name
    return path if path.is_dir() else path.with_suffix(".pdmodel")


@pytest.mark.models
def test_combined_parameters_equal_separate_ones(tmp_path: Path) -> None:
    folder = MODELS / FLUID
    (tmp_path / "inference.pdmodel").write_bytes((folder / "__model__").read_bytes())
    names = sorted(p.name for p in folder.iterdir() if p.name != "__model__")
    combined = b"".join((folder / n).read_bytes() for n in names)
    (tmp_path / "inference.pdiparams").write_bytes(combined)
    one = load(folder)
    x = np.random.default_rng(0).normal(size=(1, 3, 224, 224)).astype(np.float32)
    wanted = run_graph(one, {"image": x})
    for path in (tmp_path, tmp_path / "inference.pdmodel", tmp_path / "inference.pdiparams"):
        two = load(path)
        assert [n.op for n in two.nodes] == [n.op for n in one.nodes]
        stored = {v.name: v.const for v in two.constants()}
        assert all(np.array_equal(stored[v.name], v.const) for v in one.constants())
    for name, y in run_graph(two, {"image": x}).items():
        assert np.array_equal(y, wanted[name])


@pytest.mark.models
def test_nodes_name_their_operators() -> None:
    graph = load(program_of(FLUID))
    conv = next(n for n in graph.nodes if n.op == "Conv")
    assert conv.sources == ("conv2d:conv2d_0.tmp_0",)
    assert graph.metadata["format"] == "paddle"
