"""A Paddle detector to its end without Python: priors folded, boxes decoded, rows padded."""

import subprocess

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine._native import runner_path
from lite_engine.ir import DType, Graph, Value
from lite_engine.runtime import host_target
from lite_engine.runtime.support import model_info

pytestmark = pytest.mark.cpu


def detector() -> Graph:
    """SSD and YOLO heads on maps that are inputs, as Paddle writes them; 3 classes."""
    g = Graph("detector")
    shapes = {"image": (1, 3, 32, 32), "map": (1, 8, 4, 4), "moves": (1, 64, 4),
              "ssd": (1, 3, 64), "yolo": (1, 16, 4, 4)}  # fmt: skip
    ins = {n: Value(n, DType.F32, s) for n, s in shapes.items()}
    ins["size"] = Value("size", DType.I32, (1, 2))
    g.inputs = list(ins.values())
    one, two = (g.constant(np.array(v, np.int64)) for v in ([-1, 4], [1, -1, 4]))
    prior, variance = g.add(
        "prior_box", [ins["map"], ins["image"]],
        {"min_sizes": [8.0], "max_sizes": [16.0], "aspect_ratios": [2.0], "flip": 1}, outputs=2,
    ).outputs  # fmt: skip
    flat = [g.add("Reshape", [v, one], {}).output for v in (prior, variance)]
    code = {"code_type": "decode_center_size"}
    boxes = g.add("box_coder", [*flat, ins["moves"]], code).output
    yolo = g.add("yolo_box", [ins["yolo"], ins["size"]],
                 {"anchors": [10, 13, 16, 30], "class_num": 3, "downsample_ratio": 8},
                 outputs=2).outputs  # fmt: skip
    scores = g.add("Transpose", [yolo[1]], {"perm": [0, 2, 1]}).output
    every = g.add("Concat", [g.add("Reshape", [boxes, two], {}).output, yolo[0]], {"axis": 1})
    scored = g.add("Concat", [ins["ssd"], scores], {"axis": 2})
    found = g.add(
        "multiclass_nms", [every.output, scored.output],
        {"score_threshold": 0.9, "nms_top_k": 50, "keep_top_k": 40, "nms_threshold": 0.4},
        outputs=3,
    )  # fmt: skip
    g.outputs = list(found.outputs)
    for value, name in zip(g.outputs, ("rows", "index", "count")):
        value.name = name
    return g


def test_every_operator_is_supported_there():
    rows = model_info(detector(), "detector", ("x86", "arm")).support
    assert [(r.op, r.target, r.reason) for r in rows if not r.supported] == []


def test_a_program_gives_the_rows_and_then_none(tmp_path):
    graph = detector()
    model = optimize(graph, targets=[host_target()])
    path = model.save(tmp_path / "m.lite")
    rng = np.random.default_rng(5)
    feeds = {v.name: rng.random(v.shape, np.float32) for v in graph.inputs if v.name != "size"}
    feeds["size"] = np.array([[32, 32]], np.int32)
    wanted, index, count = Predictor(str(path), backend="reference").run(feeds).values()
    for name, x in feeds.items():
        np.save(tmp_path / f"{name}.npy", x)
    words = [str(runner_path()), str(path), "--output", str(tmp_path / "out")]
    for name in feeds:
        words += ["--input", f"{name}={tmp_path / name}.npy"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    rows, places, counted = (np.load(tmp_path / "out" / f"{v.name}.npy") for v in graph.outputs)
    n = int(count[0])
    assert 2 < n < 40 and counted.tolist() == [n] and rows.shape == (40, 6)
    np.testing.assert_allclose(rows[:n], wanted, atol=1e-5)
    assert np.array_equal(places[:n], index)
    assert (rows[n:, 0] == -1).all() and not rows[n:, 1:].any() and (places[n:] == -1).all()
