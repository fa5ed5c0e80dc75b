"""The zoo: known amounts of work, the same bytes every time, live activations."""

from __future__ import annotations

import numpy as np
import pytest

zoo = pytest.importorskip("benchmarks.zoo", reason="the zoo is in the source tree only")

#: MMAC of the published networks (those that are approximations of ours are absent)
PUBLISHED = {
    "mobilenet_v1": 569,
    "mobilenet_v2": 301,
    "mobilenet_v3_small": 57,
    "shufflenet_v2": 145,
    "squeezenet": 350,
    "resnet18": 1814,
    "yolov3_tiny": 2783,
    "unet": 12073,
    "ocr_recogniser": 657,
    "efficientnet_b0": 386,
    "ghostnet": 141,
}


@pytest.mark.parametrize("name", PUBLISHED)
def test_work_is_the_published(name):
    assert zoo.macs(zoo.build(name)) / 1e6 == pytest.approx(PUBLISHED[name], rel=0.01)


def test_same_bytes_every_time():
    a, b = (zoo.build("mobilenet_v3_small").SerializeToString() for _ in range(2))
    assert a == b


@pytest.mark.parametrize("name", ["mobilenet_v2", "shufflenet_v2", "vit_tiny"])
def test_activations_neither_vanish_nor_explode(name):
    ort = pytest.importorskip("onnxruntime")
    session = ort.InferenceSession(
        zoo.build(name).SerializeToString(), providers=["CPUExecutionProvider"]
    )
    rng = np.random.default_rng(0)
    info = session.get_inputs()[0]
    a, b = (
        session.run(None, {info.name: rng.standard_normal(info.shape).astype(np.float32)})[0]
        for _ in range(2)
    )
    assert 0.05 < a.std() < 20
    assert np.linalg.norm(a - b) / np.linalg.norm(a) > 0.01  # the input still matters


def test_unknown_name_lists_the_known():
    with pytest.raises(KeyError, match="mobilenet_v1"):
        zoo.build("alexnet")
