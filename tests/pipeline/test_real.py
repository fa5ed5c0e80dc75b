"""Real models: one answer from Python, the runner here and the emulated AArch64 runner."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine._native import runner_path
from lite_engine.pipeline import Pipeline

pytestmark = [pytest.mark.cpu, pytest.mark.models]

KEYWORDS = ["silence", "unknown", *"yes no up down left right on off stop go".split()]


def stages(name: str, m: Path) -> tuple[list[dict], Path]:
    """A pipeline by configuration only, and what to feed it."""
    labels, images = m / "labels", m / "images"
    faces = {"kind": "boxes", "threshold": 0.7}
    made = {
        "classes": (
            [{"model": m / "tflite/mobilenet_v1_0.25_224_quant.tflite", "preprocess": "pm1",
              "labels": labels / "imagenet_1001_labels.txt"}], images / "bird.bmp"),
        "objects": (
            [{"model": m / "tflite/ssd_mobilenet_v1_coco_quant.tflite", "preprocess": "pm1",
              "labels": labels / "coco_90_labels.txt"}], images / "cats_and_dogs.jpg"),
        "faces": (
            [{"model": m / "ultraface_rfb320/version-RFB-320.onnx",
              "preprocess": "mean=127,std=128", "labels": ["background", "face"],
              "read": faces}], images / "face.jpg"),
        "plate": (
            [{"model": m / "lprnet_plate_ocr/DERIVED_lprnet.onnx",
              "preprocess": "mean=127.5,std=128,bgr", "labels": m / "lprnet_plate_ocr/chars.txt",
              "read": {"kind": "text"}}], m / "lprnet_plate_ocr/plates/0000.jpg"),
        "keyword": ([{"model": m / "tf/DS_CNN_S.pb", "labels": KEYWORDS}],
                    m / "audio/yes_1000ms.wav"),
        "ocr": (
            [{"model": m / "ppocr_v3_det_ch/model.onnx", "name": "detect",
              "preprocess": "imagenet,letterbox=0"},
             {"crop": {"limit": 4}},
             {"model": m / "ppocr_v2_cls/model.onnx", "name": "direction",
              "preprocess": "pm1,bgr,height,size=48x192", "labels": ["0", "180"]},
             {"turn": {"model": "direction", "label": "180", "above": 0.9}},
             {"model": m / "nb/ch_ppocr_mobile_v2.0_rec_slim_opt.nb", "name": "read",
              "preprocess": "pm1,bgr,height", "labels": labels / "ppocr_keys_v1.txt",
              "widths": [100, 320], "read": {"kind": "text"}}], images / "ch_en_num.jpg"),
    }  # fmt: skip
    return made[name]


def same(got: dict, want: dict) -> None:
    """Texts and classes equal, boxes within a pixel."""
    assert got.keys() == want.keys()
    for name, answer in got.items():
        known = want[name]
        assert (answer["kind"], answer.get("text")) == (known["kind"], known.get("text"))
        assert len(answer.get("items", [])) == len(known.get("items", []))
        for a, b in zip(answer.get("items", []), known.get("items", []), strict=True):
            assert a.get("label") == b.get("label")
            np.testing.assert_allclose(a.get("box", []), b.get("box", []), atol=1)
            if "answers" in a or "answers" in b:
                same(a["answers"], b["answers"])


WANTED = {
    "classes": "chickadee", "objects": "cat", "faces": "face", "keyword": "yes",
}  # fmt: skip


@pytest.mark.parametrize(
    "name",
    [
        "classes", "objects", "faces", "plate", "keyword",
        pytest.param("ocr", marks=pytest.mark.sweep),
    ],
)  # fmt: skip
def test_one_answer_everywhere(name: str, models_dir: Path, qemu, tmp_path) -> None:
    made, given = stages(name, models_dir)
    pipeline = Pipeline(made, name)
    want = pipeline.run(given, "x86")["answers"]
    first = next(iter(want.values()))
    if name == "plate":
        assert first["text"] == "京PL3N67"
    elif name == "ocr":
        texts = [i["answers"]["read"]["text"] for i in first["items"] if "answers" in i]
        assert {"大桶装更划算", "强力去污符合国标"} <= set(texts)  # the second one needs its width
    else:
        assert first["items"][0]["label"] == WANTED[name]
    if name == "faces":
        assert len(first["items"]) == 4
    file = pipeline.save(tmp_path / f"{name}.lite", ["x86", "arm"])
    for prefix, arch in (([], None), (qemu, "aarch64")):
        done = subprocess.run(
            [*prefix, str(runner_path(arch)), str(file), "--image", str(given)],
            capture_output=True, text=True, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        same(json.loads(done.stdout)["answers"], want)


@pytest.mark.opencl
@pytest.mark.parametrize(
    "name",
    [
        "keyword", pytest.param("objects", marks=pytest.mark.sweep),
        *(pytest.param(n, marks=pytest.mark.hours) for n in ("classes", "faces", "plate", "ocr")),
    ],
)  # fmt: skip
def test_one_answer_on_opencl(name: str, models_dir: Path, tmp_path: Path) -> None:
    """From Python, and from the runner with the file's programs."""
    made, given = stages(name, models_dir)
    pipeline = Pipeline(made, name)
    want = pipeline.run(given, "x86")["answers"]
    same(pipeline.run(given, "opencl")["answers"], want)
    file = pipeline.save(tmp_path / f"{name}.lite", ["opencl", "x86"])
    runner = runner_path(opencl=True)
    words = [str(runner), str(file), "--image", str(given), "--backend", "opencl"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    same(json.loads(done.stdout)["answers"], want)
