"""torchvision's two-stage detectors as programs of a file, against onnxruntime."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine import optimize
from lite_engine.backends.cpu.native import NativeFile, NativeProgram
from lite_engine.runtime.choice import host_target

onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
torch = pytest.importorskip("torch", reason="pip install torch torchvision")
detection = pytest.importorskip("torchvision.models.detection", reason="pip install torchvision")

pytestmark = [pytest.mark.cpu, pytest.mark.hours]


@pytest.mark.parametrize("name", ["mobilenet_v3_large_320_fpn", "resnet50_fpn"])
def test_faster_rcnn(name: str, tmp_path: Path) -> None:
    torch.manual_seed(0)
    make = getattr(detection, f"fasterrcnn_{name}")
    network = make(
        weights=None, weights_backbone=None, min_size=320, max_size=320, box_score_thresh=0.01
    ).eval()
    image = torch.rand(3, 320, 320)
    path = tmp_path / "m.onnx"
    torch.onnx.export(
        network, ([image],), str(path), opset_version=17, dynamo=False, input_names=["image"],
        output_names=["boxes", "labels", "scores"],
    )  # fmt: skip
    session = onnxruntime.InferenceSession(str(path))
    boxes, labels, scores = session.run(None, {"image": image.numpy()})
    assert len(boxes) > 10

    optimize(path, targets=host_target()).save(tmp_path / "m.lite")
    program = NativeProgram.of_file(NativeFile(tmp_path / "m.lite"), threads=2)
    found = dict(zip((o.name for o in program.outputs), program.run([image.numpy()])))
    there = found["labels"] >= 0
    assert there.sum() == len(labels)
    taken: set[int] = set()
    for box, label, score in zip(boxes, labels, scores):  # neighbours in score may change places
        off = np.abs(found["boxes"] - box).max(1)
        near = (off < 0.05) & (np.abs(found["scores"] - score) < 1e-3) & (found["labels"] == label)
        free = [int(i) for i in np.flatnonzero(near) if int(i) not in taken]
        assert free, (box, label, score)
        taken.add(free[0])


def test_mask_rcnn(tmp_path: Path) -> None:
    """With its masks in the image, which a loop pastes there."""
    torch.manual_seed(0)
    network = detection.maskrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, min_size=320, max_size=320
    ).eval()
    image = torch.rand(3, 320, 320)
    path = tmp_path / "m.onnx"
    torch.onnx.export(
        network, ([image],), str(path), opset_version=17, dynamo=False, input_names=["image"],
        output_names=["boxes", "labels", "scores", "masks"],
    )  # fmt: skip
    session = onnxruntime.InferenceSession(str(path))
    boxes, labels, scores, masks = session.run(None, {"image": image.numpy()})
    assert len(boxes) > 10 and masks.shape[1:] == (1, 320, 320)

    optimize(path, targets=host_target()).save(tmp_path / "m.lite")
    program = NativeProgram.of_file(NativeFile(tmp_path / "m.lite"), threads=2)
    found = dict(zip((o.name for o in program.outputs), program.run([image.numpy()])))
    taken: set[int] = set()
    for box, label, score, mask in zip(boxes, labels, scores, masks):
        off = np.abs(found["boxes"] - box).max(1)
        near = (off < 0.05) & (np.abs(found["scores"] - score) < 1e-3) & (found["labels"] == label)
        free = [int(i) for i in np.flatnonzero(near) if int(i) not in taken]
        # Of scores as near as rounding, another one may be the hundredth.
        assert free or score - scores.min() < 1e-4, (box, label, score)
        if free:
            taken.add(free[0])
            # A box's side may round to the next pixel.
            assert (np.abs(found["masks"][free[0]] - mask) > 5e-3).mean() < 0.01
    assert len(taken) > 0.9 * len(boxes)
