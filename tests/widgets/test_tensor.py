"""What TensorView says of a tensor: figures, thumbnails, difference; and how a person uses it."""

from __future__ import annotations

import base64
import io
import re

import lite_widgets as lw
import numpy as np
import pytest
from PIL import Image

from tests.widgets.browser import saved
from tests.widgets.showcase import tensor


def read(view: dict, tiles: bytes) -> np.ndarray:
    """The values that the bytes of one view stand for, NaN for what is not finite."""
    level = np.frombuffer(tiles, np.uint8).reshape(-1, *view["tile"]).astype(float)
    lows, highs = (np.array(view[k])[:, None, None] for k in ("lows", "highs"))
    return np.where(level == 255, np.nan, lows + level * (highs - lows) / 254)


def test_thumbnails_hold_every_channel_to_half_a_level() -> None:
    values = np.random.default_rng(1).normal(size=(2, 5, 7, 9)).astype(np.float32)
    values[0, 3, 2, 4] = np.inf
    (view,), tiles = lw.tensor_views({"x86": values})
    got, wanted = read(view, tiles), np.where(np.isfinite(values[0]), values[0], np.nan)
    step = np.array(view["highs"]) - np.array(view["lows"])
    assert np.nanmax(np.abs(got - wanted).max(axis=(1, 2)) / step) <= 0.5 / 254 + 1e-6
    assert np.isnan(got[3, 2, 4]) and np.isnan(got).sum() == 1 and view["not_finite"] == 1
    finite = values[np.isfinite(values)]
    assert view["mean"] == pytest.approx(finite.mean(dtype=np.float64))
    assert sum(view["histogram"]["counts"]) == finite.size


def test_large_channels_are_means_of_blocks_and_many_channels_are_cut() -> None:
    values = np.arange(300 * 100 * 100, dtype=np.float32).reshape(1, 300, 100, 100)
    (view,), tiles = lw.tensor_views({"x86": values})
    assert (view["channels"], len(view["lows"]), view["factor"]) == (300, 256, [3, 2])
    got = read(view, tiles)
    assert got.shape == (256, 34, 50)
    assert got[5, 1, 2] == pytest.approx(values[0, 5, 3:6, 4:6].mean(), abs=20)
    assert got[5, 33, 49] == pytest.approx(values[0, 5, 99, 99], abs=20)  # a smaller block


def test_weights_show_the_kernels_of_each_output_channel() -> None:
    kernels = np.random.default_rng(2).normal(size=(4, 3, 2, 2))
    (view,), tiles = lw.tensor_views({"x86": kernels}, "weight")
    got = read(view, tiles)
    assert got.shape == (4, 4, 4)
    np.testing.assert_allclose(got[1, :2, 2:], kernels[1, 1], atol=0.02)
    np.testing.assert_allclose(got[1, 2:, :2], kernels[1, 2], atol=0.02)
    assert np.isnan(got[1, 2:, 2:]).all() and view["not_finite"] == 0


def test_the_difference_of_two_sides_is_a_view_of_its_own() -> None:
    a = np.array([1.0, np.nan, np.inf, 2.0], np.float32)
    b = np.array([1.5, np.nan, np.inf, np.nan], np.float32)
    views, _ = lw.tensor_views({"x86": a, "opencl": b})
    assert [v["name"] for v in views] == ["x86", "opencl", "difference"]
    assert (views[2]["low"], views[2]["high"], views[2]["not_finite"]) == (0, 0.5, 1)
    assert len(lw.tensor_views({"x86": a, "opencl": b[:2]})[0]) == 2


def test_a_single_different_value_is_seen_in_a_large_tensor() -> None:
    a = np.zeros((1, 2, 300, 300), np.float32)
    b = a.copy()
    b[0, 1, 150, 299] = -3
    views, tiles = lw.tensor_views({"x86": a, "opencl": b})
    size = 2 * 43 * 50
    assert views[2]["tile"] == [43, 50] and read(views[2], tiles[2 * size :])[1, 21, 49] == -3


def test_outliers_do_not_take_the_scale_of_colors() -> None:
    values = np.append(np.linspace(-1, 1, 9999), 1000.0)
    (view,), _ = lw.tensor_views({"x86": values})
    assert view["high"] == 1000 and view["scale"][1] < 1


@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 0, 4, 4), (1, 1, 1, 1), (1, 2, 3, 4, 5)])
def test_every_shape_can_be_shown(shape: tuple[int, ...]) -> None:
    view = lw.TensorView()
    view.show("y", {"x86": np.zeros(shape, np.int8)}, "weight")
    assert view.tensor["views"][0]["shape"] == list(shape) and "None" not in view.static_html()


def test_the_static_image_has_the_colors_of_the_values() -> None:
    view = lw.TensorView()
    view.show("y", {"x86": np.array([[-1.0, 0.0, 1.0]])})
    data = re.search(r"base64,([^\"]+)", view.static_svg())[1]
    pixels = np.asarray(Image.open(io.BytesIO(base64.b64decode(data))))[0, :3]
    wanted = [[0x21, 0x66, 0xAC], [0xF2, 0xF2, 0xF2], [0xB3, 0x58, 0x06]]  # "change" of UX
    np.testing.assert_allclose(pixels.astype(int), wanted, atol=1)  # 0 lies between two bytes


@pytest.mark.browser
def test_a_person_chooses_side_and_channel(mount) -> None:
    view = tensor()
    page = mount([view], width=900)
    saw = """() => { const c = document.querySelector('[data-large]');
      return [...c.getContext('2d').getImageData(59, 3, 1, 1).data]; }"""
    page.locator("[data-set=shown]", has_text="OpenCL").click()
    page.locator("[data-part=sheet]").focus()
    for _ in range(7):
        page.keyboard.press("ArrowRight")
    assert (saved(page)["channel"], saved(page)["shown"]) == (7, 1)
    page.get_by_text("Channel 7", exact=True).wait_for()
    wide = page.evaluate("() => document.querySelector('[data-large]').width")
    assert wide == 60 and page.evaluate(saw) == [0, 0, 0, 255]  # the last column is NaN
    assert page.locator(".lite-tensor .facts .bad").inner_text() == "12 values are not finite"
    box = page.locator("[data-sheet]").bounding_box()
    page.mouse.click(box["x"] + 5, box["y"] + 5)
    page.get_by_text("Channel 0", exact=True).wait_for()
