"""Edits that are made on purpose are what a diff finds, and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from lite_engine import edit, load, write_onnx
from lite_engine.compare.graph_diff import GraphDiff, diff
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types
from lite_workbench.cli import main

#: Real models, and the shape of an input that the file leaves open.
REAL = {
    "onnx/mnist_8.onnx": None,
    "onnx/DERIVED_mobilenet_v1_0.25_224_tf2onnx.onnx": None,
    "ultraface_rfb320/version-RFB-320.onnx": None,
    "lprnet_plate_ocr/DERIVED_lprnet.onnx": None,
    "tflite/vww_96_float.tflite": None,
    "tflite/mobilenet_v1_0.25_224_float.tflite": None,
    "tflite/person_detect_int8.tflite": None,
    "ppocr_v2_cls/inference.pdmodel": (1, 3, 48, 192),
    "paddle/shufflenet_v2_imagenet_fluid": (1, 3, 224, 224),
    "tf/mobilenet_v1_0.25_224_frozen_graph.pb": None,
    "caffe/mtcnn/det2.caffemodel": None,
}


def summary(made: GraphDiff) -> list[tuple[str, str]]:
    return [(c.kind, c.before or c.after) for c in made.changes]


def small() -> Graph:
    rng = np.random.default_rng(0)
    graph = Graph("small")
    graph.inputs = [Value("x", DType.F32, (1, 3, 8, 8))]
    y = graph.inputs[0]
    for i in range(3):
        w = graph.constant(rng.standard_normal((3, 3, 3, 3)).astype(np.float32), f"w{i}")
        y = graph.add("Conv", [y, w], {"pads": [1] * 4}, name=f"conv{i}").output
        y = graph.add("Relu", [y], name=f"relu{i}").output
    graph.outputs = [y]
    infer_types(graph)
    return graph


def attribute(graph: Graph) -> None:
    graph.node("conv1").attrs.update(pads=[2] * 4, dilations=[2, 2])


def weight(graph: Graph) -> None:
    node = graph.node("conv2")
    node.set_input(1, graph.constant(node.inputs[1].const * np.float32(1.01), "w2b"))


def added(graph: Graph) -> None:
    y = graph.node("relu0").output
    node = graph.add("Sigmoid", [y], name="new", before=graph.node("conv1"))
    graph.node("conv1").set_input(0, node.output)


def removed(graph: Graph) -> None:
    graph.replace_uses(graph.node("relu1").output, graph.node("conv1").output)
    graph.remove_unread()


@pytest.mark.parametrize(
    ("change", "wanted", "kinds"),
    [
        (attribute, [("changed", "conv1")], ["attribute", "attribute"]),
        (weight, [("changed", "conv2")], ["weight"]),
        (added, [("added", "new"), ("changed", "conv1")], ["reads"]),
        (removed, [("deleted", "relu1"), ("changed", "conv2")], ["reads"]),
    ],
)
@pytest.mark.parametrize("renamed", [False, True])
def test_one_change_is_found(
    change: Callable[[Graph], None], wanted: list, kinds: list[str], renamed: bool
) -> None:
    before, after = small(), small()
    change(after)
    infer_types(after)
    if renamed:  # as another exporter names things
        for i, node in enumerate(after.nodes):
            node.name = f"node_{i}" if node.name != "new" else "new"
            for value in node.outputs:
                value.name = f"t{i}"
    made = diff(before, after)
    assert summary(made) == wanted
    assert [d.kind for c in made.changes for d in c.differences] == kinds
    assert made.same == len(after.nodes) - sum(c.kind != "deleted" for c in made.changes)
    assert (made.renamed > 0) == renamed


def test_the_distance_of_weights() -> None:
    before, after = small(), small()
    weight(after)
    (change,) = diff(before, after).changes
    assert change.differences[0].distance == pytest.approx(0.01, rel=1e-4)
    assert change.differences[0].name == "w"


def test_shapes_and_ends() -> None:
    made = diff(small(), edit.rebatch(small(), 4).graph)
    assert [(d.kind, d.before, d.after) for d in made.ends] == [
        ("input", "f32[1×3×8×8]", "f32[4×3×8×8]"),
        ("output", "f32[1×3×8×8]", "f32[4×3×8×8]"),
    ]
    assert {d.kind for c in made.changes for d in c.differences} == {"type"}


def ends(made: GraphDiff) -> list[tuple[str, str, str, str]]:
    return [(d.kind, d.name, d.before, d.after) for d in made.ends]


def halves(first: str = "p", second: str = "q", *, outputs: bool = False) -> Graph:
    """x is cut into p and q; these, or what Sub makes of them, are the outputs."""
    graph = Graph("halves")
    graph.inputs = [Value("x", DType.F32, (1, 4))]
    made = {v.name: v for v in graph.add("Split", graph.inputs, {"axis": 1}, outputs=["p", "q"],
                                         name="split").outputs}  # fmt: skip
    pair = [made[first], made[second]]
    graph.outputs = pair if outputs else [graph.add("Sub", pair, name="sub").output]
    infer_types(graph)
    return graph


def test_which_output_of_a_layer_is_read() -> None:
    (change,) = diff(halves(), halves("q", "p")).changes
    assert [(d.kind, d.name, d.before, d.after) for d in change.differences] == [
        ("reads", "a", "p", "q"),
        ("reads", "b", "q", "p"),
    ]


def test_outputs_that_others_make() -> None:
    """Names and types are the same, the numbers are not."""
    after = halves("q", "p", outputs=True)
    for value, name in zip(after.outputs, "pq"):
        value.name = name
    made = diff(halves(outputs=True), after)
    assert made.changes == [] and ends(made) == [
        ("output", "p", "split:0", "split:1"),
        ("output", "q", "split:1", "split:0"),
    ]

    def of(*ops: str) -> Graph:
        graph = Graph("two")
        graph.inputs = [Value("x", DType.F32, (1, 4))]
        for op, name in zip(ops, "yz"):
            graph.outputs += graph.add(op, graph.inputs, outputs=[name], name=op.lower()).outputs
        infer_types(graph)
        return graph

    made = diff(of("Relu", "Neg"), of("Neg", "Relu"))
    assert made.changes == [] and ends(made) == [
        ("output", "y", "relu:0", "neg:0"),
        ("output", "z", "neg:0", "relu:0"),
    ]


def branching(reads: str = "p", gives: str = "p", x: str = "x") -> Graph:
    """An If, whose branches read and give values that layers around them make."""
    graph = halves(outputs=True)
    graph.inputs[0].name = x
    around = {v.name: v for v in (*graph.inputs, *graph.outputs)}
    then, other = Graph("then"), Graph("other")
    inner = then.add("Neg", [around[reads]], name="neg").output
    then.outputs = [then.add("Add", [inner, graph.inputs[0]], name="plus").output]
    other.outputs = [around[gives]]
    high = graph.add("Cast", [graph.constant(np.float32(1), "k")], {"to": DType.BOOL}).output
    made = graph.add("If", [high], {"then_branch": then, "else_branch": other}, name="if")
    graph.outputs = [made.output, *graph.outputs]
    return graph


def test_branches_that_read_what_is_around_them() -> None:
    assert diff(branching(), branching()).agrees
    assert [d.kind for d in diff(branching(), branching(x="image")).ends] == ["name"]
    assert diff(branching(), branching(x="image")).changes == []
    for after, which in ((branching(reads="q"), "then"), (branching(gives="q"), "else")):
        (change,) = diff(branching(), after).changes
        assert [(d.kind, d.name) for d in change.differences] == [("attribute", f"{which}_branch")]


@pytest.mark.models
@pytest.mark.parametrize("name", REAL)
def test_real_models(name: str, models_dir: Path, tmp_path: Path) -> None:
    """A file written again is the same; a change of one weight of all layers is the only one."""
    graph = load(models_dir / name)
    if shape := REAL[name]:
        graph = load(models_dir / name, shapes={graph.inputs[0].name: shape})
    written = load(write_onnx(graph, tmp_path / "m.onnx"))
    again = diff(graph, written)
    # ONNX has one way to round; TFLite's quantized layers say theirs
    assert all(d.name == "rounding" for c in again.changes for d in c.differences)
    assert {c.kind for c in again.changes} <= {"changed"} and again.ends == []
    changed = written.copy()
    node, at = next(
        (n, i) for n in changed.nodes for i, v in enumerate(n.inputs)
        if v is not None and v.is_const and v.const.size > 100
    )  # fmt: skip
    array = node.inputs[at].const.copy()
    array.reshape(-1)[3] += 1
    node.set_input(at, changed.constant(array, "other"))
    for i, each in enumerate(changed.nodes):
        each.name = f"n{i}" if each is not node else each.name
    found = diff(written, changed)
    assert [(c.kind, c.before) for c in found.changes] == [("changed", node.name)]
    assert [d.kind for d in found.changes[0].differences] == ["weight"]


def test_the_verb(tmp_path: Path, capsys) -> None:
    after = small()
    removed(after)
    one, two = write_onnx(small(), tmp_path / "a.onnx"), write_onnx(after, tmp_path / "b.onnx")
    assert main(["diff", str(one), str(one)]) == 0
    assert "6 layers are the same, 0 added, 0 deleted, 0 changed" in capsys.readouterr().out
    assert main(["diff", str(one), str(two)]) == 1
    said = capsys.readouterr().out
    assert "- relu1 (Relu)" in said and "~ conv2 (Conv)" in said
    assert main(["diff", str(one), str(two), "--json", "-"]) == 1
    data = json.loads(capsys.readouterr().out)
    assert data["schema"] == "lite/diff/1" and [c["kind"] for c in data["changes"]] == [
        "deleted",
        "changed",
    ]
