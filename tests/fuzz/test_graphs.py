"""Random graphs against onnxruntime (tests/fuzz/graphs.py): a few, or many with -m hours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pytest

pytest.importorskip("onnx", reason="pip install onnx")
pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

import onnx

from . import graphs
from .graph_moves import CATALOG


def check(count: int, seed: int, backends: Sequence[str]) -> None:
    found = [
        f"seed {at} on {name}: {text}\n{model}"
        for at, name, text, model in graphs.campaign(count, seed, backends)
    ]
    assert not found, "\n\n".join(found)


@pytest.mark.parametrize("seed", [0, 1_000_000])
def test_a_few(seed: int) -> None:
    check(40, seed, ["cpu", "reference", "optimized"])


def test_terms_that_cancel_leave_their_rounding() -> None:
    check(1, 2_054_150, ["cpu", "reference"])


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_one_element_normalized_is_the_bias(backend: str) -> None:
    """To the bit, where onnxruntime rounds."""
    calls = [graphs.Call("InstanceNormalization", ("x", "s", "b"), ("y",), {"epsilon": 1e-2})]
    x = np.array([0.11607152, -0.69616187, 1.7993603], np.float32).reshape(3, 1, 1)
    values = {"x": x, "y": x, "s": np.float32([-1.8672146]), "b": np.float32([-1.0021653])}
    model = graphs.Model(calls, values, {"s", "b"})
    (y,) = graphs.BACKENDS[backend].run(model.content(["y"]), [x])
    np.testing.assert_array_equal(y, np.full_like(x, values["b"]))


@pytest.mark.hours
@pytest.mark.parametrize("block", range(100))
def test_many(block: int) -> None:
    """10^5 graphs on every backend but OpenCL, which compiles each of them."""
    check(1000, 2_000_000 + 1000 * block, ["cpu", "plain", "reference", "optimized"])


@pytest.mark.hours
@pytest.mark.opencl
def test_many_on_opencl() -> None:
    check(1000, 3_000_000, ["opencl"])


def test_every_operator_is_drawn() -> None:
    drawn = {c.op for seed in range(150) for c in graphs.build(seed, CATALOG).calls}
    assert len(drawn) > 70, sorted(drawn)


@dataclass(frozen=True)
class Spoiled(graphs.Backend):
    """Wrong wherever a Transpose runs in front of anything."""

    def run(self, content: bytes, feeds: Sequence[np.ndarray]) -> list[np.ndarray]:
        found = super().run(content, feeds)
        operators = {n.op_type for n in onnx.load_from_string(content).graph.node}
        return [x + 1 for x in found] if "Transpose" in operators else found


def test_a_disagreement_shrinks_to_the_operator(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(graphs.BACKENDS, "spoiled", Spoiled("reference", False))
    found = list(graphs.campaign(25, 0, ["spoiled"]))
    assert found
    for _, _, text, model in found:
        assert text and [c.op for c in model.calls] == ["Transpose"]
