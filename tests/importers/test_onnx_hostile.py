"""Damaged and hostile ONNX files: an error of ours, never a crash or a hang; speed and memory."""

from __future__ import annotations

import time
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.errors import LiteError, ModelFormatError
from lite_engine.importers import load
from lite_engine.importers import onnx as importer
from lite_engine.ir import verify
from lite_engine.ops import fold_constants, specialise

onnx = pytest.importorskip("onnx", reason="pip install onnx")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from tests.importers.onnx_files import onnx_bytes, two_floats  # noqa: E402
from tests.importers.tiny_onnx import small_model  # noqa: E402

SECONDS = 6.0


def attempt(data: bytes) -> None:
    """Reads bytes as a file would be; only errors of ours may come out."""
    try:
        graph = importer.read_bytes(data)
        verify(graph)
    except LiteError:
        return
    except (ArithmeticError, LookupError, MemoryError, RecursionError, TypeError, ValueError):
        return  # importers.load turns these into ModelFormatError
    try:
        fold_constants(graph)
        specialise(graph, {"x": (1, 3, 8, 8)})
    except LiteError:
        return


def test_good_model_reads() -> None:
    graph = importer.read_bytes(small_model())
    assert [n.op for n in graph.nodes] == ["Conv", "Add", "Reshape", "Gemm", "If", "Softmax"]
    assert graph.inputs[0].shape == ("n", 3, 8, 8)
    assert graph.nodes[1].sources == ("t/b",)
    verify(graph)


def test_load_says_which_file(tmp_path: Path) -> None:
    path = tmp_path / "cut.onnx"
    path.write_bytes(small_model()[:-40])
    with pytest.raises(ModelFormatError, match=r"cut\.onnx"):
        importer.open(path)


def test_huge_dimensions_allocate_nothing() -> None:
    weight = TensorProto(name="w", data_type=1, dims=[1 << 40, 1 << 20], raw_data=b"1234")
    data = onnx_bytes(
        [helper.make_node("Add", ["x", "w"], ["y"])], [two_floats("x")], [two_floats("y")], [weight]
    )
    tracemalloc.start()
    with pytest.raises(ModelFormatError, match="bytes of data"):
        importer.read_bytes(data)
    assert tracemalloc.get_traced_memory()[1] < 4 << 20
    tracemalloc.stop()


def test_cycle() -> None:
    nodes = [helper.make_node("Add", ["x", "b"], ["a"]), helper.make_node("Relu", ["a"], ["b"])]
    with pytest.raises(ModelFormatError, match="cycle"):
        importer.read_bytes(onnx_bytes(nodes, [two_floats("x")], [two_floats("b")]))


def test_out_of_order_is_sorted() -> None:
    nodes = [helper.make_node("Relu", ["a"], ["y"]), helper.make_node("Neg", ["x"], ["a"])]
    graph = importer.read_bytes(onnx_bytes(nodes, [two_floats("x")], [two_floats("y")]))
    assert [n.op for n in graph.nodes] == ["Neg", "Relu"]


@pytest.mark.parametrize("location", ["../outside.bin", "/etc/hostname", "a/../../outside.bin"])
def test_external_data_stays_inside(tmp_path: Path, location: str) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (tmp_path / "outside.bin").write_bytes(b"\0" * 8)
    weight = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    weight.external_data.add(key="location", value=location)
    data = onnx_bytes(
        [helper.make_node("Add", ["x", "w"], ["y"])], [two_floats("x")], [two_floats("y")], [weight]
    )
    (folder / "m.onnx").write_bytes(data)
    with pytest.raises(ModelFormatError, match="outside"):
        importer.open(folder / "m.onnx")


def test_external_data_is_a_view(tmp_path: Path) -> None:
    wanted = np.arange(2, dtype=np.float32)
    (tmp_path / "w.bin").write_bytes(b"\0" * 64 + wanted.tobytes())
    weight = TensorProto(name="w", data_type=1, dims=[2], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", "64"), ("length", "8")):
        weight.external_data.add(key=key, value=value)
    data = onnx_bytes(
        [helper.make_node("Add", ["x", "w"], ["y"])], [two_floats("x")], [two_floats("y")], [weight]
    )
    (tmp_path / "m.onnx").write_bytes(data)
    graph = importer.open(tmp_path / "m.onnx")
    np.testing.assert_array_equal(graph.find("w").const, wanted)


def test_local_functions_are_written_out() -> None:
    """One in another, an attribute handed on, an optional input that is absent: onnxruntime's
    numbers, and no function left."""
    ort = pytest.importorskip("onnxruntime")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    leaky = helper.make_node("LeakyRelu", ["a"], ["t"])
    alpha = onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    leaky.attribute.append(alpha)
    inner = helper.make_function(
        "local", "Inner", ["a", "low"], ["b"],
        [leaky, helper.make_node("Clip", ["t", "low"], ["b"])], opsets, ["slope"],
    )  # fmt: skip
    outer = helper.make_function(
        "local", "Outer", ["p"], ["q"],
        [helper.make_node("Constant", [], ["low"], value_float=-0.5),
         helper.make_node("Inner", ["p", ""], ["r"], domain="local", slope=0.25),
         helper.make_node("Inner", ["r", "low"], ["s"], domain="local", slope=0.75),
         helper.make_node("Sub", ["r", "s"], ["q"])], opsets,
    )  # fmt: skip
    calls = [helper.make_node("Outer", [a], [b], domain="local") for a, b in ("xh", "hy")]
    graph = helper.make_graph(calls, "g", [two_floats("x")], [two_floats("y")])
    model = helper.make_model(
        graph, opset_imports=opsets, functions=[inner, outer], ir_version=8
    ).SerializeToString()
    made = importer.read_bytes(model)
    assert sorted(n.op for n in made.nodes) == ["Clip"] * 4 + ["LeakyRelu"] * 4 + ["Sub"] * 2
    x = np.array([-3.0, 2.0], np.float32)
    (wanted,) = ort.InferenceSession(model).run(None, {"x": x})
    np.testing.assert_allclose(Predictor(made, "reference").run(x=x)["y"], wanted, rtol=1e-6)


def test_recursive_function() -> None:
    call = helper.make_node("F", ["a"], ["b"], domain="local")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    function = helper.make_function("local", "F", ["a"], ["b"], [call], opsets)
    node = helper.make_node("F", ["x"], ["y"], domain="local")
    graph = helper.make_graph([node], "g", [two_floats("x")], [two_floats("y")])
    model = helper.make_model(graph, opset_imports=opsets, functions=[function])
    with pytest.raises(ModelFormatError, match="deep"):
        importer.read_bytes(model.SerializeToString())


def test_function_bomb_is_bounded() -> None:
    """Functions that call the next one ten times each: 10^8 nodes when expanded."""
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1)]
    functions = []
    for level in range(8):
        body, domain = ("Relu", "") if level == 7 else (f"F{level + 1}", "local")
        chain = [helper.make_node(body, [f"v{i}"], [f"v{i + 1}"], domain=domain) for i in range(10)]
        functions.append(helper.make_function("local", f"F{level}", ["v0"], ["v10"], chain, opsets))
    node = helper.make_node("F0", ["x"], ["y"], domain="local")
    graph = helper.make_graph([node], "g", [two_floats("x")], [two_floats("y")])
    model = helper.make_model(graph, opset_imports=opsets, functions=functions)
    start = time.process_time()  # this process's own time: neighbours do not count
    with pytest.raises(ModelFormatError, match="nodes"):
        importer.read_bytes(model.SerializeToString())
    assert time.process_time() - start < 5


def nested(depth: int) -> bytes:
    """An If inside an If, `depth` times."""

    def relu(name: str) -> onnx.GraphProto:
        node = helper.make_node("Relu", ["x"], [name])
        return helper.make_graph([node], "g", [], [two_floats(name)])

    inner = relu("y0")
    for i in range(1, depth + 1):
        node = helper.make_node(
            "If", ["c"], [f"y{i}"], then_branch=inner, else_branch=relu(f"z{i}")
        )
        inner = helper.make_graph([node], "g", [], [two_floats(f"y{i}")])
    flag = numpy_helper.from_array(np.array(True), "c")
    graph = helper.make_graph(inner.node, "g", [two_floats("x")], inner.output, [flag])
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets).SerializeToString()


def test_deep_nesting() -> None:
    """The reader stops at its own depth, long before Python's."""
    verify(importer.read_bytes(nested(10)))
    with pytest.raises(ModelFormatError, match="nested deeper"):
        importer.read_bytes(nested(31))


def test_names_become_unique() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], name="n"),
        helper.make_node("Neg", ["a"], ["y"], name="n"),
    ]
    graph = importer.read_bytes(onnx_bytes(nodes, [two_floats("x")], [two_floats("y")]))
    assert len({n.name for n in graph.nodes}) == 2
    assert [n.sources for n in graph.nodes] == [("n",), ("n",)]
    verify(graph)


def test_missing_inputs(tmp_path: Path) -> None:
    nodes = [helper.make_node("Reshape", ["x"], ["y"])]
    (tmp_path / "m.onnx").write_bytes(onnx_bytes(nodes, [two_floats("x")], [two_floats("y")]))
    with pytest.raises(ModelFormatError, match="Reshape needs its input 'shape'"):
        load(tmp_path / "m.onnx")


def test_a_branch_that_is_no_graph(tmp_path: Path) -> None:
    inner = helper.make_graph([helper.make_node("Relu", ["x"], ["z"])], "g", [], [two_floats("z")])
    node = helper.make_node("If", ["c"], ["y"], then_branch=inner, else_branch=2.0)
    data = onnx_bytes(
        [helper.make_node("IsNaN", ["x"], ["c"]), node], [two_floats("x")], [two_floats("y")]
    )
    (tmp_path / "m.onnx").write_bytes(data)
    with pytest.raises(ModelFormatError, match="If's else_branch is not a graph"):
        load(tmp_path / "m.onnx")
