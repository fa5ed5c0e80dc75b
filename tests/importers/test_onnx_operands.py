"""ONNX files whose operands do not fit each other: one line says so."""

from __future__ import annotations

import re
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.backends.reference import run_graph
from lite_engine.errors import LiteError, ModelFormatError, ShapeError
from lite_engine.importers import load
from lite_engine.ops import fold_constants, get_op, specialise
from lite_engine.passes import optimize_graph
from lite_engine.runtime.inputs import random_feeds
from lite_engine.runtime.support import model_info

onnx = pytest.importorskip("onnx", reason="pip install onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from tests.importers.onnx_files import onnx_bytes, two_floats  # noqa: E402


def _floats(name: str, *shape: int) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


@pytest.mark.parametrize(
    ("node", "shapes", "said"),
    [
        (
            helper.make_node("Transpose", ["x"], ["y"], perm=[0, 2, 1, 3]),
            [(192,)],
            "contradict each other",
        ),
        (helper.make_node("Gemm", ["x", "w"], ["y"]), [(7,), (7, 3)], "contradict each other"),
        (helper.make_node("Trilu", ["x"], ["y"]), [(5,)], "of rank 2 or more, found 1"),
        (
            helper.make_node("MaxPool", ["x"], ["y"], kernel_shape=[2, 2], auto_pad="SAME"),
            [(1, 1, 4, 4)],
            "auto_pad 'SAME' is not one of NOTSET, VALID, SAME_UPPER, SAME_LOWER",
        ),
        (
            helper.make_node("ConvTranspose", ["x", "w"], ["y"], auto_pad="same"),
            [(1, 1, 4, 4), (1, 1, 3, 3)],
            "auto_pad 'same' is not one of",
        ),
        (
            helper.make_node("DepthToSpace", ["x"], ["y"], blocksize=2, mode="crd"),
            [(1, 4, 2, 2)],
            "mode 'crd' is not one of DCR, CRD",
        ),
    ],
)
def test_what_can_never_run_is_told_at_once(
    tmp_path: Path, node: onnx.NodeProto, shapes: list[tuple[int, ...]], said: str
) -> None:
    """A node that the sizes of its inputs, all known, or its own words do not fit: one line that
    names it, not a traceback from the pass, cost or kernel that meets it first, nor an answer."""
    inputs = [_floats(name, *shape) for name, shape in zip("xw", shapes)]
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    (tmp_path / "m.onnx").write_bytes(onnx_bytes([node], inputs, [output]))
    graph = load(tmp_path / "m.onnx")
    with pytest.raises(ShapeError, match=said) as told:
        optimize_graph(graph)
    assert str(told.value).startswith("y") and "\n" not in str(told.value)
    (hint,) = model_info(graph, "m").hints  # `lite info` shows the rest
    assert re.search(said, hint) or "does not fit" in hint


def test_a_transpose_of_another_rank(tmp_path: Path) -> None:
    """Sizes are open, so that nothing is known to be wrong before the passes."""
    nodes = [
        helper.make_node("Transpose", ["x"], ["a"], perm=[0, 2, 1]),
        helper.make_node("Transpose", ["a"], ["b"], perm=[1, 0]),
        helper.make_node("Relu", ["b"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n"])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    (tmp_path / "m.onnx").write_bytes(onnx_bytes(nodes, [x], [y]))
    with pytest.raises(ShapeError, match=r"^a \(Transpose of f32\[4\]\): axis 2 is outside"):
        specialise(optimize_graph(load(tmp_path / "m.onnx")), {"x": (4,)})


def test_a_concat_without_axis(tmp_path: Path) -> None:
    """Behind Transposes, so that a pass asks for the axis before anything runs."""
    nodes = [helper.make_node("Transpose", [x], [f"{x}t"], perm=[0, 2, 3, 1]) for x in "xw"]
    nodes.append(helper.make_node("Concat", ["xt", "wt"], ["y"]))
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    inputs = [_floats(name, 1, 2, 3, 4) for name in "xw"]
    (tmp_path / "m.onnx").write_bytes(onnx_bytes(nodes, inputs, [y]))
    graph = optimize_graph(load(tmp_path / "m.onnx"))
    with pytest.raises(LiteError, match="y: Concat needs attribute 'axis'"):
        specialise(graph)


@pytest.mark.parametrize("op", ["Max", "Concat", "Einsum"])
def test_a_gap_among_many_inputs(tmp_path: Path, op: str) -> None:
    more = {"Concat": {"axis": 0}, "Einsum": {"equation": "i,i->i"}}.get(op, {})
    node = helper.make_node(op, ["", "x"], ["y"], **more)
    (tmp_path / "m.onnx").write_bytes(onnx_bytes([node], [_floats("x", 3)], [_floats("y", 3)]))
    with pytest.raises(ModelFormatError, match=rf"m\.onnx: y: {op} has a gap among its inputs$"):
        load(tmp_path / "m.onnx")


def test_a_shift_has_two_directions(tmp_path: Path) -> None:
    node = helper.make_node("BitShift", ["x", "w"], ["y"], direction="UP")
    x, w, y = (helper.make_tensor_value_info(n, TensorProto.UINT8, [3]) for n in "xwy")
    (tmp_path / "m.onnx").write_bytes(onnx_bytes([node], [x, w], [y]))
    with pytest.raises(ShapeError, match="direction 'UP' is not one of LEFT, RIGHT"):
        optimize_graph(load(tmp_path / "m.onnx"))


def test_sizes_that_no_array_has(tmp_path: Path) -> None:
    """Shape reads sizes alone; nothing may be made for the elements."""
    node = helper.make_node("Shape", ["x"], ["y"])
    y = helper.make_tensor_value_info("y", TensorProto.INT64, [2])
    (tmp_path / "m.onnx").write_bytes(onnx_bytes([node], [_floats("x", 1 << 62, 1 << 62)], [y]))
    fold_constants(load(tmp_path / "m.onnx"))


def test_a_scan_that_does_not_fit_is_one_line(tmp_path: Path) -> None:
    """A step that changes the size of what it hands out, found while running."""
    body = helper.make_graph(
        [helper.make_node("NonZero", ["e"], ["n"])],
        "b",
        [helper.make_tensor_value_info("e", TensorProto.FLOAT, None)],
        [helper.make_tensor_value_info("n", TensorProto.INT64, None)],
    )
    node = helper.make_node("Scan", ["x"], ["y"], body=body, num_scan_inputs=1)
    y = helper.make_tensor_value_info("y", TensorProto.INT64, None)
    (tmp_path / "m.onnx").write_bytes(onnx_bytes([node], [_floats("x", 2, 2)], [y]))
    with pytest.raises(ShapeError, match=r"^y \(Scan\): all input arrays must have the same"):
        run_graph(load(tmp_path / "m.onnx"), [np.array([[1, 0], [1, 1]], np.float32)])


def test_what_a_reference_gives_is_what_was_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Inputs that an operator's inference takes and its computation does not: one line."""
    node = helper.make_node("Neg", ["x"], ["y"])
    (tmp_path / "m.onnx").write_bytes(onnx_bytes([node], [_floats("x", 3)], [_floats("y", 3)]))
    predictor = Predictor(load(tmp_path / "m.onnx"), "reference")
    monkeypatch.setattr(get_op("Neg"), "_reference", lambda x: np.outer(x, x))
    with pytest.raises(ShapeError, match=r"^y \(Neg\) gives 3×3, expected 3 elements"):
        predictor.run(x=np.ones(3, np.float32))


@pytest.mark.parametrize(("opset", "node", "message"), [
    (11, helper.make_node("Softmax", [], ["y"]), "y: Softmax needs its input 'x'"),
    (11, helper.make_node("Softmax", ["x"], ["y"], axis=[1]), "'axis' is .1., not an integer"),
    (9, helper.make_node("Clip", [], ["y"]), "Clip needs its input 'x'"),
    (9, helper.make_node("Upsample", [], ["y"]), "Upsample needs its input 'x'"),
    (11, helper.make_node("Squeeze", ["x"], ["y"], axes="a"), "'axes' is 'a', not a list"),
])  # fmt: skip
def test_older_forms_that_no_version_has(
    tmp_path: Path, opset: int, node: onnx.NodeProto, message: str
) -> None:
    graph = helper.make_graph([node], "g", [_floats("x", 2, 3)], [_floats("y", 2, 3)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)])
    (tmp_path / "m.onnx").write_bytes(model.SerializeToString())
    with pytest.raises(ModelFormatError, match=message):
        load(tmp_path / "m.onnx")


def test_a_loop_whose_inputs_are_swapped(tmp_path: Path) -> None:
    flag = helper.make_tensor_value_info("go", TensorProto.BOOL, [])
    body = helper.make_graph(
        [helper.make_node("Identity", ["go"], ["on"]), helper.make_node("Relu", ["s"], ["t"])],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []), flag, _floats("s", 2)],
        [helper.make_tensor_value_info("on", TensorProto.BOOL, []), _floats("t", 2)],
    )
    count = helper.make_tensor_value_info("count", TensorProto.INT64, [])
    start = helper.make_tensor_value_info("start", TensorProto.BOOL, [])
    for names, message in (
        (["count", "start", "x"], ""),
        (["start", "count", "x"], "its trip count is bool.*, not one integer"),
        (["x", "start", "x"], "its trip count is f32.*, not one integer"),
        (["count", "x", "x"], "its condition is f32.*, not one truth value"),
    ):
        node = helper.make_node("Loop", names, ["y"], body=body)
        path = tmp_path / "m.onnx"
        path.write_bytes(onnx_bytes([node], [_floats("x", 2), count, start], [_floats("y", 2)]))
        if not message:
            load(path)
            continue
        with pytest.raises(LiteError, match=message):
            load(path)


def _body(inputs: int, outputs: int) -> onnx.GraphProto:
    """A body of Loop: the step's number, the condition and values of two floats."""
    first = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
    ]
    values = [_floats(f"s{k}", 2) for k in range(4)]
    nodes = [helper.make_node("Identity", ["go"], ["on"])]
    nodes += [helper.make_node("Relu", ["x"], [f"t{k}"]) for k in range(4)]
    on = helper.make_tensor_value_info("on", TensorProto.BOOL, [])
    made = [on, *(_floats(f"t{k}", 2) for k in range(4))][:outputs]
    return helper.make_graph(nodes, "body", [*first, *values][:inputs], made)


@pytest.mark.parametrize(
    ("inputs", "outputs", "message"),
    [
        (3, 2, ""),
        (3, 3, ""),  # a body may have an output that the Loop does not return
        (2, 2, "expected 3 inputs of the body of Loop, found 2"),
        (4, 2, "expected 3 inputs of the body of Loop, found 4"),
        (3, 1, "expected at least 2 outputs of the body of Loop, found 1"),
        (3, 0, "expected at least 2 outputs of the body of Loop, found 0"),
    ],
)
def test_a_loop_and_its_body_fit(tmp_path: Path, inputs: int, outputs: int, message: str) -> None:
    node = helper.make_node("Loop", ["n", "", "x"], ["y"], body=_body(inputs, outputs))
    count = numpy_helper.from_array(np.int64(2), "n")
    path = _saved(tmp_path, [node], [_floats("x", 2)], [_floats("y", 2)], [count])
    if not message:
        assert Predictor(path).run({"x": np.float32([-1, 3])})["y"].tolist() == [0, 3]
        return
    with pytest.raises(ModelFormatError, match=message):
        load(path)


@pytest.mark.parametrize(
    ("taken", "other", "message"),
    [(1, 1, ""), (0, 1, "outputs of the then_branch"), (1, 0, "outputs of the else_branch")],
)
def test_both_branches_give_what_is_read(
    tmp_path: Path, taken: int, other: int, message: str
) -> None:
    """Also the one that is not taken."""

    def branch(name: str, outputs: int) -> onnx.GraphProto:
        nodes = [helper.make_node("Relu", ["x"], [name])]
        return helper.make_graph(nodes, name, [], [_floats(name, 2)][:outputs])

    node = helper.make_node(
        "If", ["c"], ["y"], then_branch=branch("a", taken), else_branch=branch("b", other)
    )
    flag = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    path = _saved(tmp_path, [node], [flag, _floats("x", 2)], [_floats("y", 2)])
    if not message:
        load(path)
        return
    with pytest.raises(ModelFormatError, match=f"expected at least 1 {message} of If, found 0"):
        load(path)


@pytest.mark.parametrize(
    ("count", "outputs", "message"),
    [
        (1, 2, ""),
        (0, 2, "num_scan_inputs must be between 1 and 2, got 0"),
        (-1, 2, "num_scan_inputs must be between 1 and 2, got -1"),
        (3, 2, "num_scan_inputs must be between 1 and 2, got 3"),
        (1, 1, "expected at least 2 outputs of the body of Scan, found 1"),
    ],
)
def test_a_scan_and_its_body_fit(tmp_path: Path, count: int, outputs: int, message: str) -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "x"], ["t"]), helper.make_node("Neg", ["t"], ["u"])],
        "body",
        [_floats("s", 2), _floats("x", 2)],
        [_floats("t", 2), _floats("u", 2)][:outputs],
    )
    node = helper.make_node("Scan", ["a", "b"], ["y", "z"], body=body, num_scan_inputs=count)
    outs = [_floats("y", 2), _floats("z", 3, 2)]
    path = _saved(tmp_path, [node], [_floats("a", 2), _floats("b", 3, 2)], outs)
    if not message:
        ones = {"a": np.zeros(2, np.float32), "b": np.ones((3, 2), np.float32)}
        assert Predictor(path).run(ones)["z"].tolist() == [[-1, -1], [-2, -2], [-3, -3]]
        return
    with pytest.raises(ModelFormatError, match=message):
        load(path)


def _saved(tmp_path: Path, nodes: list, inputs: list, outputs: list, weights: list = ()) -> Path:
    path = tmp_path / "hostile.onnx"
    path.write_bytes(onnx_bytes(nodes, inputs, outputs, weights))
    return path


def test_a_symbol_has_one_size(tmp_path: Path) -> None:
    """Of an input that is given, and of those that are assumed."""
    rows = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "T"])
    lengths = helper.make_tensor_value_info("l", TensorProto.FLOAT, ["N"])
    nodes = [helper.make_node("Unsqueeze", ["l", "axis"], ["c"]),
             helper.make_node("Mul", ["x", "c"], ["y"])]  # fmt: skip
    axis = numpy_helper.from_array(np.array([1]), "axis")
    path = _saved(tmp_path, nodes, [rows, lengths], [two_floats("y")], [axis])
    assumed = model_info(load(path), "m").assumed
    assert assumed["l"] == assumed["x"][:1]
    given = load(path, shapes={"x": (5, 7)})
    assert [v.shape for v in given.inputs] == [(5, 7), (5,)]
    both = load(path, shapes={"x": (5, 7), "l": (1,)})  # one that broadcasts
    assert [v.shape for v in both.inputs] == [(5, 7), (1,)]
    with pytest.raises(ShapeError, match="--shape l:2 or"):
        random_feeds(load(path), shapes={"x": (2, 4)})


def test_an_attribute_may_hold_any_bytes(tmp_path: Path) -> None:
    node = helper.make_node("Erfc", ["x"], ["y"], domain="ai.none", config=b"\x89\xff")
    path = _saved(tmp_path, [node], [two_floats("x")], [two_floats("y")])
    assert load(path).nodes[0].attrs["config"] == r"\x89\xff"


def _constant(name: str, *shape: int) -> TensorProto:
    return numpy_helper.from_array(np.ones(shape, np.float32), name)


def test_a_constant_that_doubles_without_end(tmp_path: Path) -> None:
    """36 times Concat(c, c) would be 256 GiB."""
    nodes = [
        helper.make_node("Concat", [f"c{i}", f"c{i}"], [f"c{i + 1}"], axis=0) for i in range(36)
    ]
    nodes.append(helper.make_node("ReduceSum", ["c36"], ["y"], keepdims=0))
    path = _saved(tmp_path, nodes, [], [two_floats("y")], [_constant("c0", 1024)])
    tracemalloc.start()
    try:
        optimize_graph(load(path))
    except LiteError:
        pass  # that it can never run may be told at once
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 256 << 20


@pytest.mark.parametrize(
    "op, inputs, attrs",
    [
        ("Conv", [("w", (4, 3, 3, 3)), ("b", (1, 4))], {}),
        ("ReduceMax", [], {"keepdims": 0}),
        ("GRU", [("w", ()), ("r", ())], {"hidden_size": 4}),
        ("DeformConv", [("w", (4, 3, 3, 3)), ("o", (1, 18, 6))], {}),
        ("Pad", [("p", "huge")], {}),
    ],
)
def test_operands_of_an_impossible_shape_are_told_in_one_line(
    op: str, inputs: list, attrs: dict, tmp_path: Path
) -> None:
    shape = () if op == "ReduceMax" else (2, 1, 3) if op == "GRU" else (1, 3, 8, 8)
    huge = numpy_helper.from_array(np.array([0, 0, 0, 0, 0, 0, 2**40, 2**40]), "p")
    weights = [huge if s == "huge" else _constant(n, *s) for n, s in inputs]
    nodes = [helper.make_node(op, ["x", *(n for n, _ in inputs)], ["y0"], **attrs)]
    if op == "Conv":  # the batch norm behind it is what a pass folds
        nodes.append(helper.make_node("BatchNormalization", ["y0", *["k"] * 4], ["y"]))
        weights.append(_constant("k", 4))
    else:
        nodes.append(helper.make_node("Identity", ["y0"], ["y"]))
    path = _saved(tmp_path, nodes, [_floats("x", *shape)], [two_floats("y")], weights)
    x = np.ones(shape, np.float32)
    for backend in ("reference", "auto"):
        try:
            Predictor(load(path), backend).run({"x": x})
        except LiteError as error:
            assert "\n" not in str(error)
