"""Pictures → inputs, against the operations of torchvision, timm and Ultralytics spelled out, and
answers back on the picture."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_engine import optimize
from lite_engine.errors import LiteError, ShapeError, UsageError
from lite_engine.ir import DType, Graph, QuantParams, Value
from lite_engine.model_file import read_model
from lite_engine.preprocess import Preprocess
from lite_engine.quantize import read_samples
from lite_engine.runtime.inputs import image_feed
from lite_engine.runtime.support import model_info
from lite_workbench.answers import answer_of
from lite_workbench.cli import main
from lite_workbench.session import Session

from tests.small_models import Builder, classifier

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")

#: (width, height): both ways round, odd, a divisor of the size, the size itself, tiny, and long
PICTURES = [(640, 480), (481, 641), (333, 500), (256, 256), (224, 224), (31, 17), (900, 20)]


def noise(width: int, height: int) -> Any:
    values = np.random.default_rng(width * 1000 + height).integers(0, 256, (height, width, 3))
    return Image.fromarray(values.astype(np.uint8))


def prepared(how: str, picture: Any) -> np.ndarray:
    return Preprocess.parse(how).pixels(np.asarray(picture))


# ---- oracles


def resized_shorter(picture: Any, short: int) -> Any:
    """torchvision.transforms.Resize(int)."""
    width, height = picture.size
    long = int(short * max(width, height) / min(width, height))
    size = (short, long) if width <= height else (long, short)
    return picture if picture.size == size else picture.resize(size, Image.Resampling.BILINEAR)


def centre_crop(picture: Any, height: int, width: int) -> np.ndarray:
    """torchvision.transforms.CenterCrop."""
    top = round((picture.height - height) / 2.0)
    left = round((picture.width - width) / 2.0)
    return np.asarray(picture.crop((left, top, left + width, top + height)))


def letterboxed(picture: Any, height: int, width: int, value: int) -> np.ndarray:
    """Ultralytics' LetterBox, with Pillow's bilinear filter."""
    r = min(height / picture.height, width / picture.width)
    unpadded = round(picture.width * r), round(picture.height * r)
    dw, dh = (width - unpadded[0]) / 2, (height - unpadded[1]) / 2
    top, bottom = round(dh - 0.1), round(dh + 0.1)
    left, right = round(dw - 0.1), round(dw + 0.1)
    if picture.size != unpadded:
        picture = picture.resize(unpadded, Image.Resampling.BILINEAR)
    padding = ((top, bottom), (left, right), (0, 0))
    return np.pad(np.asarray(picture), padding, constant_values=value)


# ---- pictures


@pytest.mark.parametrize("size", PICTURES)
def test_stretch_is_the_usual(size: tuple[int, int]) -> None:
    picture = noise(*size)
    want = np.asarray(picture.resize((96, 64), Image.Resampling.BILINEAR))
    for how in ("raw,size=64x96", "raw,stretch,size=64x96"):
        np.testing.assert_array_equal(prepared(how, picture), want)


@pytest.mark.parametrize("size", PICTURES)
@pytest.mark.parametrize("short", [224, 232, 235, 256, 342])
def test_crop_is_resize_and_centre_crop(size: tuple[int, int], short: int) -> None:
    picture = noise(*size)
    want = centre_crop(resized_shorter(picture, short), 224, 224)
    np.testing.assert_array_equal(prepared(f"crop=224/{short},size=224x224", picture), want)
    if short == 256:
        np.testing.assert_array_equal(prepared("crop,size=224x224", picture), want)


@pytest.mark.parametrize("pct", [0.875, 0.9, 0.95, 0.96, 1.0])
@pytest.mark.parametrize("side", [224, 240, 299, 380])
def test_crop_shares_are_those_of_timm(side: int, pct: float) -> None:
    picture = noise(640, 480)
    want = centre_crop(resized_shorter(picture, math.floor(side / pct)), side, side)
    np.testing.assert_array_equal(prepared(f"crop={pct},size={side}x{side}", picture), want)


def test_a_crop_that_is_not_square_covers_the_size() -> None:
    """As high as 64 / 0.5, or as wide as 96 / 0.5, whichever leaves nothing open."""
    for size, resized in [((400, 200), (256, 128)), ((400, 400), (192, 192))]:
        picture = noise(*size)
        whole = picture.resize(resized, Image.Resampling.BILINEAR)
        got = prepared("crop=0.5,size=64x96", picture)
        np.testing.assert_array_equal(got, centre_crop(whole, 64, 96))


@pytest.mark.parametrize("size", [*PICTURES, (123, 77), (640, 427), (427, 640)])
@pytest.mark.parametrize("shape", [(640, 640), (64, 97), (320, 192)])
@pytest.mark.parametrize("value", [114, 0])
def test_letterbox(size: tuple[int, int], shape: tuple[int, int], value: int) -> None:
    picture = noise(*size)
    word = "letterbox" if value == 114 else f"letterbox={value}"
    got = prepared(f"{word},size={shape[0]}x{shape[1]}", picture)
    np.testing.assert_array_equal(got, letterboxed(picture, *shape, value))


def test_a_letterboxed_line_keeps_a_pixel() -> None:
    assert Preprocess.parse("letterbox,size=64x64").placed((1, 700)) == ((64, 64), (1, 64), (31, 0))


def test_colour_and_numbers_come_after_the_fit() -> None:
    red = np.zeros((10, 20, 3), np.uint8)
    red[..., 0] = 200
    x = Preprocess.parse("mean=10/20/30,std=2,bgr,letterbox,size=20x20").apply(red)
    assert x.shape == (1, 3, 20, 20)
    assert x[0, :, 10, 10].tolist() == [-5, -10, 85] and x[0, :, 0, 0].tolist() == [52, 47, 42]
    grey = Preprocess.parse("raw,grey,letterbox=7,size=20x20").apply(red)
    assert grey.shape == (1, 1, 20, 20) and grey[0, 0, 0, 0] == 7
    np.testing.assert_array_equal(Preprocess(colour="grey").pixels(red[..., :1]), red[..., :1])


def test_a_picture_that_a_crop_would_blow_up_is_refused() -> None:
    line = np.zeros((1, 60_000, 3), np.uint8)
    with pytest.raises(
        UsageError, match="60000x1 is too narrow for a center crop of 224x224; use letterbox"
    ):
        Preprocess.parse("crop,size=224x224").pixels(line)
    assert Preprocess.parse("letterbox,size=224x224").pixels(line).shape == (224, 224, 3)


def test_a_fit_needs_a_size() -> None:
    spec = Preprocess.parse("crop").fitted((1, 3, "H", "W"))
    with pytest.raises(UsageError, match="crop needs a size, like crop,size=224x224"):
        spec.pixels(np.zeros((8, 8, 3), np.uint8))


# ---- words and what travels


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("crop", {"fit": "crop", "crop": 0.875}),
        ("crop=224/256", {"fit": "crop", "crop": 0.875}),
        ("letterbox", {"fit": "letterbox", "pad": 114}),
        ("unit,letterbox=0", {"mean": (0,), "std": (255,), "fit": "letterbox", "pad": 0}),
        ('{"crop": 0.9}', {"fit": "crop", "crop": 0.9}),
        ('{"pad": 3, "size": [4, 5]}', {"size": (4, 5), "fit": "letterbox", "pad": 3}),
        ("stretch", {}),
        ("bgr,nhwc", {"colour": "bgr", "layout": "nhwc"}),
        ("std=2", {"mean": (0,), "std": (2,)}),
        ("imagenet", {"mean": (123.675, 116.28, 103.53), "std": (58.395, 57.12, 57.375)}),
    ],
)
def test_only_what_is_said_is_kept(text: str, said: dict[str, Any]) -> None:
    spec = Preprocess.parse(text)
    assert spec.to_dict() == said
    assert Preprocess.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert Preprocess.parse(spec.fit_word).fit == spec.fit


def test_short_forms() -> None:
    spec = Preprocess.parse("mean=127,std=128,bgr,size=240x320")
    assert (spec.mean, spec.std, spec.colour, spec.size) == ((127,), (128,), "bgr", (240, 320))
    assert Preprocess.parse('{"mean": [1], "std": [2]}').std == (2,)
    fitted = Preprocess.parse("pm1").fitted((1, 48, 192, 3))
    assert (fitted.layout, fitted.size) == ("nhwc", (48, 192))


def test_words_on_the_fit_leave_the_model_its_numbers() -> None:
    known = {"mean": [127.5], "std": [127.5], "colour": "bgr", "fit": "crop", "crop": 0.9}
    numbers = {"mean": (127.5,), "std": (127.5,), "colour": "bgr"}
    for text, said in [
        ("letterbox", {"fit": "letterbox", "pad": 114}), ("stretch", {}),
        ("crop", {"fit": "crop", "crop": 0.875}),
        ("size=3x4", {"size": (3, 4), "fit": "crop", "crop": 0.9}),
    ]:  # fmt: skip
        assert Preprocess.parse(text, known).to_dict() == {**numbers, **said}
    assert Preprocess.parse("unit", known) == Preprocess.parse("unit")
    assert Preprocess.parse("unit", "damage") == Preprocess.parse("unit")


@pytest.mark.parametrize(
    "data",
    [
        5, "imagenet", [1], {"zoom": 1}, {"mean": [1, 2]}, {"mean": []}, {"mean": "a"},
        {"mean": float("nan")}, {"mean": [[1]]}, {"mean": 1, "std": 0}, {"std": float("inf")},
        {"std": 10**400}, {"mean": [1, 2, 3], "colour": "grey"}, {"colour": []},
        {"colour": "cmyk"}, {"layout": {}}, {"size": 5}, {"size": "ab"}, {"size": [0, 4]},
        {"size": [-4, -4]}, {"size": [4.5, 4]}, {"size": [float("inf"), 4]},
        {"size": [100_000, 100_000]}, {"fit": "zoom"}, {"fit": []}, {"crop": 256}, {"crop": 0},
        {"crop": -0.5}, {"crop": float("nan")}, {"crop": []}, {"pad": 256}, {"pad": -1},
        {"pad": 1.5}, {"pad": float("nan")}, {"fit": "crop", "pad": 1},
        {"fit": "stretch", "crop": 0.9},
    ],
    ids=str,
)  # fmt: skip
def test_hostile_values_are_one_line(data: Any) -> None:
    """What a file says may be anything; it does not keep the model from being looked at."""
    with pytest.raises(UsageError) as caught:
        Preprocess.from_dict(data)
    assert str(caught.value).startswith("preprocessing") and "\n" not in str(caught.value)
    graph = classifier("N")
    graph.metadata["preprocess"] = data
    assert model_info(graph, "m").layers
    with pytest.raises(UsageError, match=r"^preprocessing"):
        image_feed(optimize(graph), graph.inputs[0], np.zeros((4, 4, 3), np.uint8))


@pytest.mark.parametrize(
    "text", ["crop=0", "crop=256", "crop=1/0", "crop=x", "letterbox=x", "letterbox=300", "croop",
             "imagnet", "mean=x", "std=0", "size=0x4", "size=4", "size=axb", "[", "{", '["crop"]',
             pytest.param('{"a":' * 5000, id="deep")]
)  # fmt: skip
def test_wrong_words(text: str) -> None:
    with pytest.raises(UsageError):
        Preprocess.parse(text)


def test_what_is_not_said_is_the_input_s_own() -> None:
    fitted = Preprocess.parse("crop").fitted((1, 32, 32, 1))
    assert (fitted.colour, fitted.layout, fitted.size) == ("grey", "nhwc", (32, 32))
    assert Preprocess.parse("bgr").fitted((1, 3, 8, 9)).colour == "bgr"
    stated = Preprocess.from_dict({"layout": "nhwc", "size": [4, 4]})
    assert stated.fitted(("N", "H", "W", "C")).colour == "rgb"
    for shape in [(1, 5), (1, 4, 8, 8)]:
        with pytest.raises(ShapeError):
            Preprocess().fitted(shape)


def test_a_fit_alone_scales_as_if_nothing_were_said() -> None:
    picture = np.full((10, 20, 3), 51, np.uint8)
    graph = classifier()
    graph.metadata["preprocess"] = Preprocess.parse("letterbox").to_dict()
    x = image_feed(optimize(graph), graph.inputs[0], picture)
    assert x[0, 0, 10, 10] == pytest.approx(0.2) and x[0, 0, 0, 0] == pytest.approx(114 / 255)
    (sample,) = read_samples([picture], graph)
    np.testing.assert_array_equal(sample["x"], x)
    bytes_in = Value("x", DType.U8, (1, 20, 20, 3), quant=QuantParams(np.float32(0.5), np.uint8(9)))
    whole = image_feed(optimize(graph), bytes_in, picture)
    assert set(np.unique(whole)) == {51, 114}


def test_the_file_keeps_it_and_old_files_mean_the_same(tmp_path: Path) -> None:
    picture = noise(50, 30)
    old = {"mean": [0.0], "std": [1.0], "colour": "rgb", "layout": None, "size": [20, 20]}
    for said, want in [
        (old, np.asarray(picture.resize((20, 20), Image.Resampling.BILINEAR))),
        (Preprocess.parse("raw,crop=20/30").to_dict(), centre_crop(picture, 20, 20)),
    ]:
        graph = classifier()
        graph.metadata["preprocess"] = said
        model = read_model(optimize(graph).save(tmp_path / "m.lite"))
        x = image_feed(model, model.graph.inputs[0], np.asarray(picture))
        np.testing.assert_array_equal(x[0].transpose(1, 2, 0), want)


# ---- answers


def marked(box: tuple[int, int, int, int]) -> np.ndarray:
    """A black picture of 300x160 with a white rectangle."""
    picture = np.zeros((160, 300, 3), np.uint8)
    x0, y0, x1, y1 = box
    picture[y0:y1, x0:x1] = 255
    return picture


def seen_box(x: np.ndarray) -> list[float]:
    """Bounds of what is white in a (1,3,H,W) input, in its pixels."""
    rows, columns = (np.flatnonzero((x[0, 0] > 0.9).any(axis=axis)) for axis in (1, 0))
    return [columns[0], rows[0], columns[-1] + 1, rows[-1] + 1]


@pytest.mark.parametrize("how", ["stretch", "crop", "crop=1", "letterbox", "letterbox=0"])
@pytest.mark.parametrize("size", ["200x200", "120x200", "200x121"])
def test_boxes_come_back_to_the_picture(how: str, size: str) -> None:
    """A detector that finds the rectangle finds it where it was drawn, whatever the fit, in any of
    the forms that outputs have; to a pixel of the input."""
    box = (120, 50, 180, 110)
    graph = classifier()
    graph.metadata["preprocess"] = Preprocess.parse(f"{how},size={size}").to_dict()
    model = optimize(graph)
    x = image_feed(model, graph.inputs[0], marked(box))
    height, width = x.shape[2:]
    found = seen_box(x)
    parts = np.array(found, np.float32) / [width, height, width, height]
    heat = np.zeros((1, 1, height, width), np.float32)
    x0, y0, x1, y1 = found
    heat[0, 0, y0:y1, x0:x1] = 1
    forms = {
        "rows": {"y": np.array([[1, 0.9, *found], [-1, 0, 0, 0, 0, 0]], np.float32)},
        "parts": {"boxes": parts[None, None].astype(np.float32),
                  "scores": np.array([[[0.1, 0.9]]], np.float32)},
        "post-processed": {"boxes": parts[[1, 0, 3, 2]][None, None].astype(np.float32),
                           "classes": np.array([[1]], np.float32),
                           "scores": np.array([[0.9]], np.float32),
                           "count": np.array([1], np.float32)},
    }  # fmt: skip
    for outputs in forms.values():
        (item,) = answer_of(model, {"x": x}, outputs, picture=(300, 160)).items
        got = np.array(item["box"]) * [300, 160, 300, 160]
        assert got == pytest.approx(box, abs=300 / width + 0.5)
    (region,) = answer_of(model, {"x": x}, {"map": heat}, picture=(300, 160)).items
    got = np.array(region["box"]) * [300, 160, 300, 160]
    assert (got[:2] + got[2:]) / 2 == pytest.approx([150, 80], abs=2), "grown alike on all sides"


def test_boxes_in_the_padding_are_cut_at_the_picture_s_edge() -> None:
    placed = Preprocess.parse("letterbox,size=100x100").placed((200, 100))
    assert placed == ((100, 100), (100, 50), (0, 25)) and placed.whole
    assert placed.to_picture([0.5, 0.1, 1, 0.5]).tolist() == [0.5, 0, 1, 0.5]
    cut = Preprocess.parse("crop=0.5,size=100x100").placed((400, 200))
    assert cut == ((100, 100), (400, 200), (-150, -50)) and not cut.whole
    assert cut.to_picture([[0, 0, 1, 1]]).tolist() == [[0.375, 0.25, 0.625, 0.75]]


def test_padding_has_no_share_of_a_mask() -> None:
    graph = classifier()
    feed = {"x": np.zeros((1, 3, 64, 64), np.float32)}
    mask = np.zeros((1, 16, 16), np.int64)  # at a quarter of the input's size
    mask[0, 4:12, :4] = 1
    model = optimize(graph)
    for how, text in [("letterbox", "class 0 75.0 %, class 1 25.0 %"),
                      ("stretch", "class 0 87.5 %, class 1 12.5 %")]:  # fmt: skip
        model.metadata["preprocess"] = Preprocess.parse(how).to_dict()
        said = answer_of(model, feed, {"mask": mask}, picture=(200, 100))
        assert said.text == text and said.items[0]["text"].endswith("% of the image")
    model.metadata["preprocess"] = Preprocess.parse("crop").to_dict()
    said = answer_of(model, feed, {"mask": mask}, picture=(200, 100))
    assert said.text == "class 0 87.5 %, class 1 12.5 %"
    assert said.items[0]["text"] == "87.5 % of the center of the image"


def detector(rows: np.ndarray) -> Graph:
    """Says the same rows of label, score and corners to each 100x100 picture."""
    b = Builder((1, 3, 100, 100), "detector")
    mean = b.add("ReduceMean", b.x, b.ints(1, 2, 3), keepdims=0)
    zero = b.add("Reshape", b.add("Mul", mean, b.scalar(0)), b.ints(1, 1))
    return b.done(b.add("Add", zero, b.graph.constant(rows), name="rows"))


@pytest.mark.cpu
def test_session_and_command_say_boxes_on_the_picture(
    tmp_path: Path, monkeypatch: Any, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = np.array([[1, 0.9, 10, 30, 60, 70], [-1, 0, 0, 0, 0, 0]], np.float32)
    optimize(detector(rows)).save("d.lite")
    noise(200, 100).save("p.png")
    session = Session("d.lite")
    session.prepare("unit,letterbox")
    (item,) = session.run("p.png", backend="x86").answer.items
    assert item["box"] == pytest.approx([0.1, 0.1, 0.6, 0.9])
    assert main(["run", "d.lite", "--input", "p.png", "--preprocess", "letterbox"]) == 0
    said = capsys.readouterr().out
    assert said.split("y1 (px)")[1].splitlines()[2].split() == "class 1 0.900 20 10 120 90".split()
    assert session.code[-1] == "session.run('p.png', backend='x86')"


@pytest.mark.cpu
def test_commands_lay_a_fit_over_the_file_s_own_numbers(tmp_path: Path, capsys: Any) -> None:
    path = tmp_path / "m.lite"
    graph = classifier()
    graph.metadata["preprocess"] = {"mean": [127.5], "std": [127.5]}
    optimize(graph).save(path)
    made = tmp_path / "made.lite"
    assert main(["convert", str(path), "--preprocess", "crop=0.9", "-o", str(made)]) == 0
    want = {"mean": [127.5], "std": [127.5], "fit": "crop", "crop": 0.9}
    assert read_model(made).metadata["preprocess"] == want
    capsys.readouterr()
    assert main(["info", str(made)]) == 0
    assert "crop 0.9; fit crop; mean 127.5; std 127.5" in capsys.readouterr().out
    with pytest.raises(LiteError, match="'croop' is not one of"):
        Session(made).prepare("croop")


def test_info_shows_a_preparation_that_is_none(tmp_path: Path, capsys: Any) -> None:
    made = optimize(classifier(), metadata={"preprocess": 5, "labels": "abc"})
    assert main(["info", str(made.save(tmp_path / "m.lite"))]) == 0
    assert "  preprocess  5\n  labels      abc\n" in capsys.readouterr().out
