"""What real models are known to see comes out of `lite convert` and `lite run`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from lite_workbench.cli import main

pytestmark = [pytest.mark.models, pytest.mark.cpu]

_ULTRAFACE = ("--preprocess", "mean=127,std=128", "--threshold", "0.7")


@pytest.fixture
def lite(capsys):
    """Runs the command and gives the answer of its JSON document."""

    def call(*args: object) -> dict:
        capsys.readouterr()
        assert main([*map(str, args), "--json", "-"]) == 0
        return json.loads(capsys.readouterr().out).get("answer", {})

    return call


def _seen(said: dict) -> list[tuple[str, float]]:
    return [(item["label"], round(item["score"], 3)) for item in said["items"]]


def test_ssd_boxes(lite, models_dir) -> None:
    """Labels and preprocessing come from the file's own metadata."""
    model = models_dir / "tflite/ssd_mobilenet_v1_coco_quant.tflite"
    said = lite("run", model, "--input", models_dir / "images/dog.jpg")
    assert said["kind"] == "boxes"
    wanted = [("bicycle", 0.738), ("car", 0.668), ("cat", 0.633), ("person", 0.523)]
    assert _seen(said)[:4] == wanted
    said = lite("run", model, "--input", models_dir / "images/cats_and_dogs.jpg")
    assert _seen(said)[:5] == [
        ("cat", 0.656), ("cat", 0.609), ("cat", 0.539), ("dog", 0.512), ("dog", 0.477),
    ]  # fmt: skip


@pytest.mark.parametrize(("image", "faces"), [("face.jpg", 4), ("grace_hopper.bmp", 1)])
def test_ultraface(lite, models_dir, image, faces) -> None:
    model = models_dir / "ultraface_rfb320/version-RFB-320.onnx"
    said = lite("run", model, "--input", models_dir / "images" / image, *_ULTRAFACE)
    assert said["kind"] == "boxes" and len(said["items"]) == faces


def test_faces_are_where_they_are_whatever_the_fit(lite, models_dir) -> None:
    """The picture is wider than the input: a letterbox pads it above and below."""
    model = models_dir / "ultraface_rfb320/version-RFB-320.onnx"
    words = ("run", model, "--input", models_dir / "images/face.jpg", "--threshold", "0.7")
    boxes = [
        sorted(i["box"] for i in lite(*words, "--preprocess", how)["items"])
        for how in ("mean=127,std=128", "mean=127,std=128,letterbox")
    ]
    assert boxes[0] != boxes[1]
    np.testing.assert_allclose(boxes[1], boxes[0], atol=0.02)


def test_caffe_ssd_faces(lite, models_dir) -> None:
    model = models_dir / "caffe/yufacedetectnet-open-v1.caffemodel"
    said = lite("run", model, "--input", models_dir / "images/face.jpg",
                "--preprocess", "mean=104/117/123,bgr")  # fmt: skip
    assert len(said["items"]) == 4 and min(i["score"] for i in said["items"]) > 0.98


#: score and box (x0, y0, x1, y1 in pixels of 640) that PaddleOCR's post-processing gives for the
#: recorded map with OpenCV 5.0 and pyclipper: findContours, minAreaRect, fillPoly, round joins
TEXT_REGIONS = (
    (0.726, 23, -2, 621, 162), (0.902, 138, 146, 495, 185), (0.856, 137, 215, 504, 245),
    (0.906, 262, 434, 404, 501), (0.952, 406, 541, 562, 569), (0.919, 405, 585, 561, 613),
    (0.906, 139, 541, 294, 569), (0.941, 138, 585, 295, 612), (0.856, 212, 253, 432, 270),
    (0.838, 225, 508, 416, 528), (0.830, 278, 364, 364, 407), (0.935, 279, 334, 365, 370),
    (0.805, 68, 346, 158, 378), (0.836, 513, 348, 601, 376), (0.667, 283, 294, 349, 329),
    (0.868, 406, 471, 439, 497), (0.934, 196, 479, 252, 490),
)  # fmt: skip


def test_text_regions(lite, models_dir) -> None:
    """Grown boxes within 2 pixels (OpenCV's are whole numbers), scores within 0.03 (fillPoly cuts
    turned corners to whole pixels)."""
    command = ("run", models_dir / "ppocr_v3_det_ch/inference",
               "--input", models_dir / "images/ch_en_num.jpg",
               "--preprocess", "imagenet,size=640x640")  # fmt: skip
    said = lite(*command)
    assert said["text"] == "17 regions"
    boxes = {tuple(640 * v for v in item["box"]): item["score"] for item in said["items"]}
    for score, *corners in TEXT_REGIONS:
        wanted = np.clip(corners, 0, 640)
        near = min(boxes, key=lambda box: np.abs(wanted - box).max())
        assert np.abs(wanted - near).max() <= 2
        assert boxes.pop(near) == pytest.approx(score, abs=0.03)
    every = lite(*command, "--adapter", "regions,box_threshold=0")
    assert every["text"] == "18 regions"  # as MANIFEST.md counts: whatever exceeds 0.3


@pytest.mark.parametrize(("image", "angle"), [("text_cls.jpg", "180"), ("text_rec.jpg", "0")])
def test_text_angle(lite, models_dir, tmp_path, image, angle) -> None:
    (tmp_path / "angles.txt").write_text("0\n180\n")
    model = tmp_path / "cls.lite"
    lite("convert", models_dir / "ppocr_v2_cls", "-o", model, "--labels", tmp_path / "angles.txt",
         "--preprocess", "pm1,bgr", "--shape", "x:1x3x48x192")  # fmt: skip
    said = lite("run", model, "--input", models_dir / "images" / image)
    assert said["text"] == angle and said["items"][0]["score"] > 0.99


def test_shufflenet_needs_nothing_but_the_file(lite, models_dir, tmp_path) -> None:
    model = tmp_path / "shufflenet.lite"
    lite("convert", models_dir / "paddle/shufflenet_v2_imagenet_fluid", "-o", model,
         "--preprocess", "imagenet",
         "--labels", models_dir / "labels/imagenet_1000_synset_words.txt")  # fmt: skip
    wanted = {"cat.bmp": ("Egyptian cat", 0.84), "bird.bmp": ("chickadee", 0.99),
              "burger.jpg": ("cheeseburger", 0.998), "grace_hopper.bmp": ("military uniform", 0.56),
              "hot_dog.jpg": ("hotdog", 0.80)}  # fmt: skip
    for image, (label, score) in wanted.items():
        said = lite("run", model, "--input", models_dir / "images" / image)
        assert label in said["text"]
        assert said["items"][0]["score"] == pytest.approx(score, abs=5e-3)


@pytest.mark.parametrize(("word", "score"), [("yes", 0.9998), ("no", 0.993)])
def test_keyword_from_sound(lite, models_dir, tmp_path, word, score) -> None:
    names = "silence unknown yes no up down left right on off stop go"
    (tmp_path / "words.txt").write_text("\n".join(names.split()))
    said = lite("run", models_dir / "tf/DS_CNN_S.pb", "--labels", tmp_path / "words.txt",
                "--input", models_dir / f"audio/{word}_1000ms.wav")  # fmt: skip
    assert said["text"] == word
    assert said["items"][0]["score"] == pytest.approx(score, abs=5e-4)


def test_person_mask(lite, models_dir) -> None:
    said = lite("run", models_dir / "deeplab_dm05_person/deeplab_aiseg513_dm05_float.tflite",
                "--input", models_dir / "images/human.jpg", "--preprocess", "pm1")  # fmt: skip
    assert [i["label"] for i in said["items"]] == ["class 0", "class 1"]
    golden = np.load(
        models_dir / "goldens/deeplab_dm05_person/frozen_inference_graph.pb__human.jpg.npz"
    )["out0"]
    share = float(said["items"][1]["text"].partition(" ")[0])
    assert share == pytest.approx(100 * golden.mean(), abs=0.3)


def test_plates(models_dir, tmp_path) -> None:
    """93 of 100 exact, and each reading is the recorded one."""
    import lite_workbench as lw

    folder = models_dir / "lprnet_plate_ocr"
    model = tmp_path / "plates.lite"
    assert main([*map(str, (
        "convert", folder / "DERIVED_lprnet.onnx", "-o", model, "--labels", folder / "chars.txt",
        "--preprocess", "mean=127.5,std=128,bgr",
    ))]) == 0  # fmt: skip
    session = lw.open(model)
    lines = (folder / "plates_labels.tsv").read_text(encoding="utf-8").splitlines()[1:]
    exact = 0
    for name, truth, recorded in (line.split("\t") for line in lines):
        said = session.run(Path(folder, "plates", name), backend="x86")
        assert said.answer.kind == "text" and said.text == recorded
        exact += said.text == truth
    assert exact == 93
