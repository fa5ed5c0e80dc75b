"""Masks of infinities before a Softmax, as decoders have them: what they reach has no range and
stays in floats, the rest is quantized. The oracle is onnxruntime's float network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.errors import CalibrationError
from lite_engine.importers import load
from lite_engine.ir import from_text
from lite_engine.quantize import integer_nodes, quantize
from lite_engine.quantize.select import infinite_values

onnx = pytest.importorskip("onnx", reason="pip install onnx")
ort = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")
from onnx import TensorProto, helper, numpy_helper  # noqa: E402

INF = np.float32(np.inf)
SIZE, TOKENS = 32, 6


def _later() -> np.ndarray:
    """(1, 6, 6), true where a token would look at a later one."""
    return np.triu(np.ones((1, TOKENS, TOKENS), bool), 1)


def _where() -> tuple[list, dict]:
    return [helper.make_node("Where", ["later", "inf", "scores"], ["masked"])], {
        "later": _later(), "inf": -INF}  # fmt: skip


def _added() -> tuple[list, dict]:
    return [helper.make_node("Add", ["scores", "mask"], ["masked"])], {
        "mask": np.where(_later(), -INF, np.float32(0))}  # fmt: skip


def _filled() -> tuple[list, dict]:
    """As torch.full(…).triu(1) is written: the mask is computed."""
    nodes = [
        helper.make_node("Shape", ["scores"], ["sizes"]),
        helper.make_node("ConstantOfShape", ["sizes"], ["full"],
                         value=numpy_helper.from_array(np.array([-INF]))),
        helper.make_node("Trilu", ["full", "one"], ["mask"]),
        helper.make_node("Add", ["scores", "mask"], ["masked"]),
    ]  # fmt: skip
    return nodes, {"one": np.array(1)}


def _network(masking: tuple[list, dict], path: Path) -> Path:
    """x (n, 6, 32) → attention whose scores are masked → two products → y (n, 6, 32)."""
    rng = np.random.default_rng(3)
    nodes, constants = masking
    for name in ("q", "k", "v", "o", "p"):
        constants[f"w{name}"] = rng.standard_normal((SIZE, SIZE), np.float32) / SIZE**0.5
    node = helper.make_node
    before = [node("MatMul", ["x", f"w{name}"], [name]) for name in "qkv"] + [
        node("Transpose", ["k"], ["kt"], perm=[0, 2, 1]), node("MatMul", ["q", "kt"], ["scores"])
    ]  # fmt: skip
    behind = [
        node("Softmax", ["masked"], ["shares"], axis=-1), node("MatMul", ["shares", "v"], ["a"]),
        node("MatMul", ["a", "wo"], ["b"]), node("Clip", ["b", "", "bound"], ["c"]),
        node("MatMul", ["c", "wp"], ["y"]),
    ]  # fmt: skip
    constants["bound"] = INF  # of a Clip: it reaches no result
    values = [numpy_helper.from_array(np.asarray(x), name) for name, x in constants.items()]
    x, y = (
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", TOKENS, SIZE]) for name in "xy"
    )
    graph = helper.make_graph([*before, *nodes, *behind], "g", [x], [y], values)
    opsets = [helper.make_opsetid("", 17)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def _samples() -> list[dict[str, np.ndarray]]:
    rng = np.random.default_rng(4)
    return [{"x": rng.standard_normal((1, TOKENS, SIZE), np.float32)} for _ in range(6)]


def _unmasked() -> tuple[list, dict]:
    return [helper.make_node("Identity", ["scores"], ["masked"])], {}


def _error(path: Path) -> float:
    """Relative L2 error of the quantized network's answers to its samples."""
    made = quantize(load(path), _samples())
    chosen, why = integer_nodes(made.parent)
    heavy = [n.name for n in made.parent.nodes if n.op in ("MatMul", "Gemm") and n.name in chosen]
    assert len(heavy) >= 5 and why.keys().isdisjoint(heavy)
    session = ort.InferenceSession(path, providers=["CPUExecutionProvider"])
    wanted = np.stack([session.run(None, feed)[0] for feed in _samples()])
    predictor = Predictor(made.graph, "reference")
    found = np.stack([predictor.run(feed)["y"] for feed in _samples()])
    return float(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize("masking", [_where, _added, _filled])
def test_what_is_masked_stays_in_floats(masking, tmp_path: Path) -> None:
    """The products are in integers, and the answers as close as those without a mask."""
    without = _error(_network(_unmasked(), tmp_path / "n.onnx"))
    assert 0 < _error(_network(masking(), tmp_path / "m.onnx")) < 1.5 * without < 0.1


def test_infinities_of_the_input_are_told(tmp_path: Path) -> None:
    """The model does not make them, so that the samples may be wrong."""
    path = _network(_where(), tmp_path / "m.onnx")
    samples = _samples()
    samples[1]["x"][0, 0, 0] = INF
    with pytest.raises(CalibrationError, match=r"^NaN or infinity in x \(input\)"):
        quantize(load(path), samples)


def test_a_bound_is_no_mask() -> None:
    """What it bounds is finite; what moves or adds to a mask is not, up to the Softmax."""
    graph = from_text("""graph "g" {
input x: f32[1,4]
const inf: f32[] = [Infinity]
const low: f32[] = [-Infinity]
const later: bool[1,4] = [false, false, true, true]
const sizes: i64[2] = [2, 2]
"bound": bound = Min(x, inf)
"where": where = Where(later, low, bound)
"moved": moved = Reshape(where, sizes)
"added": added = Add(moved, moved)
"shares": shares = Softmax(added)
"behind": behind = Relu(shares)
output behind
}""")
    endless = infinite_values(graph)
    names = {v.name for v in graph.values() if id(v) in endless}
    assert names == {"where", "moved", "added"}
