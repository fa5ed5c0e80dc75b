"""Loops of TensorFlow 1 (Enter, Merge, Switch, NextIteration, Exit), and those of version 2 whose
condition depends on data: what they become, against the same loop in NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine.errors import ModelFormatError, UnsupportedOperatorError
from lite_engine.passes import optimize_graph
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution

from tests.importers.tiny_tensorflow import const, function, node, placeholder
from tests.importers.wire import message

F32 = np.float32
X = np.array([[1.5, -2.0, 3.0]], F32)


def frame(
    name: str,
    start: dict[str, str],
    constants: dict[str, str],
    body: list[bytes],
    back: dict[str, str],
    test: tuple[str, ...],
    exits: list[str],
) -> list[bytes]:
    """tf.while_loop as TensorFlow 1 writes it. Variable v is read as v/in in the body and as
    v/merge by the condition's nodes; a constant c as c/in."""  # fmt: skip
    nodes = [node(f"{v}/enter", "Enter", ref, frame_name=name) for v, ref in start.items()]
    nodes += [
        node(f"{c}/in", "Enter", ref, frame_name=name, is_constant=True)
        for c, ref in constants.items()
    ]
    for v in start:
        nodes += [
            node(f"{v}/merge", "Merge", f"{v}/enter", f"{v}/next", N=2),
            node(f"{v}/switch", "Switch", f"{v}/merge", f"{name}/cond"),
            node(f"{v}/in", "Identity", f"{v}/switch:1"),
            node(f"{v}/next", "NextIteration", back[v]),
        ]
    nodes += [node(f"{name}/test", *test), node(f"{name}/cond", "LoopCond", f"{name}/test"), *body]
    return nodes + [node(f"{v}/exit", "Exit", f"{v}/switch") for v in exits]


def counted(limit: bytes) -> list[bytes]:
    """i, y = 0, x; while i < n: i, y = i + 1, y · 0.5 + x"""
    body = [
        const("half", F32(0.5)), const("one", np.int32(1)),
        node("i/plus", "AddV2", "i/in", "one"),
        node("scaled", "Mul", "y/in", "half"), node("sum", "AddV2", "scaled", "x/in"),
    ]  # fmt: skip
    loop = frame("w", {"i": "zero", "y": "x"}, {"n": "n", "x": "x"}, body,
                 {"i": "i/plus", "y": "sum"}, ("Less", "i/merge", "n/in"), ["y", "i"])  # fmt: skip
    ends = [node("out", "Neg", "y/exit"), node("steps", "Identity", "i/exit")]
    return [placeholder("x", (1, 3)), const("zero", np.int32(0)), limit, *loop, *ends]


def wanted(steps: int) -> np.ndarray:
    y = X
    for _ in range(steps):
        y = y * F32(0.5) + X
    return -y


def run(graph, **feeds: np.ndarray) -> list[np.ndarray]:
    graph = optimize_graph(graph)
    plan = make_plan(graph, "cpu", {k: v.shape for k, v in feeds.items()})
    return Execution(plan, threads=1).run([feeds[v.name] for v in graph.inputs])


def test_a_known_number_of_steps_is_unrolled(tensorflow_imported):
    graph = tensorflow_imported(counted(const("n", np.int32(4))), outputs=["out", "steps"])
    assert {n.op for n in graph.nodes} == {"Mul", "Add", "Neg", "Identity"}
    y, steps = run(graph, x=X)
    np.testing.assert_allclose(y, wanted(4), rtol=1e-6)
    assert steps == 4


@pytest.mark.parametrize("n", [0, 1, 5])
def test_steps_that_data_decides_are_a_loop(tensorflow_imported, n):
    graph = tensorflow_imported(counted(placeholder("n", (), np.int32)), outputs=["out", "steps"])
    assert [node.op for node in graph.nodes].count("Loop") == 1
    y, steps = run(graph, x=X, n=np.array(n, np.int32))
    np.testing.assert_allclose(y, wanted(n), rtol=1e-6)
    assert steps == n


def test_without_names_the_outputs_are_what_nobody_reads(tensorflow_imported):
    graph = tensorflow_imported(counted(placeholder("n", (), np.int32)))
    assert [v.name for v in graph.outputs] == ["out", "steps"]


@pytest.mark.parametrize("fixed", [True, False])
def test_a_loop_in_a_loop(tensorflow_imported, fixed):
    """while i < n: (j, z = 0, y; while j <= i: j, z = j + 1, z + x); i, y = i + 1, z · 0.5"""
    limit = const("n", np.int32(3)) if fixed else placeholder("n", (), np.int32)
    inner = frame(
        "v", {"j": "none", "z": "y/in"}, {"i2": "i/in", "x2": "x/in"},
        [const("one2", np.int32(1)), node("j/plus", "AddV2", "j/in", "one2"),
         node("more", "AddV2", "z/in", "x2/in")],
        {"j": "j/plus", "z": "more"}, ("LessEqual", "j/merge", "i2/in"), ["z"],
    )  # fmt: skip
    body = [
        const("half", F32(0.5)), const("one", np.int32(1)), const("none", np.int32(0)), *inner,
        node("i/plus", "AddV2", "i/in", "one"), node("scaled", "Mul", "z/exit", "half"),
    ]  # fmt: skip
    loop = frame("w", {"i": "zero", "y": "x"}, {"n": "n", "x": "x"}, body,
                 {"i": "i/plus", "y": "scaled"}, ("Less", "i/merge", "n/in"), ["y"])  # fmt: skip
    nodes = [placeholder("x", (1, 3)), const("zero", np.int32(0)), limit, *loop]
    graph = tensorflow_imported([*nodes, node("out", "Neg", "y/exit")], outputs=["out"])
    assert any(n.op == "Loop" for n in graph.nodes) != fixed
    feeds = {} if fixed else {"n": np.array(3, np.int32)}
    y = X
    for i in range(3):
        y = (y + (i + 1) * X) * F32(0.5)
    np.testing.assert_allclose(run(graph, x=X, **feeds)[0], -y, rtol=1e-6)


def test_a_condition_in_a_loop(tensorflow_imported):
    """while i < n: i, y = i + 1, (y · 2 if sum(y) > 0 else −y)"""
    body = [
        const("two", F32(2)), const("one", np.int32(1)), const("axes", np.int32([0, 1])),
        const("nought", F32(0)), node("i/plus", "AddV2", "i/in", "one"),
        node("sum", "Sum", "y/in", "axes"), node("p", "Greater", "sum", "nought"),
        node("ys", "Switch", "y/in", "p"), node("yes", "Mul", "ys:1", "two"),
        node("no", "Neg", "ys"), node("joined", "Merge", "no", "yes", N=2),
    ]  # fmt: skip
    loop = frame("w", {"i": "zero", "y": "x"}, {"n": "n"}, body,
                 {"i": "i/plus", "y": "joined"}, ("Less", "i/merge", "n/in"), ["y"])  # fmt: skip
    nodes = [
        placeholder("x", (1, 3)), placeholder("n", (), np.int32), const("zero", np.int32(0)), *loop
    ]  # fmt: skip
    graph = tensorflow_imported([*nodes, node("out", "Abs", "y/exit")], outputs=["out"])
    y, x = -X, -X
    for _ in range(3):
        y = y * F32(2) if y.sum() > 0 else -y
    (found,) = run(graph, x=x, n=np.array(3, np.int32))
    np.testing.assert_array_equal(found, np.abs(y))


def test_arrays_of_a_recurrent_layer(tensorflow_imported):
    """s = s · 0.5 + x[i], each s kept, as dynamic_rnn writes it."""
    body = [
        const("half", F32(0.5)), const("one", np.int32(1)),
        node("i/plus", "AddV2", "i/in", "one"),
        node("item", "TensorArrayReadV3", "source/in", "i/in", "flow/in"),
        node("scaled", "Mul", "s/in", "half"), node("now", "AddV2", "scaled", "item"),
        node("kept", "TensorArrayWriteV3", "made/in", "i/in", "now", "t/in"),
    ]  # fmt: skip
    loop = frame(
        "w", {"i": "zero", "s": "start", "t": "array:1"},
        {"n": "n", "source": "rows", "flow": "filled", "made": "array"}, body,
        {"i": "i/plus", "s": "now", "t": "kept"}, ("Less", "i/merge", "n/in"), ["s", "t"],
    )  # fmt: skip
    nodes = [
        placeholder("x", (4, 3)), const("zero", np.int32(0)), const("n", np.int32(4)),
        const("start", np.zeros(3, F32)), const("all", np.arange(4, dtype=np.int32)),
        node("array", "TensorArrayV3", "n"), node("rows", "TensorArrayV3", "n"),
        node("filled", "TensorArrayScatterV3", "rows", "all", "x", "rows:1"), *loop,
        node("size", "TensorArraySizeV3", "array", "t/exit"),
        node("y", "TensorArrayGatherV3", "array", "all", "t/exit"),
    ]  # fmt: skip
    graph = tensorflow_imported(nodes, outputs=["y", "s/exit", "size"])
    x = np.random.default_rng(0).normal(size=(4, 3)).astype(F32)
    s, rows = np.zeros(3, F32), []
    for row in x:
        s = s * F32(0.5) + row
        rows.append(s)
    y, last, size = run(graph, x=x)
    np.testing.assert_allclose(y, np.stack(rows), rtol=1e-6)
    np.testing.assert_allclose(last, s, rtol=1e-6)
    assert size == 4


def func(name: str) -> bytes:
    return message((10, message((1, name))))


def test_a_while_of_version_2_that_data_decides(tensorflow_imported):
    """while max(y) > limit: y = y · 0.5, of any number of rows"""
    args = ["y", "limit"]
    cond = function("cond", args, {"go": "more:z:0"}, [
        const("axes", np.int32([0, 1])), node("most", "Max", "y", "axes:output:0"),
        node("more", "Greater", "most:output:0", "limit"),
    ])  # fmt: skip
    body = function("body", args, {"y2": "less:z:0", "limit2": "limit"}, [
        const("half", F32(0.5)), node("less", "Mul", "y", "half:output:0"),
    ])  # fmt: skip
    nodes = [
        placeholder("x", (None, 3)), placeholder("limit", ()),
        node("w", "While", "x", "limit", cond=func("cond"), body=func("body")),
        node("y", "Identity", "w"),
    ]  # fmt: skip
    graph = tensorflow_imported(nodes, [cond, body], outputs=["y"])
    x = np.array([[8, 1, 2], [3, 3, 3]], F32)
    (found,) = run(graph, x=x, limit=np.array(1.5, F32))
    np.testing.assert_array_equal(found, x / 8)


@pytest.mark.parametrize("taken", [True, False])
def test_an_if_of_version_2_that_data_decides(tensorflow_imported, taken):
    """Branches of different sizes, which a selection could not join."""
    yes = function("yes", ["v"], {"out": "r:output:0"}, [
        const("axis", np.int32(0)), node("r", "ConcatV2", "v", "v", "axis:output:0", N=2),
    ])  # fmt: skip
    no = function("no", ["v"], {"out": "r:y:0"}, [node("r", "Neg", "v")])
    nodes = [
        placeholder("x", (1, 3)), placeholder("p", (), np.bool_),
        node("y", "If", "p", "x", then_branch=func("yes"), else_branch=func("no")),
    ]  # fmt: skip
    graph = tensorflow_imported(nodes, [yes, no])
    assert [n.op for n in graph.nodes if n.op == "If"] == ["If"]
    (found,) = run(graph, x=X, p=np.array(taken))
    np.testing.assert_array_equal(found, np.concatenate([X, X]) if taken else -X)


def test_a_loop_without_end(tensorflow_imported):
    nodes = counted(const("n", np.int32(4)))
    at = next(i for i, n in enumerate(nodes) if b"i/plus" in n and b"AddV2" in n)
    nodes[at] = node("i/plus", "Identity", "i/in")
    with pytest.raises(ModelFormatError, match="more than 1024 steps"):
        tensorflow_imported(nodes, outputs=["out"])


@pytest.mark.parametrize("lost", [b"LoopCond", b"y/switch", b"y/enter"])
def test_a_loop_that_lacks_a_part(tensorflow_imported, lost):
    nodes = [n for n in counted(const("n", np.int32(4))) if not n.startswith(_starts(lost))]
    with pytest.raises((UnsupportedOperatorError, ModelFormatError)):
        tensorflow_imported(nodes, outputs=["out"])


def _starts(name: bytes) -> bytes:
    """The first bytes of a node of that name; of LoopCond's, whose name is w/cond."""
    name = b"w/cond" if name == b"LoopCond" else name
    return bytes([0x0A, len(name)]) + name


def test_what_a_loop_only_waits_for_is_no_output(tensorflow_imported):
    """A function's loop, frozen: control edges from a part of a step and from all Exits, which
    nobody reads."""
    limit = const("n", np.int32(3))
    controlled = [
        node("w/body_control", "Identity", "i/switch:1"),
        node("late", "AddV2", "sum", "one", "^w/body_control"),
        node("w/done", "NoOp", "^i/exit", "^y/exit"),
        node("result", "Identity", "out", "^w/done"),
    ]
    nodes = [n for n in counted(limit) if b"steps" not in n] + controlled
    graph = tensorflow_imported(nodes)
    assert [v.name for v in graph.outputs] == ["result"]
    np.testing.assert_allclose(run(graph, x=X)[0], wanted(3), rtol=1e-6)


def test_sizes_that_the_file_leaves_open_may_be_given(tensorflow_imported):
    """As many steps as the input has rows: a translation needs to know them."""
    rows = [node("shape", "Shape", "x"), const("from", np.int32([0])), const("to", np.int32([1])),
            const("by", np.int32([1])),
            node("n", "StridedSlice", "shape", "from", "to", "by", shrink_axis_mask=1)]  # fmt: skip
    nodes = [placeholder("x", (None, 3)), *rows, *counted(b"")[1:]]
    x = np.repeat(X, 4, 0)
    graph = tensorflow_imported([n for n in nodes if n], outputs=["out"], shapes={"x": (4, 3)})
    assert not any(n.has_subgraph for n in graph.nodes)
    np.testing.assert_allclose(run(graph, x=x)[0], np.repeat(wanted(4), 4, 0), rtol=1e-6)
