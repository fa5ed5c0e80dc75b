"""What a caller gives as an input: arrays of every form, lists, numbers, bf16. Each is computed as
NumPy computes it, or refused in one line."""

from __future__ import annotations

import copy
import json
import pickle
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from lite_engine import Predictor, load
from lite_engine.compare import Side, compare
from lite_engine.errors import LiteError, ShapeError, UsageError
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types
from lite_engine.quantize.guard import judge
from lite_engine.runtime.inputs import numbers_feed, random_feeds
from lite_workbench.answers import answer_of
from lite_workbench.cli import main
from onnx import TensorProto, helper

RNG = np.random.default_rng(3)
X = RNG.standard_normal((4, 6)).astype(np.float32)


def doubled(dtype: DType, shape: tuple[int | str, ...]) -> Predictor:
    graph = Graph("doubled")
    graph.inputs = [Value("x", dtype, shape)]
    graph.outputs = [graph.add("Add", [graph.inputs[0]] * 2, outputs=["y"]).output]
    infer_types(graph)
    return Predictor(graph)


@pytest.mark.parametrize(
    "given",
    [
        X, np.asfortranarray(X), X[::-1], X[:, ::-1], np.repeat(X, 2, 0)[::2],
        np.broadcast_to(X[:1], (4, 6)), X.astype(">f4"), X.tolist(), list(X), memoryview(X),
        np.zeros((0, 6), np.float32), [[1, 2, 3, 4, 5, 6]], [[True] * 6],
    ],
    ids=["plain", "fortran", "backward", "mirrored", "strided", "broadcast", "big-endian", "list",
         "rows", "memoryview", "empty", "integers", "booleans"],
)  # fmt: skip
def test_arrays_of_every_form(given: Any) -> None:
    wanted = 2 * np.asarray(given).astype(np.float32)
    np.testing.assert_array_equal(doubled(DType.F32, ("N", 6)).run({"x": given})["y"], wanted)


def test_read_only_memory_stays_as_it_is() -> None:
    x = X.copy()
    x.flags.writeable = False
    np.testing.assert_array_equal(doubled(DType.F32, ("N", 6)).run(x=x)["y"], 2 * X)
    np.testing.assert_array_equal(x, X)


@pytest.mark.parametrize(
    ("dtype", "given", "said"),
    [
        (DType.F32, [[1.0] * 6, [1.0]], r"input x \(f32\[N×6\]\) cannot be read as an array"),
        (DType.F32, X.astype(np.float64), r"got f64; convert it with \.astype\('float32'\)"),
        (DType.F32, X.astype(np.longdouble), "got (float|longdouble)"),
        (DType.F32, X.astype(object), "got object"),
        (DType.F32, [["1"] * 6], "got <U1"),
        (DType.F32, [[1e39] * 6], r"cannot hold 1e\+39"),
        (DType.F16, [[70000.0] * 6], "cannot hold 70000"),
        (DType.I8, [[300] * 6], "cannot hold 300"),
        (DType.U8, [[0] * 5 + [-1]], "cannot hold -1"),
        (DType.I64, [[2**63] * 6], f"cannot hold {2**63}"),
        (DType.U64, [[-1] * 6], "cannot hold -1"),
        (DType.I32, [[1.5] * 6], r"got f64; convert it with np\.array\(…, 'int32'\)"),
        (DType.BF16, X.astype(np.float64), r"convert it with \.astype\('float32'\)"),
        (DType.BF16, [[3.4e38] * 6], r"cannot hold 3\.4e\+38"),
        (DType.I4, [[8] * 6], "cannot hold 8"),
        (DType.U2, [[0] * 5 + [-1]], "cannot hold -1"),
        (DType.F8E4M3FN, [[True] * 6], "give its bits as uint8, or an array of ml_dtypes"),
    ],
)
def test_what_does_not_fit_is_refused(dtype: DType, given: Any, said: str) -> None:
    with pytest.raises(ShapeError, match=said) as caught:
        doubled(dtype, ("N", 6)).run({"x": given})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("error", [AttributeError("a\nb"), KeyError("k"), MemoryError()])
def test_an_object_that_gives_no_array_is_refused(error: Exception) -> None:
    class Broken:
        def __array__(self, *_: Any, **__: Any) -> np.ndarray:
            raise error

    with pytest.raises(ShapeError, match=r"cannot be read as an array \(.+\)") as caught:
        doubled(DType.F32, ("N", 6)).run({"x": Broken()})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("dtype", "number"),
    [(DType.I8, "300"), (DType.U8, "-9"), (DType.I64, "1.5"), (DType.U64, "18446744073709551616"),
     (DType.BOOL, "2"), (DType.F16, "70000"), (DType.I32, "nan")],
)  # fmt: skip
def test_numbers_of_a_file_fit_the_input(dtype: DType, number: str, tmp_path: Path) -> None:
    file = tmp_path / "x.csv"
    file.write_text(f"1,{number}\n")
    with pytest.raises(ShapeError, match=r"x\.csv: input x is .*, which cannot hold"):
        numbers_feed(Value("x", dtype, (1, 2)), file)
    file.write_text("1,0\n")
    assert numbers_feed(Value("x", dtype, (1, 2)), file).tolist() == [[1, 0]]


@pytest.mark.parametrize("dtype", [DType.U8, DType.U16, DType.U32, DType.U64, DType.I8, DType.I64])
def test_lists_of_whole_numbers(dtype: DType) -> None:
    info = np.iinfo(dtype.np)
    made = doubled(dtype, ("N", 2)).run({"x": [[int(info.max) // 2, 1]]})["y"]
    assert made.dtype == dtype.np
    assert made.tolist() == [[int(info.max) // 2 * 2, 2]]


def test_a_predictor_stays_in_its_process() -> None:
    one = doubled(DType.F32, ("N", 6))
    for move in (pickle.dumps, copy.deepcopy):
        with pytest.raises(UsageError, match="a Predictor cannot be copied or pickled"):
            move(one)
    assert one.run({"x": X}, taps="y")["y"].shape == X.shape
    numbers: Any = [3]
    with pytest.raises(LiteError, match="no value or layer 3"):
        one.run({"x": X}, taps=numbers)


def bf16_model(folder: Path) -> Path:
    """y = x · −1 in bfloat16: negative numbers are the larger ones of the bits."""
    one = helper.make_tensor("k", TensorProto.BFLOAT16, [1], [-1.0])
    ends = [helper.make_tensor_value_info(n, TensorProto.BFLOAT16, ["N", 6]) for n in "xy"]
    graph = helper.make_graph(
        [helper.make_node("Mul", ["x", "k"], ["y"])], "g", [ends[0]], [ends[1]], [one]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    onnx.save(model, folder / "bf16.onnx")
    return folder / "bf16.onnx"


BITS = X.astype(ml_dtypes.bfloat16)


@pytest.mark.parametrize("given", [BITS, BITS.view(np.uint16), X, X.tolist()],
                         ids=["ml_dtypes", "bits", "float32", "list"])  # fmt: skip
def test_bf16_inputs(given: Any, tmp_path: Path) -> None:
    made = Predictor(bf16_model(tmp_path)).run({"x": given})["y"]
    np.testing.assert_array_equal(made.view(ml_dtypes.bfloat16), -BITS)


@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2"])
def test_inputs_of_8_bits(kind: str) -> None:
    graph = Graph("wider")
    graph.inputs = [Value("x", DType(kind.replace("float8_", "f8")), ("N", 6))]
    graph.outputs = [graph.add("Cast", graph.inputs, {"to": DType.F32}, outputs=["y"]).output]
    infer_types(graph)
    given = X.astype(getattr(ml_dtypes, kind))
    for each in (given, given.view(np.uint8)):
        made = Predictor(graph).run({"x": each})["y"]
        np.testing.assert_array_equal(made, given.astype(np.float32))
    with pytest.raises(ShapeError, match="give its bits as uint8, or an array of ml_dtypes"):
        Predictor(graph).run({"x": X})


def test_bf16_inputs_that_are_made_up_are_numbers(tmp_path: Path) -> None:
    graph = Predictor(bf16_model(tmp_path)).graph
    x = random_feeds(graph, shapes={"x": (500, 6)})["x"].view(ml_dtypes.bfloat16).astype(np.float32)
    assert abs(x.mean()) < 0.1 and 0.9 < x.std() < 1.1


def test_bf16_answers_are_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = bf16_model(tmp_path)
    np.savetxt(tmp_path / "x.csv", X, delimiter=",")
    np.save(tmp_path / "x.npy", X)
    wanted = (-BITS).astype(np.float32)
    for given in ("x.csv", "x.npy"):
        out = tmp_path / "out.npz"
        call = ["run", str(file), "--input", str(tmp_path / given), "--output", str(out)]
        assert main([*call, "--json", "-"]) == 0
        said = json.loads(capsys.readouterr().out)["outputs"]["y"]
        assert (said["min"], said["max"]) == (wanted.min(), wanted.max())
        np.testing.assert_array_equal(np.load(out)["y"], wanted)
    predictor = Predictor(file)
    feeds = {"x": BITS[:1]}
    answer = answer_of(predictor.model, feeds, predictor.run(feeds), list("abcdef"))
    assert answer.text == "abcdef"[int(wanted[0].argmax())]


def test_bf16_is_compared_as_numbers(tmp_path: Path) -> None:
    """One side is twice the other: an error of 1, and no more than the numbers themselves."""
    twice = Predictor(bf16_model(tmp_path)).graph.copy()
    scale = next(v for v in twice.constants())
    assert scale.const is not None
    scale.const = 2 * scale.const
    sides = [Side(Predictor(graph), name) for graph, name in (
        (load(bf16_model(tmp_path)), "once"), (twice, "twice"))]  # fmt: skip
    found = compare(sides[0], sides[1], {"x": BITS.view(np.uint16)})
    largest = np.abs(BITS.astype(np.float32)).max()
    assert found.outputs["y"]["max_abs"] == pytest.approx(largest)


def test_bf16_is_quantized_by_its_numbers() -> None:
    """The error that is told is that of the numbers: a sum that is off by a hundredth of itself."""
    graphs = []
    for factor in (1.0, 1.01):
        graph = Graph("scaled")
        graph.inputs = [Value("x", DType.BF16, (4, 6))]
        wide = graph.add("Cast", graph.inputs, {"to": DType.F32}).output
        scaled = graph.add("Mul", [wide, graph.constant(np.float32(factor), "k")]).output
        end = graph.add("Cast", [scaled], {"to": DType.BF16}, outputs=["y"])
        graph.outputs = [end.output]
        infer_types(graph)
        graphs.append(graph)
    feeds = [{"x": BITS.view(np.uint16)}]
    told = judge(graphs[0], graphs[1], feeds).sqnr_db
    x = BITS.astype(np.float32)
    off = (x * np.float32(1.01)).astype(ml_dtypes.bfloat16).astype(np.float32) - x
    assert told == pytest.approx(10 * np.log10((x**2).sum() / (off**2).sum()), abs=0.1)
