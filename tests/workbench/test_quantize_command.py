"""`lite quantize` on a small network and a folder of pictures."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.ir import from_text
from lite_engine.model_file import optimize, read_model
from lite_engine.ops import infer_types
from lite_workbench.cli import main

Image = pytest.importorskip("PIL.Image", reason="pictures are written with Pillow")

NETWORK = """graph "small" {
  input x: f32[1,3,16,16]
  const w: f32[8,3,3,3] = @0
  "conv": y = Conv(x, w) {pads=[1, 1, 1, 1]}
  output y
}"""


@pytest.mark.cpu
def test_calibration_sees_the_pictures_as_the_model_will(tmp_path):
    rng = np.random.default_rng(0)
    photos = tmp_path / "photos"
    photos.mkdir()
    for i in range(6):
        pixels = rng.integers(0, 256, (16, 16, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(photos / f"{i}.png")
    graph = from_text(NETWORK, [rng.standard_normal((8, 3, 3, 3)).astype(np.float32)])
    infer_types(graph)
    model, out = tmp_path / "small.lite", tmp_path / "int8.lite"
    optimize(graph).save(model)
    how = ["--preprocess", "mean=100,std=50", "--method", "minmax"]
    assert main(["quantize", str(model), "--calibration", str(photos), *how, "-o", str(out)]) == 0
    made = read_model(out)
    assert made.metadata["preprocess"]["mean"] in ([100.0], (100.0,))
    quantize = next(n for n in made.graph.nodes if n.op == "QuantizeLinear")
    low, high = (0 - 100) / 50, (255 - 100) / 50
    assert float(quantize.inputs[1].const) == pytest.approx((high - low) / 255, rel=0.05)
