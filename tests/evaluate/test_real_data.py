"""Public models on labelled images: figures that are known from elsewhere."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.importers import load
from lite_workbench.cli import main
from PIL import Image
from sklearn.metrics import jaccard_score

pytestmark = [pytest.mark.cpu, pytest.mark.models]

#: What the pictures show, by the model's synsets.
PHOTOS = {"chickadee": "bird.bmp", "cheeseburger": "burger.jpg", "hotdog": "hot_dog.jpg",
          "military uniform": "grace_hopper.bmp", "Egyptian cat": "tabby_cat.jpg"}  # fmt: skip


def evaluated(capsys, *words: object) -> dict:
    assert main(["evaluate", *map(str, words), "--json", "-"]) == 0
    return json.loads(capsys.readouterr().out)


def test_plates_are_read_as_often_as_pytorch_reads_them(models_dir, capsys):
    folder = models_dir / "lprnet_plate_ocr"
    made = evaluated(
        capsys, folder / "DERIVED_lprnet.onnx", "--data", folder / "plates_labels.tsv",
        "--images", folder / "plates", "--labels", folder / "chars.txt",
        "--preprocess", "mean=127.5,std=128,bgr,size=24x94",
    )  # fmt: skip
    exact, cer = made["sides"][0]["metrics"]
    assert exact["name"] == "exact match" and exact["value"] == 0.93  # as the manifest says
    assert 0 < cer["value"] < 0.03 and not cer["higher_is_better"]


def test_photographs_by_the_names_of_their_classes(models_dir, tmp_path, capsys):
    for name, file in PHOTOS.items():
        (tmp_path / name).mkdir()
        shutil.copy(models_dir / "images" / file, tmp_path / name)
    words = [models_dir / "paddle" / "shufflenet_v2_imagenet_fluid", "--data", tmp_path,
             "--labels", models_dir / "labels" / "imagenet_1000_synset_words.txt"]  # fmt: skip
    right = evaluated(capsys, *words, "--preprocess", "imagenet")["sides"][0]["metrics"][0]
    wrong = evaluated(capsys, *words, "--preprocess", "raw")["sides"][0]["metrics"][0]
    assert right["value"] == 1.0 and wrong["value"] < 0.5
    assert right["low"] < 0.6  # five images do not say more


def test_objects_of_a_photograph(models_dir, tmp_path, capsys):
    """SSD MobileNet takes the dog for a cat."""
    boxes = {
        "bicycle": [122, 125, 446, 305],
        "car": [466, 76, 226, 96],
        "dog": [131, 220, 180, 320],
    }
    document = {
        "images": [{"id": 1, "file_name": "dog.jpg"}],
        "categories": [{"id": n, "name": name} for n, name in enumerate(boxes, 1)],
        "annotations": [{"id": n, "image_id": 1, "category_id": n, "bbox": box}
                        for n, box in enumerate(boxes.values(), 1)],
    }  # fmt: skip
    (tmp_path / "dog.json").write_text(json.dumps(document))
    made = evaluated(
        capsys, models_dir / "tflite" / "ssd_mobilenet_v1_coco_quant.tflite",
        "--data", tmp_path / "dog.json", "--images", models_dir / "images",
        "--labels", models_dir / "labels" / "coco_90_labels.txt",
    )  # fmt: skip
    (side,) = made["sides"]
    figures = {m["name"]: m["value"] for m in side["metrics"]}
    assert figures["mAP@.5"] == pytest.approx(2 / 3, abs=1e-9)
    averages = {c["name"]: c["metrics"]["AP"] for c in side["classes"]}
    assert averages["dog"] == 0 and averages["bicycle"] > 0.7 and averages["car"] > 0.7


def test_a_person_in_a_pascal_mask(models_dir, tmp_path, capsys):
    """The label is TensorFlow's answer, as a mask of Pascal VOC: class numbers with a palette, 255
    along the person's edge. Half of the person is taken away, so that the answer is wrong there."""
    golden = models_dir / "goldens" / "deeplab_dm05_person"
    answer = np.load(golden / "frozen_inference_graph.pb__human.jpg.npz")["out0"][0]
    whole = Image.open(models_dir / "images" / "human.jpg")
    mask = np.array(Image.fromarray(answer.astype(np.uint8)).resize(whole.size, Image.NEAREST))
    edge = np.zeros_like(mask, bool)
    for axis in (0, 1):
        for step in (-2, 2):
            edge |= np.roll(mask, step, axis) != mask
    mask[edge] = 255
    mask[: mask.shape[0] // 2][mask[: mask.shape[0] // 2] == 1] = 0
    picture = Image.fromarray(mask, "P")
    picture.putpalette([0, 0, 0, 192, 128, 128, *[224, 224, 192] * 254])
    for name in ("JPEGImages", "SegmentationClass"):
        (tmp_path / name).mkdir()
    shutil.copy(models_dir / "images" / "human.jpg", tmp_path / "JPEGImages")
    picture.save(tmp_path / "SegmentationClass" / "human.png")
    model = models_dir / "deeplab_dm05_person" / "deeplab_aiseg513_dm05_float.tflite"
    made = evaluated(capsys, model, "--data", tmp_path, "--preprocess", "pm1")
    assert made["task"] == "segmentation" and made["samples"] == 1

    small = np.asarray(whole.convert("RGB").resize((513, 513), Image.BILINEAR), np.float32)
    used = Predictor(optimize(load(model)))
    (scores,) = used.run({used.input_names[0]: small[None] / 127.5 - 1}).values()
    rows, columns = (((np.arange(n) + 0.5) * 513 / n).astype(int) for n in mask.shape)
    got = scores[0].argmax(-1)[np.ix_(rows, columns)]
    counted = mask != 255
    iou = made["sides"][0]["metrics"][0]
    assert iou["name"] == "mIoU"
    wanted = jaccard_score(mask[counted], got[counted], average="macro")
    assert iou["value"] == pytest.approx(wanted, abs=1e-12) and 0.5 < wanted < 0.95
