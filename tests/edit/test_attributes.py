"""Patterns that look at attributes, and replacements that get them, against onnxruntime."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import edit, write_onnx
from lite_engine.errors import UsageError
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types
from lite_engine.passes import A, P
from lite_engine.passes._core import match
from lite_workbench.cli import main

from tests.edit.test_edit import run

pytest.importorskip("onnxruntime")
X = np.linspace(-3, 3, 2 * 3 * 8 * 8, dtype=np.float32).reshape(2, 3, 8, 8)


def leaky(*alphas: float | None) -> Graph:
    """A chain of LeakyRelu; None: with the operator's own alpha."""
    graph = Graph("leaky")
    graph.inputs = [Value("x", DType.F32, X.shape)]
    x = graph.inputs[0]
    for i, alpha in enumerate(alphas):
        attrs = {} if alpha is None else {"alpha": float(np.float32(alpha))}
        x = graph.add("LeakyRelu", [x], attrs, name=f"n{i}").output
    graph.outputs = [x]
    infer_types(graph)
    return graph


def model(*layers: tuple[str, list[str], dict], inputs=("x",), shapes=None) -> Graph:
    """Layers (operator, names of inputs, attributes), each of which gives `yI`."""
    graph = Graph("by")
    shapes = shapes or {}
    graph.inputs = [Value(n, DType.F32, shapes.get(n, ("n", "c", "h", "w"))) for n in inputs]
    known = {v.name: v for v in graph.inputs}
    for i, (op, names, attrs) in enumerate(layers):
        made = graph.add(op, [known[n] for n in names], attrs, outputs=[f"y{i}"])
        known[f"y{i}"] = made.output
    graph.outputs = [made.output]
    infer_types(graph)
    return graph


SLOPE_IS_AN_INPUT = model(
    ("Mul", ["x", "slope"], {}), ("Max", ["x", "y0"], {}),
    inputs=("x", "slope"), shapes={"slope": (1,)},
)  # fmt: skip


@pytest.mark.parametrize(
    ("condition", "places"),
    [
        ("alpha=0.1", ["n0"]),
        ("alpha!=0.1", ["n1", "n2"]),
        ("alpha=0.01", ["n1"]),
        ("alpha<0.2", ["n0", "n1"]),
        ("alpha>=0.1, alpha<=0.2", ["n0"]),
        ("alpha>1", []),
    ],
)
def test_a_place_is_chosen_by_the_value_of_an_attribute(condition, places):
    graph = leaky(0.1, None, 0.3)
    wanted = run(graph, {"x": X})
    by = model(("Relu", ["x"], {}))
    made, count = edit.replace_matches(graph, edit.pattern(f"LeakyRelu[{condition}](x)"), by)
    assert count == len(places)
    assert {n.name for n in graph.nodes} - {n.name for n in made.nodes} == set(places)
    if not places:
        np.testing.assert_array_equal(run(made, {"x": X}).popitem()[1], wanted.popitem()[1])


@pytest.mark.parametrize(
    "text", ["LeakyRelu[alpha:slope](x)", "LeakyRelu[alpha:slope, alpha<0.5](x)"]
)
def test_an_attribute_becomes_an_input_of_the_replacement(text):
    """max(x, αx), each layer with its own α, the one by default too."""
    graph = leaky(0.1, None, 0.3)
    made, count = edit.replace_matches(graph, edit.pattern(text), SLOPE_IS_AN_INPUT)
    assert count == 3 and {n.op for n in made.nodes} == {"Mul", "Max"}
    (got,), (wanted,) = (run(g, {"x": X}).values() for g in (made, graph))
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def pooled(op: str, **attrs) -> Graph:
    graph = Graph("pool")
    graph.inputs = [Value("x", DType.F32, X.shape)]
    graph.outputs = [graph.add(op, graph.inputs, attrs, name="pool").output]
    infer_types(graph)
    return graph


@pytest.mark.parametrize("strides", [None, [2, 2], [1, 2]])
def test_attributes_of_the_same_name_are_carried_over(strides):
    """An average pool where a maximum was, of the same window and steps."""
    attrs = {
        "kernel_shape": [3, 2],
        "pads": [1, 0, 1, 1],
        **({"strides": strides} if strides else {}),
    }
    graph = pooled("MaxPool", **attrs)
    by = model(("AveragePool", ["x"], {"kernel_shape": [2, 2], "count_include_pad": 1}))
    pattern = edit.pattern("MaxPool[kernel_shape, pads, strides](x)")
    made, count = edit.replace_matches(graph, pattern, by)
    assert count == 1
    (got,) = run(made, {"x": X}).values()
    (wanted,) = run(pooled("AveragePool", **attrs, count_include_pad=1), {"x": X}).values()
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("condition", "fits"),
    [
        ("kernel_shape=3x2", True), ("kernel_shape=3", False), ("kernel_shape>1", True),
        ("kernel_shape!=3x3", True), ("strides=1", True), ("strides=1x1", True),
        ("strides!=1", False), ("strides=2", False), ("pads=0", True), ("auto_pad=NOTSET", True),
        ("auto_pad!=NOTSET", False), ("ceil_mode=0", True), ("ceil_mode>0", False),
    ],
)  # fmt: skip
def test_lists_words_and_what_is_left_out(condition, fits):
    graph = pooled("MaxPool", kernel_shape=[3, 2])
    pattern = edit.pattern(f"MaxPool[{condition}](x)")
    assert bool(list(match(pattern, graph.nodes[0]))) == fits


def test_patterns_in_python_take_values_predicates_and_words():
    graph = leaky(0.1, 0.2, 0.1)
    by = model(("Relu", ["x"], {}))
    for wanted, count in ((0.1, 2), (lambda a: a > 0.15, 1), (lambda a: False, 0)):
        pattern = P("LeakyRelu", "x", attrs={"alpha": wanted})
        assert edit.replace_matches(graph, pattern, by)[1] == count
    twice = P("LeakyRelu", P("LeakyRelu", "x", attrs={"alpha": A("a")}), attrs={"alpha": A("a")})
    by = model(("Mul", ["x", "a"], {}), inputs=("x", "a"), shapes={"a": ()})
    assert edit.replace_matches(graph, twice, by)[1] == 0
    assert edit.replace_matches(leaky(0.1, 0.1), twice, by)[1] == 1
    with pytest.raises(ValueError, match="Relu has no attribute 'alpha' \\(it has: none\\)"):
        P("Relu", "x", attrs={"alpha": 1})
    with pytest.raises(ValueError, match="cannot be called 'nodes'"):
        P("LeakyRelu", "x", attrs={"alpha": A("nodes")})


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("LeakyRelu[slope=1](x)", "LeakyRelu has no attribute 'slope'"),
        ("LeakyRelu[alpha=](x)", "cannot read the pattern"),
        ("LeakyRelu[alpha=0.1(x)", "cannot read the pattern"),
        ("LeakyRelu[](x)", "cannot read the pattern"),
        ("LeakyRelu[alpha]", "ends too early"),
        ("LeakyRelu[alpha<steep](x)", "cannot read the pattern .* at 'steep"),
        ("x[alpha=1]", "is not a known operator"),
    ],
)
def test_what_a_pattern_cannot_say_is_named(text, reason):
    with pytest.raises(UsageError, match=reason):
        edit.pattern(text)


def test_an_attribute_that_the_replacement_has_no_place_for_is_refused():
    by = model(("Relu", ["x"], {}))
    with pytest.raises(UsageError, match="neither an input nor an attribute 'alpha'"):
        edit.replace_matches(leaky(0.1), edit.pattern("LeakyRelu[alpha](x)"), by)
    by = model(("PRelu", ["x", "alpha"], {}), inputs=("x", "alpha"), shapes={"alpha": (3, 1, 1)})
    with pytest.raises(UsageError, match=r"alpha.* is f32"):
        edit.replace_matches(leaky(0.1), edit.pattern("LeakyRelu[alpha](x)"), by)


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_onnx(leaky(0.1, 0.3), "m.onnx")
    write_onnx(SLOPE_IS_AN_INPUT, "by.onnx")
    change = ["--replace-pattern", "LeakyRelu[alpha:slope, alpha<0.2](x)=by.onnx"]
    assert main(["edit", "m.onnx", "-o", "o.onnx", *change]) == 0
    assert "(1 place)" in capsys.readouterr().out
    change = ["--replace-pattern", "LeakyRelu[alpha=7](x)=by.onnx"]
    assert main(["edit", "m.onnx", "-o", "o.onnx", *change]) == 2
    assert "no layers match LeakyRelu[alpha=7](x)" in capsys.readouterr().err
