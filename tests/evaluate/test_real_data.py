"""Public models on labelled images: figures that are known from elsewhere."""

from __future__ import annotations

import json
import shutil

import pytest
from lite_workbench.cli import main

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
