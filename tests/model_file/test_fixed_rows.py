"""A Paddle detector to its end without Python: priors folded, boxes decoded, rows padded."""

import re
import subprocess

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine._native import runner_path
from lite_engine.errors import UsageError
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file import read_model, with_outputs
from lite_engine.profile import profile
from lite_engine.runtime import host_target
from lite_engine.runtime.support import model_info

from tests.small_models import classifier, image

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


def last(op: str) -> Graph:
    """A graph of one suppression."""
    g = Graph(op)
    g.inputs = [Value("boxes", DType.F32, (2, 30, 4)), Value("scores", DType.F32, (2, 3, 30))]
    inputs: list[Value | None] = list(g.inputs)
    attrs, outputs = {"score_threshold": 0.6, "nms_top_k": 20, "keep_top_k": 100}, 3
    if op == "NonMaxSuppression":
        inputs += [g.constant(np.array(v)) for v in ([5], np.float32([0.4]), np.float32([0.8]))]
        attrs, outputs = {}, 1
    g.outputs = list(g.add(op, inputs, attrs, outputs=outputs).outputs)
    for i, value in enumerate(g.outputs):
        value.name = f"y{i}"
    return g


@pytest.mark.parametrize(
    "graph", [detector(), last("matrix_nms"), last("NonMaxSuppression")], ids=lambda g: g.name
)
def test_every_operator_is_supported_there(graph):
    rows = model_info(graph, graph.name, ("x86", "arm")).support
    assert [(r.op, r.target, r.reason) for r in rows if not r.supported] == []


def run_alone(graph: Graph, feeds: dict, folder) -> list[np.ndarray]:
    """Outputs of the program for this machine's CPU, run without Python."""
    path = optimize(graph, targets=[host_target()]).save(folder / "m.lite")
    words = [str(runner_path()), str(path), "--output", str(folder / "out")]
    for name, x in feeds.items():
        np.save(folder / f"{name}.npy", x)
        words += ["--input", f"{name}={folder / name}.npy"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return [np.load(folder / "out" / f"{v.name}.npy") for v in graph.outputs]


@pytest.mark.parametrize("op", ["matrix_nms", "NonMaxSuppression"])
def test_what_was_found_comes_first(op, tmp_path):
    graph, rng = last(op), np.random.default_rng(2)
    low = rng.random((2, 30, 2), np.float32)
    feeds = {"boxes": np.concatenate([low, low + 0.5], -1), "scores": rng.random((2, 3, 30))}
    feeds = {name: x.astype(np.float32) for name, x in feeds.items()}
    wanted = list(Predictor(optimize(graph), backend="reference").run(feeds).values())
    got = run_alone(graph, feeds, tmp_path)
    found = len(wanted[0])
    assert 5 < found < len(got[0]) == {"matrix_nms": 80, "NonMaxSuppression": 30}[op]
    for g, w in zip(got[:2], wanted):
        np.testing.assert_allclose(g[:found], w, atol=1e-6)
        assert (g[found:, 0] == -1).all()
    assert np.array_equal(got[2:], wanted[2:])
    exact = Predictor(tmp_path / "m.lite", host_target()).run(feeds)  # in Python no row is empty
    assert [y.shape for y in exact.values()] == [w.shape for w in wanted]


def test_a_program_gives_the_rows_and_then_none(tmp_path):
    graph = detector()
    rng = np.random.default_rng(5)
    feeds = {v.name: rng.random(v.shape, np.float32) for v in graph.inputs if v.name != "size"}
    feeds["size"] = np.array([[32, 32]], np.int32)
    wanted, index, count = Predictor(optimize(graph), backend="reference").run(feeds).values()
    rows, places, counted = run_alone(graph, feeds, tmp_path)
    n = int(count[0])
    assert 2 < n < 40 and counted.tolist() == [n] and rows.shape == (40, 6)
    np.testing.assert_allclose(rows[:n], wanted, atol=1e-5)
    assert np.array_equal(places[:n], index)
    assert (rows[n:, 0] == -1).all() and not rows[n:, 1:].any() and (places[n:] == -1).all()


def test_a_suppression_that_others_read_can_be_the_end(tmp_path):
    """The mean of what was found has no bound. The file says where to end instead."""
    graph = last("NonMaxSuppression")
    (nms,) = graph.nodes
    boxes = graph.add("Sigmoid", [nms.inputs[0]], {}).output
    nms.set_input(0, boxes)
    graph.sort()
    column = graph.add("Gather", [nms.output, graph.constant(np.array(2))], {"axis": 1}).output
    found = graph.add("Gather", [boxes, column], {"axis": 1}).output
    graph.outputs = [graph.add("ReduceMean", [found, graph.constant(np.array([1]))]).output]
    model = optimize(graph, targets=[host_target()])
    note = read_model(model.save(tmp_path / "whole.lite")).describe()[0]["note"]
    assert note == (
        "no program for lite_run: it cannot run ReduceMean without Python; "
        f"`lite convert --outputs {found.name}` ends before that"
    )
    ended = with_outputs(read_model(tmp_path / "whole.lite"), [found.name])
    assert read_model(ended.save(tmp_path / "ended.lite")).describe()[0]["note"] == ""
    with pytest.raises(UsageError, match="the model has no value 'y'; did you mean y0"):
        with_outputs(model, ["y"])


def test_info_and_profile_say_that_python_runs_it_otherwise(tmp_path):
    """In NumPy, though the program of the file has kernels for it, as lite_run shows."""
    graph, here = last("NonMaxSuppression"), host_target()
    name = graph.nodes[0].name
    feeds = {v.name: np.random.default_rng(2).random(v.shape, np.float32) for v in graph.inputs}
    row = next(s for s in model_info(graph, "nms").support if s.target == here)
    hints = " ".join(model_info(graph, "nms").hints)
    assert row.runs_on == "yes" and f"the sizes of {name} depend on data: " in hints
    made = profile(Predictor(graph, here), feeds, runs=5, roof=False)
    assert [x.kernel for x in made.layers] == ["numpy_NonMaxSuppression"]
    told = [w for w in made.warnings if w.startswith(f"NumPy ran {name}, ")]
    assert len(told) == 1 and "lite_run MODEL.lite --profile FILE.json" in told[0]

    path = optimize(graph, targets=[here]).save(tmp_path / "m.lite")
    command = [runner_path(), path, "--runs", "2", "--profile", tmp_path / "p.json"]
    for key, array in feeds.items():
        np.save(tmp_path / f"{key}.npy", array)
        command += ["--input", f"{key}={tmp_path / key}.npy"]
    subprocess.run(command, check=True, capture_output=True)
    kernels = re.findall(r'"kernel": *"(\w+)', (tmp_path / "p.json").read_text())
    assert kernels == ["f32_non_max_suppression"]

    moved = profile(  # by hand: not for its sizes
        Predictor(classifier(), here, overrides={"prob": "reference"}), image(classifier()),
        runs=5, roof=False,
    )  # fmt: skip
    assert "reference" in {x.backend for x in moved.layers}
    assert not [w for w in moved.warnings if "NumPy ran" in w]
