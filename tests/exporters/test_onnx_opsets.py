"""Older opsets: what the exporter knows of them is what ONNX's own schemas say."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
import onnxruntime
import pytest
from lite_engine.errors import UsageError
from lite_engine.exporters.onnx import _forms, _lower, write_bytes
from lite_engine.importers import onnx as importer
from lite_engine.ir import DType
from lite_engine.ops import find_op
from onnx import TensorProto, defs, helper

OPSETS = range(_forms.OLDEST, defs.onnx_opset_version() + 1)
OPTIONAL = defs.OpSchema.FormalParameterOption.Optional


def schemas() -> Iterator[tuple[str, list[defs.OpSchema]]]:
    """Operators of ours and their schemas, oldest first."""
    found: dict[str, list[defs.OpSchema]] = {}
    for schema in defs.get_all_schemas_with_history():
        if schema.domain == "" and find_op(schema.name) is not None:
            found.setdefault(schema.name, []).append(schema)
    for name, versions in sorted(found.items()):
        yield name, sorted(versions, key=lambda s: s.since_version)


def lowered(name: str, opset: int) -> bool:
    return any(opset < below for below, _ in _lower._LOWERINGS.get(name, ()))


def test_operators_are_written_from_the_opset_on_that_has_them() -> None:
    early = [
        (name, opset)
        for name, versions in schemas()
        for opset in OPSETS
        if opset < versions[0].since_version and not lowered(name, opset)
        if _forms._OPERATORS.get(name, _forms.OLDEST) <= opset
    ]
    assert early == []


def test_attributes_and_inputs_are_written_from_the_opset_on_that_has_them() -> None:
    early = []
    for name, versions in schemas():
        op, newest = find_op(name), versions[-1]
        assert op is not None
        for opset in OPSETS:
            known = [s for s in versions if s.since_version <= opset]
            if not known or lowered(name, opset) or _forms._OPERATORS.get(name, 0) > opset:
                continue
            parts = [
                a for a in newest.attributes if a in op.attrs and a not in known[-1].attributes
            ]
            inputs = [i for i in newest.inputs[len(known[-1].inputs) :] if i.option == OPTIONAL]
            parts += [i.name for i in inputs]
            early += [(name, p, opset) for p in parts if _forms._PARTS.get((name, p), 0) <= opset]
            early += [
                (name, new.name, opset)
                for new, old in zip(newest.inputs, known[-1].inputs, strict=False)
                if new.option == OPTIONAL != old.option and not name.startswith("Optional")
            ]
    assert early == []


X = np.random.default_rng(5).standard_normal((1, 2, 5, 6)).astype(np.float32)


@pytest.mark.parametrize("opset", [11, 12, 13, 19])
@pytest.mark.parametrize(
    ("inputs", "attrs"),
    [
        ({"scales": np.float32([1, 1, 2, 1.5])}, {"mode": "nearest"}),
        ({"sizes": np.array([1, 2, 7, 3])}, {"mode": "linear"}),
        ({"scales": np.float32([1, 1, 0.6, 2])}, {"mode": "cubic", "cubic_coeff_a": -0.5}),
        (
            {"roi": np.float32([0, 0, 0.1, 0.2, 1, 1, 0.8, 0.9]), "sizes": np.array([1, 2, 4, 4])},
            {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize"},
        ),
    ],
    ids=["scales", "sizes", "cubic", "crop"],
)
def test_resize(inputs: dict, attrs: dict, opset: int) -> None:
    names = ["x", *(n if n in inputs else "" for n in ("roi", "scales", "sizes"))]
    while not names[-1]:
        names.pop()
    f32 = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [helper.make_node("Resize", names, ["y"], **attrs)], "g",
        [helper.make_tensor_value_info("x", f32, X.shape)],
        [helper.make_tensor_value_info("y", f32, None)],
        [onnx.numpy_helper.from_array(a, n) for n, a in inputs.items()],
    )  # fmt: skip
    opsets = [helper.make_opsetid("", 13)]
    data = helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()
    written = write_bytes(importer.read_bytes(data), opset=opset)
    onnx.checker.check_model(onnx.load_from_string(written))
    wanted, got = (onnxruntime.InferenceSession(m).run(None, {"x": X})[0] for m in (data, written))
    np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-6)


def _elements(schema: defs.OpSchema, index: int) -> set[str]:
    """Names of the element types that an input may have, as `tensor(int8)`."""
    if index >= len(schema.inputs):
        return set()
    named = schema.inputs[index].type_str
    sets = [c.allowed_type_strs for c in schema.type_constraints if c.type_param_str == named]
    return set(sets[0]) if sets else {named}


#: ONNX's names of our element types.
TYPES = {
    "tensor(float16)": DType.F16, "tensor(bfloat16)": DType.BF16, "tensor(double)": DType.F64,
    "tensor(int8)": DType.I8, "tensor(uint8)": DType.U8, "tensor(int16)": DType.I16,
    "tensor(uint16)": DType.U16, "tensor(int32)": DType.I32, "tensor(int64)": DType.I64,
    "tensor(bool)": DType.BOOL,
}  # fmt: skip


def test_element_types_are_written_from_the_opset_on_that_has_them() -> None:
    """Of the first input and of others of its type, whose schema is what ONNX publishes."""
    early = []
    for name, versions in schemas():
        for text, dtype in TYPES.items():
            if not versions[-1].inputs or text not in _elements(versions[-1], 0):
                continue
            first = min(s.since_version for s in versions if text in _elements(s, 0))
            said = max(_forms.element_opset(name, dtype), _forms._OPERATORS.get(name, 0), 11)
            if said < first and not name.startswith("Optional"):  # of tensors, not of optionals
                early.append((name, text, first, said))
    assert early == []


@pytest.mark.parametrize(
    ("op", "dtype", "opset", "first"),
    [
        ("Add", TensorProto.UINT8, 13, 14),
        ("Relu", TensorProto.INT32, 13, 14),
        ("Max", TensorProto.INT64, 11, 12),
        ("Sin", TensorProto.BFLOAT16, 17, 22),
        ("ReduceMax", TensorProto.BOOL, 17, 20),  # in an older form, with its axes as attribute
    ],
)
def test_an_opset_without_the_element_type_is_refused(
    op: str, dtype: int, opset: int, first: int
) -> None:
    names = ["x", "x"] if op in ("Add", "Max") else ["x"]
    node = helper.make_node(op, names, ["y"])
    info = helper.make_tensor_value_info("x", dtype, [2])
    out = helper.make_tensor_value_info("y", dtype, [1] if op == "ReduceMax" else [2])
    made = helper.make_graph([node], "g", [info], [out])
    given = helper.make_model(made, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    graph = importer.read_bytes(given.SerializeToString())
    with pytest.raises(UsageError, match=f"{op} needs opset {first}, not {opset}"):
        write_bytes(graph, opset=opset)
    for asked in (None, first):
        written = onnx.load_from_string(write_bytes(graph, opset=asked))
        onnx.checker.check_model(written, full_check=True)
