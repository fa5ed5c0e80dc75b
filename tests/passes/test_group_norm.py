"""Group norms that exporters write as instance norms of groups, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from lite_engine.importers import load
from lite_engine.model_file import optimize
from lite_engine.runtime import Predictor
from onnx import TensorProto, helper, numpy_helper

onnxruntime = pytest.importorskip("onnxruntime", reason="pip install onnxruntime")

RNG = np.random.default_rng(7)
#: Shape, groups, what is in the way.
CASES = {
    "image": ((2, 12, 7, 6), 4, ""),
    "sequence": ((1, 8, 33), 1, ""),
    "volume": ((1, 8, 3, 4, 5), 2, ""),
    "each channel": ((2, 6, 5, 5), 6, ""),
    "without an affine": ((1, 8, 5, 5), 2, "affine"),
    "scales of the groups": ((1, 8, 5, 5), 2, "own"),
}
KEPT = {"another split": ((2, 8, 4, 4), (4, 4, -1)), "rows": ((2, 8, 4, 4), (2, 16, -1))}


def model(shape, to, groups, case=""):
    channels = (shape[1], *[1] * (len(shape) - 2))
    ones, zeros = np.ones(groups, np.float32), np.zeros(groups, np.float32)
    if case == "own":
        ones, zeros = RNG.uniform(0.5, 2, (2, groups)).astype(np.float32)
    constants = {
        "to": np.array(to, np.int64), "back": np.array(shape, np.int64), "s": ones, "b": zeros,
        "gamma": RNG.uniform(0.5, 2, channels).astype(np.float32),
        "beta": RNG.standard_normal(channels).astype(np.float32),
    }  # fmt: skip
    nodes = [
        helper.make_node("Reshape", ["x", "to"], ["g"]),
        helper.make_node("InstanceNormalization", ["g", "s", "b"], ["n"], epsilon=1e-3),
        helper.make_node("Reshape", ["n", "back"], ["y" if case == "affine" else "r"]),
    ]
    if case != "affine":
        nodes += [
            helper.make_node("Mul", ["r", "gamma"], ["m"]),
            helper.make_node("Add", ["m", "beta"], ["y"]),
        ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)
    values = [numpy_helper.from_array(v, k) for k, v in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], [y], values)
    opset = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opset, ir_version=9).SerializeToString()


def check(data, shape, tmp_path, backend):
    path = tmp_path / "m.onnx"
    path.write_bytes(data)
    x = RNG.standard_normal(shape).astype(np.float32) * 3 + 1
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {"x": x})
    made = Predictor(optimize(load(path), targets=[backend]), backend)
    (got,) = made.run({"x": x}).values()
    np.testing.assert_allclose(got, want, rtol=0, atol=2e-5)
    return made


@pytest.mark.parametrize("case", CASES)
def test_one_operator(case, tmp_path):
    shape, groups, missing = CASES[case]
    made = check(model(shape, (0, groups, -1), groups, missing), shape, tmp_path, "x86")
    assert [s.op for s in made.plan().steps if s.op != "Relayout"] == ["GroupNormalization"]


@pytest.mark.parametrize("case", KEPT)
def test_other_groups_stay(case, tmp_path):
    """Statistics of part of a channel, or of several samples."""
    shape, to = KEPT[case]
    made = check(model(shape, to, to[1]), shape, tmp_path, "x86")
    assert "GroupNormalization" not in [s.op for s in made.plan().steps]


@pytest.mark.opencl
@pytest.mark.parametrize("case", ["image", "sequence", "scales of the groups"])
def test_one_operator_on_opencl(case, tmp_path):
    shape, groups, missing = CASES[case]
    made = check(model(shape, (0, groups, -1), groups, missing), shape, tmp_path, "opencl")
    steps = [s for s in made.plan().steps if s.op not in ("Relayout", "Copy")]
    assert [(s.op, s.backend) for s in steps] == [("GroupNormalization", "opencl")]


@pytest.mark.opencl
@pytest.mark.parametrize("backend", ["x86", "opencl"])
def test_an_activation_behind_it(backend, tmp_path):
    """It is part of the same step, behind the scale and bias of the channels too."""
    shape, groups, missing = CASES["image"]
    data = model(shape, (0, groups, -1), groups, missing)
    made = onnx.load_from_string(data)
    y = made.graph.output[0].name
    made.graph.node.append(helper.make_node("LeakyRelu", [y], ["z"], alpha=0.2))
    made.graph.output[0].name = "z"
    predictor = check(made.SerializeToString(), shape, tmp_path, backend)
    steps = [s for s in predictor.plan().steps if s.op not in ("Relayout", "Copy")]
    assert [(s.op, s.attrs["activation"]) for s in steps] == [("GroupNormalization", "LeakyRelu")]
