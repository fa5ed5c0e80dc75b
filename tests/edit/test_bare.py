"""Preprocessing and post-processing removed, patterns replaced: the rest gives the same numbers."""

from __future__ import annotations

from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor, edit, load, write_onnx
from lite_engine.errors import UsageError
from lite_engine.ir import DType, Graph, Value, from_text
from lite_engine.model_file import open_model, optimize
from lite_engine.ops import infer_types
from lite_engine.preprocess import Preprocess
from lite_engine.runtime.inputs import random_feeds
from lite_workbench.cli import main

from tests.edit.test_edit import REAL, close, relu, run, small

ort = pytest.importorskip("onnxruntime")


def convolution(layers, dtype=DType.U8, shape=(1, 3, 6, 6)) -> Graph:
    """Layers (operator, constant or attributes) in front of a convolution."""
    graph = Graph("net")
    graph.inputs = [Value("pixels", dtype, shape)]
    x = graph.inputs[0]
    for i, (op, more) in enumerate(layers):
        inputs = [x] if isinstance(more, dict) else [x, graph.constant(np.float32(more))]
        x = graph.add(op, inputs, more if isinstance(more, dict) else None, name=f"n{i}").output
    w = np.random.default_rng(3).standard_normal((4, shape[1], 3, 3)).astype(np.float32)
    y = graph.add("Conv", [x, graph.constant(w)], {"pads": [1] * 4}, name="conv", outputs=["y"])
    graph.outputs = [y.output]
    infer_types(graph)
    return graph


CAST = ("Cast", {"to": DType.F32})
MEAN = np.reshape([123.0, 117.0, 104.0], (1, 3, 1, 1))


@pytest.mark.parametrize(
    "layers",
    [
        [CAST, ("Sub", MEAN), ("Div", 58.0)],
        [CAST, ("Mul", 1 / 127.5), ("Add", -1.0), ("Identity", {})],
        [CAST, ("Div", 255.0), ("Sub", MEAN / 255), ("Mul", 1 / (MEAN / 500))],
    ],
)
def test_normalization_is_removed(layers, rng) -> None:
    graph = convolution(layers)
    pixels = rng.integers(0, 256, (1, 3, 6, 6)).astype(np.uint8)
    bare, gone, (mean, std) = edit.remove_normalization(graph)
    assert gone == [f"n{i}" for i in range(len(layers))]
    assert [n.op for n in bare.nodes] == ["Conv"]
    assert [(v.name, v.dtype) for v in bare.inputs] == [("pixels", DType.F32)]
    given = ((pixels - mean) / std).astype(np.float32)
    assert close(run(bare, {"pixels": given})["y"], run(graph, {"pixels": pixels})["y"])


def test_layers_that_are_no_normalization_stay(rng) -> None:
    positions = rng.standard_normal((1, 3, 6, 6))
    for layers in ([], [("Add", positions)], [("Relu", {})]):
        graph = convolution(layers, DType.F32)
        with pytest.raises(
            UsageError, match=r"no layers normalize pixels: it is read by \w+ \(\w+\)"
        ):
            edit.remove_normalization(graph)
    bare, gone, _ = edit.remove_normalization(
        convolution([("Sub", 1.0), ("Add", positions), ("Mul", 2.0)], DType.F32)
    )
    assert gone == ["n0"] and [n.op for n in bare.nodes] == ["Add", "Mul", "Conv"]


@pytest.mark.parametrize(
    ("dtype", "said", "before"),
    [
        (DType.F32, {"mean": [10.0], "std": [2.0], "colour": "bgr"}, (10.0, 2.0)),
        (DType.F32, {}, (0.0, 255.0)),
        (DType.U8, {}, (0.0, 1.0)),
        (DType.I8, {}, (128.0, 1.0)),
    ],
)
def test_the_file_says_what_the_bare_input_needs(dtype, said, before, rng) -> None:
    """A picture is prepared as it was, and then as the layers did that are gone."""
    graph = convolution([CAST, ("Sub", MEAN), ("Div", 58.0)], dtype)
    graph.metadata["preprocess"] = said
    bare, _, _ = edit.remove_normalization(graph)
    made = Preprocess.of(bare.metadata).fitted((1, 3, 6, 6))
    picture = rng.integers(0, 256, (6, 6, 3)).astype(np.uint8)
    pixels = picture[..., ::-1] if "colour" in said else picture
    old = (pixels.transpose(2, 0, 1)[None] - before[0]) / before[1]
    np.testing.assert_allclose(made.apply(picture), (old - MEAN) / 58, rtol=1e-5, atol=1e-5)


def test_an_input_that_is_no_picture_gets_no_preprocessing() -> None:
    for shape in ((1, 4, 6, 6), (1, 3)):
        graph = Graph("net")
        graph.inputs = [Value("x", DType.F32, shape)]
        numbers = np.arange(1, 1 + shape[1], dtype=np.float32).reshape(-1, *[1] * len(shape[2:]))
        y = graph.add("Sub", [graph.inputs[0], graph.constant(numbers)]).output
        graph.outputs = [graph.add("Relu", [y], outputs=["y"]).output]
        assert "preprocess" not in edit.remove_normalization(graph)[0].metadata


def test_what_travels_with_a_lite_file_stays_through_an_edit(tmp_path, monkeypatch) -> None:
    """In both formats, for the command and for a session."""
    monkeypatch.chdir(tmp_path)
    said = {"preprocess": {"mean": [1.0, 2.0, 3.0], "std": [4.0], "colour": "bgr"},
            "labels": ["a", "b"], "adapter": {"kind": "top"}}  # fmt: skip
    optimize(convolution([], DType.F32), metadata=said).save("m.lite")
    for name in ("a.lite", "a.onnx"):
        assert main(["edit", "m.lite", "-o", name, "--rename", "y=z"]) == 0
        _same_words(name, said)
        lw.open("m.lite").edit("s" + name, rename={"y": "z"})
        _same_words("s" + name, said)
    lw.open("m.lite").extract("part.onnx", ["conv"])
    _same_words("part.onnx", said)


def test_pictures_follow_the_shape_of_the_input() -> None:
    graph = convolution([], DType.F32)
    graph.metadata["preprocess"] = {"mean": [1.0], "std": [2.0], "size": [6, 6]}
    picture = np.zeros((20, 30, 3), np.uint8)
    for shape in ((1, 3, 8, 10), (2, 3, 6, 6)):
        made = edit.resize(graph, {"pixels": shape}).graph
        assert Preprocess.of(made.metadata).fitted(shape).apply(picture).shape[1:] == shape[1:]
    assert graph.metadata["preprocess"]["size"] == [6, 6]


def _same_words(name: str, said: dict) -> None:
    metadata = open_model(name).metadata
    own = {key: metadata.get(key) for key in said}
    for key in ("mean", "std"):
        own["preprocess"][key] = list(own["preprocess"][key])
    assert own == said, name


def head(*layers: tuple) -> Graph:
    """A convolution, a global pool and layers (operator, attributes, inputs) behind them."""
    graph = convolution([], DType.F32)
    x = graph.add("GlobalAveragePool", graph.outputs, name="pool").output
    for i, (op, attrs, *more) in enumerate(layers):
        inputs = [x, *(graph.constant(np.array(m)) for m in more)]
        x = graph.add(op, inputs, attrs, name=f"n{i}").output
    graph.outputs = [x]
    infer_types(graph)
    return graph


@pytest.mark.parametrize(
    ("layers", "gone"),
    [
        ([("Flatten", {}), ("Softmax", {"axis": 1})], ["n1"]),
        ([("Softmax", {"axis": 1}), ("Reshape", {}, [1, 4])], ["n0", "n1"]),
        ([("Softmax", {"axis": 1}), ("ArgMax", {"axis": 1}), ("Cast", {"to": DType.I32})],
         ["n0", "n1", "n2"]),
        ([("ArgMax", {"axis": 1}), ("Mul", {}, 3), ("Add", {}, 1)], ["n0", "n1", "n2"]),
        ([("Sigmoid", {}), ("Identity", {})], ["n0", "n1"]),
    ],
)  # fmt: skip
def test_postprocessing_is_removed(layers, gone) -> None:
    graph = head(*layers)
    bare, names = edit.remove_postprocessing(graph)
    assert names == gone
    whole = graph.copy()
    whole.outputs = [whole.find(v.name) for v in bare.outputs]
    feeds = random_feeds(graph)
    (wanted,) = run(whole, feeds).values()
    np.testing.assert_array_equal(run(bare, feeds)[bare.outputs[0].name], wanted)


def test_postprocessing_of_a_quantized_model_is_removed() -> None:
    """Its result is rounded to steps again, which goes with it."""
    graph = from_text(
        """graph "quantized" {
          input x: f32[2,5]
          const s: f32[] = [0.5]
          const t: f32[] = [0.00390625]
          const z: u8[] = [128]
          const o: u8[] = [0]
          q: q_out = QuantizeLinear(x, s, z)
          d: logits = DequantizeLinear(q_out, s, z)
          soft: p = Softmax(logits) {axis=1}
          pq: p_q = QuantizeLinear(p, t, o)
          pd: y = DequantizeLinear(p_q, t, o)
          output y
        }"""
    )
    infer_types(graph)
    bare, gone = edit.remove_postprocessing(graph)
    assert gone == ["soft", "pq", "pd"]
    x = np.float32([[0.2, 0.3, -1.4, 60, -99]] * 2)
    np.testing.assert_array_equal(run(bare, {"x": x})["logits"], [[0, 0.5, -1.5, 60, -64]] * 2)
    ends = graph.copy()
    ends.outputs = [ends.find("logits")]
    ends.remove_unread()
    with pytest.raises(UsageError, match="no post-processing"):
        edit.remove_postprocessing(ends)


@pytest.mark.parametrize("layers", [[], [("Relu", {})], [("Sigmoid", {}), ("Mul", {}, 2.0)]])
def test_a_model_that_ends_otherwise_is_refused(layers) -> None:
    with pytest.raises(
        UsageError, match=r"no post-processing to remove: the outputs come from \w+ \(\w+\)"
    ):
        edit.remove_postprocessing(head(*layers))


def test_suppression_goes_with_what_it_chooses() -> None:
    graph = Graph("boxes")
    graph.inputs = [Value("b", DType.F32, (1, 3, 4)), Value("s", DType.F32, (1, 1, 3))]
    both = [
        graph.add("Neg", [v], name=f"of_{v.name}", outputs=[f"{v.name}_out"]).output
        for v in graph.inputs
    ]
    limits = [graph.constant(np.array(n)) for n in (np.int64(2), np.float32(0.5))]
    rows = graph.add("NonMaxSuppression", [*both, *limits], name="nms").output
    column = graph.add("Gather", [rows, graph.constant(2)], {"axis": 1}, name="column").output
    picked = graph.add("Gather", [both[0], column], {"axis": 1}, name="picked").output
    graph.outputs = [picked]
    infer_types(graph)
    bare, gone = edit.remove_postprocessing(graph)
    assert gone == ["nms", "column", "picked"]
    assert sorted(v.name for v in bare.outputs) == ["b_out", "s_out"]


def test_a_branch_that_a_choice_decides_is_removed() -> None:
    """What it reads of the graph around it is an output then; its own values are not."""
    graph = head(("ArgMax", {"axis": 1}), ("Squeeze", {}), ("Cast", {"to": DType.BOOL}))
    scores, branches = graph.node("pool").output, {}
    for key, op in (("then_branch", "Relu"), ("else_branch", "Neg")):
        branches[key] = Graph(op)
        branches[key].outputs = [branches[key].add(op, [scores], name=op).output]
    graph.outputs = [graph.add("If", graph.outputs, branches, name="choice").output]
    infer_types(graph)
    bare, gone = edit.remove_postprocessing(graph)
    assert gone == ["n0", "n1", "n2", "choice"]
    assert [v.name for v in bare.outputs] == ["pool"]
    feeds = random_feeds(graph)
    pooled = run(bare, feeds)["pool"]
    wanted = np.maximum(pooled, 0) if pooled.argmax(1).item() else -pooled
    assert close(run(graph, feeds)["choice"], wanted)


def test_patterns_as_text() -> None:
    swish = "Mul(x, Sigmoid(x))"
    made, count = edit.replace_matches(small(), edit.pattern(swish), relu())
    assert count == 1 and [n.op for n in made.nodes] == ["Relu", "Softmax"]
    assert edit.replace_matches(small(), edit.pattern("Mul(x, Sigmoid(y))"), relu())[1] == 1
    assert edit.replace_matches(small(), edit.pattern("Add( x , 1.5e-1, b?)"), relu())[1] == 0
    for wrong in ("Mul(x, Sigmoid(x)", "x", "", "Mul(x)) ", "Mul(x y)", "Mul(,x)", "3(x)", "a?b"):
        with pytest.raises(UsageError, match=r"pattern|operator"):
            edit.pattern(wrong)
    with pytest.raises(UsageError, match=r"Swosh in .* is not a known operator"):
        edit.pattern("Mul(x, Swosh(x))")


def test_the_command(tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    write_onnx(small(), "m.onnx")
    write_onnx(relu(), "relu.onnx")
    change = ["--replace-pattern", "Mul(x, Sigmoid(x))=relu.onnx", "--remove-postprocessing"]
    assert main(["edit", "m.onnx", "-o", "o.onnx", *change]) == 0
    said = capsys.readouterr().out
    assert "by relu.onnx (1 place)" in said and "removed soft" in said
    assert [n.op for n in load("o.onnx").nodes] == ["Relu"]
    assert main(["edit", "m.onnx", "-o", "n.onnx", "--replace-pattern", "Add(x, 1)=relu.onnx"]) == 2
    assert "no layers match Add(x, 1)" in capsys.readouterr().err
    write_onnx(convolution([CAST, ("Sub", MEAN), ("Div", 58.0)]), "c.onnx")
    assert main(["edit", "c.onnx", "-o", "d.onnx", "--remove-normalization"]) == 0
    assert "(x − [123, 117, 104]) / 58" in capsys.readouterr().out


@pytest.mark.models
@pytest.mark.cpu
@pytest.mark.sweep
@pytest.mark.parametrize("name", REAL)
def test_real_models_written_by_the_command(name: str, models_dir: Path, tmp_path: Path) -> None:
    """Every format: constants folded and another opset, source and optimized, with the source's
    numbers in onnxruntime; without post-processing where there is some."""
    source, out = models_dir / name, tmp_path / "o.onnx"
    shape = REAL[name]
    graph = load(source)
    feeds_of = {graph.inputs[0].name: shape} if shape else {}
    graph = load(source, shapes=feeds_of)
    sized = [f"--shape={n}:{'x'.join(map(str, s))}" for n, s in feeds_of.items()]
    feeds = random_feeds(graph)
    wanted = list(Predictor(graph, "reference").run(feeds).values())
    options = ort.SessionOptions()
    # Beyond that level it multiplies bytes, whose sums saturate on x86 without VNNI.
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_BASIC
    for change in (["--fold", "--opset=18"], ["--optimized"]):
        assert main(["edit", str(source), "-o", str(out), *sized, *change]) == 0
        made = ort.InferenceSession(out, options).run(None, feeds)
        assert all(close(a, b) for a, b in zip(made, wanted, strict=True))
    try:
        bare, gone = edit.remove_postprocessing(graph)
    except UsageError:
        return
    probe = graph.copy()
    probe.outputs = [probe.find(v.name) for v in bare.outputs]
    wanted = Predictor(probe, "reference").run(feeds)
    made = run(bare, feeds)
    assert gone and all(close(made[v.name], wanted[v.name]) for v in bare.outputs)
