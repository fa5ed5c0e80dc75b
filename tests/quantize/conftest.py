"""A small network with everything that integers meet: depthwise, residual, gates, concat, views."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import Graph, from_text
from lite_engine.ops import infer_types
from lite_engine.quantize import Scheme, calibrate, prepare

NETWORK = """graph "small" {
  input x: f32[1,3,16,16]
  const w0: f32[8,3,3,3] = @0
  const b0: f32[8] = @1
  const w1: f32[8,1,3,3] = @2
  const b1: f32[8] = @3
  const w2: f32[8,8,1,1] = @4
  const b2: f32[8] = @5
  const w3: f32[8,8,1,1] = @6
  const b3: f32[8] = @7
  const w4: f32[16,10] = @8
  const b4: f32[10] = @9
  "stem": c0 = Conv(x, w0, b0) {pads=[1, 1, 1, 1], strides=[2, 2], activation="Relu"}
  "depth": c1 = Conv(c0, w1, b1) {pads=[1, 1, 1, 1], group=8, activation="HardSwish"}
  "point": c2 = Conv(c1, w2, b2, c0)
  "gate.pool": p = GlobalAveragePool(c2)
  "gate": g = Conv(p, w3, b3) {activation="HardSigmoid", activation_params=[0.2, 0.5]}
  "scale": s = Mul(c2, g)
  "join": j = Concat(s, c0) {axis=1}
  "pool": m = MaxPool(j) {kernel_shape=[2, 2], strides=[2, 2]}
  "mean": a = GlobalAveragePool(m)
  "flat": f = Flatten(a)
  "fc": l = Gemm(f, w4, b4)
  "prob": y = Softmax(l)
  output y
}"""


def small_network(seed: int = 0) -> Graph:
    rng = np.random.default_rng(seed)

    def draw(*shape: int, fan: int) -> np.ndarray:
        return (rng.standard_normal(shape) * np.sqrt(2 / fan)).astype(np.float32)

    arrays = [
        draw(8, 3, 3, 3, fan=27), draw(8, fan=200), draw(8, 1, 3, 3, fan=9), draw(8, fan=200),
        draw(8, 8, 1, 1, fan=8), draw(8, fan=200), draw(8, 8, 1, 1, fan=8), draw(8, fan=200),
        4 * draw(16, 10, fan=16), draw(10, fan=200),
    ]  # fmt: skip
    graph = from_text(NETWORK, arrays)
    for node in graph.nodes:
        node.sources = (node.name,)
    infer_types(graph)
    return graph


def images(count: int = 12, seed: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal((1, 3, 16, 16)).astype(np.float32) for _ in range(count)]


@pytest.fixture
def network() -> Graph:
    return small_network()


@pytest.fixture
def samples() -> list[np.ndarray]:
    return images()


@pytest.fixture(scope="session")
def calibrated():
    """(prepared graph, calibration, ranges, scheme)"""
    parent = prepare(small_network())
    calibration = calibrate(parent, images())
    return parent, calibration, calibration.ranges("mse"), Scheme()


@pytest.fixture(scope="session")
def sqnr():
    def measure(want: np.ndarray, got: np.ndarray) -> float:
        noise = np.sum((want.astype(np.float64) - got) ** 2)
        return float(10 * np.log10(np.sum(want.astype(np.float64) ** 2) / max(noise, 1e-30)))

    return measure
