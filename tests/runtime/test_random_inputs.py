"""Inputs that are made up lie where the model's own would."""

from __future__ import annotations

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine.ir import from_text
from lite_engine.model_file import Model
from lite_engine.runtime.inputs import image_feed, random_feeds
from lite_workbench.cli import main

NCHW = """graph "g" {
  input x: f32[2,3,4,5]
  "n": y = Relu(x)
  output y
}"""
PLAIN = NCHW.replace("2,3,4,5", "2000")
QUANTIZED = """graph "g" {
  input x: f32[2000]
  const s: f32[] = [0.05]
  const z: u8[] = [28]
  "q": y = QuantizeLinear(x, s, z)
  output y
}"""


def _model(text: str, **preprocess) -> Model:
    return Model(from_text(text), metadata={"preprocess": preprocess} if preprocess else {})


NHWC = NCHW.replace("2,3,4,5", "2,4,5,3")
GREY = NCHW.replace("2,3,4,5", "2,1,4,5")


@pytest.mark.parametrize(
    ("text", "preprocess"),
    [
        (NCHW, {"mean": [0.0], "std": [255.0]}),
        (NCHW, {"mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}),
        (NCHW, {"mean": [127.5], "std": [-127.5]}),
        (NHWC, {"mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}),
        (NHWC, {"mean": [127.5], "std": [127.5], "layout": "nhwc", "size": [4, 5]}),
        (GREY, {"mean": [127.5], "std": [127.5]}),
        (NCHW, {"fit": "stretch"}),
        (NHWC, {"colour": "bgr"}),
    ],
)
def test_of_images_they_are_what_pixels_become(text, preprocess):
    """The ends are the inputs that a black and a white image give."""
    model = _model(text, **preprocess)
    made = random_feeds(model)["x"]
    value = model.graph.inputs[0]
    ends = [image_feed(model, value, np.full((4, 5, 3), p, np.uint8))[0] for p in (0, 255)]
    low, high = np.minimum(*ends), np.maximum(*ends)
    assert made.dtype == np.float32 and made.shape == value.shape
    assert (made >= low).all() and (made <= high).all()
    assert np.ptp(made) > 0.8 * np.ptp([low, high])
    axes = (0, 1, 2) if text is NHWC else (0, 2, 3)
    assert (made.std(axis=axes) > 0.15 * (high - low).min()).all()


def test_preprocessing_is_of_the_first_input_that_can_be_an_image():
    sized = NCHW.replace("input x", "input size: f32[2,2]\n  input x")
    model = _model(sized.replace("  \"n\"", "  input mask: f32[2,3,4,5]\n  \"n\""),
                   mean=[100], std=[1])  # fmt: skip
    made = random_feeds(model)
    assert made["x"].min() < -50 and made["x"].max() > 50
    assert abs(made["size"]).max() < 9 and abs(made["mask"]).max() < 9


def test_of_a_quantized_input_they_are_what_its_integers_hold():
    made = random_feeds(_model(QUANTIZED))["x"]
    low, high = (0 - 28) * 0.05, (255 - 28) * 0.05
    assert low - 1e-6 <= made.min() < low + 0.5 and high - 0.5 < made.max() <= high + 1e-6
    np.testing.assert_array_equal(
        random_feeds(_model(PLAIN), others=[_model(QUANTIZED)])["x"], made
    )


def _scaled(scale: float, dtype: str = "f32") -> np.ndarray:
    model = _model(QUANTIZED.replace("f32[", f"{dtype}["))
    (node,) = model.graph.nodes
    node.inputs[1].const = np.full_like(node.inputs[1].const, scale)
    return random_feeds(model)["x"]


def test_a_negative_scale_turns_the_range_around():
    made = _scaled(-0.05)
    low, high = (255 - 28) * -0.05, (0 - 28) * -0.05
    assert low - 1e-6 <= made.min() < low + 0.5 and high - 0.5 < made.max() <= high + 1e-6


@pytest.mark.parametrize(
    ("scale", "dtype"),
    [(0.0, "f32"), (np.nan, "f32"), (np.inf, "f32"), (-np.inf, "f32"), (3e38, "f32"),
     (1000.0, "f16"), (7.5e305, "f64"), (1e306, "f64")],
)  # fmt: skip
def test_a_scale_whose_range_is_none_of_the_type_says_none(scale, dtype):
    plain = PLAIN.replace("f32[", f"{dtype}[")
    np.testing.assert_array_equal(_scaled(scale, dtype), random_feeds(_model(plain))["x"])


def test_what_says_no_range_gets_standard_normal_numbers():
    normal = np.random.default_rng(3).standard_normal((2, 3, 4, 5)).astype(np.float32)
    for preprocess in ({}, {"layout": "nhwc"}, {"mean": ["?"], "std": [1]}):
        np.testing.assert_array_equal(random_feeds(_model(NCHW, **preprocess), 3)["x"], normal)


@pytest.mark.cpu
def test_int8_answers_like_its_float_model_to_made_up_inputs(tmp_path, capsys):
    """Standard normal numbers are clipped to 0 … 1 by integers, but not by floats."""
    source, made = str(lw.shipped("digits.onnx")), str(tmp_path / "q.lite")
    samples = str(lw.shipped("digits_held_back.npz"))
    assert main(["quantize", source, "-o", made, "--targets", "x86", "--calibration", samples]) == 0
    capsys.readouterr()
    assert main(["compare", source, made]) == 0
    verdict = capsys.readouterr().out.strip().splitlines()[-1]
    assert verdict.startswith("same answer, ")
    assert verdict.endswith(" (random inputs 1 of 1, seed 0)")
