"""Pictures to inputs: the native steps give the numbers of lite_engine.preprocess (Pillow)."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lite_engine.pipeline.native import NativePipeline
from lite_engine.preprocess import Preprocess

from .pipes import document, model, png

pytestmark = pytest.mark.cpu


def prepared(how: dict, pixels: np.ndarray, **more) -> np.ndarray:
    seen = []
    size = how.pop("size")
    native = NativePipeline(
        document([model("m", size=size, **how, **more)]),
        lambda _, x: seen.append(x) or [np.zeros(2, np.float32)],
    )
    native.run(png(pixels))
    return seen[0]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(1, 70), st.integers(1, 70), st.integers(1, 40), st.integers(1, 40),
    st.sampled_from(["stretch", "crop", "letterbox", "height"]),
    st.sampled_from(["rgb", "bgr", "grey"]),
    st.sampled_from(["nchw", "nhwc"]), st.sampled_from(["unit", "pm1", "imagenet", "none"]),
)  # fmt: skip
def test_every_resize_mode_has_the_same_numbers(
    w, h, in_w, in_h, fit, colour, layout, scale
) -> None:
    pixels = np.random.default_rng(w * 71 + h).integers(0, 256, (h, w, 3), np.uint8)
    if scale == "imagenet" and colour == "grey":
        scale = "pm1"
    how = {"fit": fit, "colour": colour, "layout": layout, "size": [in_h, in_w]}
    if scale == "imagenet":
        how |= {"mean": [123.675, 116.28, 103.53], "std": [58.395, 57.12, 57.375]}
    elif scale != "none":
        how |= (
            {"mean": [127.5], "std": [127.5]} if scale == "pm1" else {"mean": [0.0], "std": [255.0]}
        )
    want = Preprocess.from_dict(how).fitted((1, 3, in_h, in_w)).apply(pixels)
    # Pillow chooses by cost which of the two passes goes first, and each rounds to bytes: where
    # both sides change, a pixel may be one level off.
    step = 1.001 / min(abs(s) for s in how.get("std", [255.0]))
    one_pass = fit == "stretch" and (w == in_w or h == in_h)
    np.testing.assert_allclose(prepared(how, pixels), want, rtol=0, atol=0 if one_pass else step)


@pytest.mark.parametrize("dtype", ["u8", "i8"])
@pytest.mark.parametrize("numbers", [True, False])
def test_integer_inputs_are_quantised(dtype: str, numbers: bool) -> None:
    pixels = np.random.default_rng(1).integers(0, 256, (9, 9, 3), np.uint8)
    zero = 128 if dtype == "u8" else 3
    how: dict = {"size": [9, 9], "layout": "nhwc"}
    how |= {"mean": [127.5], "std": [127.5]} if numbers else {}
    got = prepared(how, pixels, input={"dtype": dtype, "scale": 0.0078125, "zero_point": zero})
    low = 0 if dtype == "u8" else -128
    x = (pixels.astype(np.float32) - 127.5) / np.float32(127.5)
    want = np.round(x / np.float32(0.0078125)) + zero if numbers else pixels.astype(np.int64) + low
    np.testing.assert_array_equal(got[0], np.clip(want, low, low + 255).astype(got.dtype))
