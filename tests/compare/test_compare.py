"""Compare: no false alarm, and every planted fault is named."""

from __future__ import annotations

import json
import math
import re
from types import SimpleNamespace

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.compare import Side, bisect, compare
from lite_engine.compare import _compare as module
from lite_engine.compare.alignment import _left_by, align
from lite_engine.compare.difference import channel_map, difference, histogram
from lite_engine.compare.index_outputs import index_output_of, same_indices
from lite_engine.compare.outputs import output_limit
from lite_engine.compare.rounding import explained
from lite_engine.errors import UsageError
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file import Model
from lite_engine.ops import infer_types
from lite_engine.plan.faults import KINDS
from lite_engine.quantize.guard import THRESHOLD_DB
from lite_engine.runtime import host_target
from lite_workbench.cli import main

from tests.small_models import Builder, attention, class_token, classifier, image

LAYERS = ("stem", "dw", "pw", "wide")


def sides(graph, faults=None) -> tuple[Side, Side]:
    model = optimize(graph)
    return Side(Predictor(model, "reference")), Side(
        Predictor(model, host_target(), threads=1, faults=faults)
    )


@pytest.mark.cpu
@pytest.mark.parametrize("graph", [classifier(), attention()], ids=lambda g: g.name)
def test_no_false_alarm(graph) -> None:
    result = compare(*sides(graph), image(graph))
    assert result.agrees and result.first_divergence is None
    assert "agree" in result.verdict


@pytest.mark.cpu
@pytest.mark.parametrize("kind", [None, "swap_channels"])
def test_shapes_that_are_computed_from_an_open_batch(kind) -> None:
    """What a known batch makes constant is no value of a run: it is fed to nothing and tapped by
    nothing. Layers that are compared are those that run, and a fault is named."""
    model = optimize(class_token())
    feeds = {"x": np.random.default_rng(1).standard_normal((2, 6, 4)).astype(np.float32)}
    faults = {"mix": kind} if kind else None
    a, b = (
        Side(Predictor(model, "reference")),
        Side(Predictor(model, host_target(), threads=1, faults=faults)),
    )
    result = compare(a, b, feeds)
    views = ("Reshape", "Flatten")
    named = [x.name for x in result.layers if x.op not in views or x.name == "flat"]
    assert named == ["with_token", "mix", "flat"]
    assert (result.first_divergence or {}).get("name") == (faults and "mix")


@pytest.mark.cpu
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("layer", LAYERS)
def test_planted_fault_is_named(kind, layer) -> None:
    graph = classifier()
    a, b = sides(graph)
    name = next(n.name for n in b.graph.nodes if layer in n.sources)
    b = Side(Predictor(b.predictor.model, host_target(), threads=1, faults={name: kind}))
    result = compare(a, b, image(graph))
    assert not result.agrees
    assert result.first_divergence["name"] == name
    assert layer in result.first_divergence["sources"]
    assert f"{host_target()} is the one that is wrong" in result.verdict
    wrong = [x.name for x in result.layers if not x.within]
    assert wrong == [name]  # the victims are within their isolated tolerance


@pytest.mark.cpu
def test_the_trusted_side_can_be_the_wrong_one() -> None:
    graph = classifier()
    a, b = sides(graph, {})
    faulty = Side(
        Predictor(a.predictor.model, host_target(), threads=1, faults={"dw": "swap_channels"})
    )
    name = next(n.name for n in b.graph.nodes if "dw" in n.sources)
    faulty.predictor.faults = {name: "swap_channels"}
    result = compare(faulty, b, image(graph))
    assert result.first_divergence["name"] == name
    assert result.first_divergence["wrong_side"].startswith(
        f"{host_target()} is the one that is wrong (error against the NumPy"
    )


def of_nodes(name: str, nodes, outputs: dict[str, tuple[int, ...]]) -> Model:
    """A model of one input (1,2,4,4) and these (operator, inputs, output, attributes) nodes."""
    graph = Graph(name)
    values = {"x": Value("x", DType.F32, (1, 2, 4, 4))}
    graph.inputs = [values["x"]]
    for op, reads, made, attrs in nodes:
        values[made] = graph.add(op, [values[r] for r in reads], attrs, name=f"n_{made}").output
        values[made].name = made
    graph.outputs = [values[n] for n in outputs]
    return optimize(graph)


FEED = {"x": np.random.default_rng(3).standard_normal((1, 2, 4, 4)).astype(np.float32)}


@pytest.mark.parametrize(
    ("nodes", "outputs", "said"),
    [
        ([("Abs", "x", "a", {}), ("Neg", "a", "q", {})], ["q"], None),
        ([("Abs", "x", "a", {}), ("Neg", "a", "p", {}), ("Relu", "a", "q", {})], ["p", "q"],
         "only two on reference has q, 1×2×4×4"),
        ([("Abs", "x", "a", {}), ("GlobalAveragePool", "a", "p", {})], ["p"],
         "only one on reference has p, 1×2×4×4; only two on reference has p, 1×2×1×1"),
    ],
)  # fmt: skip
def test_outputs_without_a_counterpart_do_not_agree(nodes, outputs, said) -> None:
    """One output of another name is the same one; what the other side has not is told."""
    one = of_nodes("one", [("Abs", "x", "a", {}), ("Neg", "a", "p", {})], ["p"])
    a, b = (
        Side(Predictor(m, "reference"), f"{m.name} on reference")
        for m in (one, of_nodes("two", nodes, outputs))
    )
    result = compare(a, b, FEED)
    assert result.agrees == (said is None)
    assert (said or "agree") in result.verdict


def test_an_output_that_other_layers_make() -> None:
    """|x| on both sides, then −|x| or the tanh of it: outputs in order, no layer makes both."""
    one = of_nodes("one", [("Abs", "x", "a", {}), ("Neg", "a", "p", {})], ["p"])
    two = of_nodes("two", [("Abs", "x", "a", {}), ("Tanh", "a", "q", {})], ["q"])
    result = compare(*(Side(Predictor(m, "reference"), m.name) for m in (one, two)), FEED)
    assert not result.agrees and len(result.layers) == 1
    assert "output p differs" in result.verdict and "has no counterpart" in result.verdict


def test_overflow_is_told_and_is_json() -> None:
    """Side B's values are Inf where A's are not: RFC 8259 has no number for that."""
    nodes = [("Exp", "x", "y", {})]
    a = Side(Predictor(of_nodes("m", nodes, ["y"]), "reference"))
    b = Side(Predictor(of_nodes("m", nodes, ["y"]), "reference"), "B")
    whole = b.values
    b.values = lambda feeds, names: {n: np.full_like(x, np.inf) for n, x in
                                     whole(feeds, names).items()}  # fmt: skip
    result = compare(a, b, FEED, isolated=False)
    assert not result.agrees and "NaN or infinite where the other side is not, 32 on B" in (
        result.verdict
    )
    assert result.layers[0].rel_l2 == math.inf
    assert result.layers[0].detail["histogram"]["counts"] == []  # no finite difference
    row = json.loads(result.to_json(), parse_constant=pytest.fail)["layers"][0]
    assert row["rel_l2"] is None and row["nan_candidate"] == 32


def test_layers_after_the_asked_ones_are_not_judged() -> None:
    graph = classifier()
    a, b = sides(graph)
    names = [n.name for n in b.graph.nodes]
    b.predictor.faults = {names[-1]: "swap_channels"}
    assert not compare(a, b, image(graph)).agrees
    with pytest.raises(UsageError, match=f"{names[-1]} come after {names[0]}"):
        compare(a, b, image(graph), until=names[0], layers=[names[-1]])
    early = compare(a, b, image(graph), until=names[0])
    assert early.agrees and len(early.layers) == 1 and not early.outputs
    with pytest.raises(UsageError, match="there is no layer 'nope'"):
        compare(a, b, image(graph), detail=["nope"])


def chain(count: int) -> Graph:
    """x → y₁ = |x| + 1 → … : every layer's value is as large as its input."""
    graph = Graph("chain")
    value = Value("x", DType.F32, (1, 2, 4, 4))
    graph.inputs = [value]
    for i in range(count):
        value = graph.add("Abs" if i % 2 else "Neg", [value], {}, name=f"l{i}").output
    graph.outputs = [value]
    return graph


@pytest.mark.parametrize("guilty", [0, 13, 39])
@pytest.mark.parametrize("values_a_window", [1, 4, 100])
def test_bisect_needs_the_fewest_runs(guilty, values_a_window, monkeypatch) -> None:
    """With k values a run, log(n)/log(k) runs of each side narrow n layers down to k, and one more
    of each shows those; counted at the sides themselves."""
    monkeypatch.setattr(module, "WINDOW_BYTES", values_a_window * 32 * 4)
    model = Model(chain(40))
    a, b = Side(Predictor(model, "reference"), "A"), Side(Predictor(model, "reference"), "B")
    ran = []

    def counted(side: Side, wrong: bool):
        run = side.predictor.run

        def values(feeds, names):
            ran.append(side.label)
            found = run(feeds, taps=[n.output.name for n in side.graph.nodes])
            if wrong:
                for node in side.graph.nodes[guilty:]:
                    found[node.output.name] = found[node.output.name] + 5.0
            return {k: v for k, v in found.items() if k in {*names, *side.output_names}}

        return values

    a.values, b.values = counted(a, False), counted(b, True)
    own, layer = b.isolated, model.graph.nodes[guilty].output.name
    b.isolated = lambda nodes, known: {
        n: x + 5.0 * (n == layer) for n, x in own(nodes, known).items()
    }
    result = bisect(a, b, FEED)
    assert result.first_divergence["name"] == f"l{guilty}"
    rounds = {1: 7, 4: 3, 100: 1}[values_a_window]
    assert ran.count("B") <= rounds and ran.count("A") <= rounds + 1  # who is right: A once more
    alone = 1
    assert result.runs == len(ran) + alone


def test_difference_numbers() -> None:
    a = np.array([[1.0, 2.0], [3.0, 4.0]])
    b = a + np.array([[0, 0], [0.5, 0]])
    d = difference(a, b)
    assert d.max_abs == 0.5 and d.mean_abs == 0.125 and d.worst == (1, 0)
    assert d.worst_baseline == 3.0 and d.worst_candidate == 3.5
    assert d.rel_l2 == pytest.approx(0.5 / np.sqrt(30))
    assert d.sqnr_db == pytest.approx(10 * np.log10(30 / 0.25))
    assert difference(a, a).sqnr_db is None


def test_not_a_number_counts() -> None:
    a = np.array([1.0, np.nan, 3.0, 4.0])
    assert not difference(a, a).broken
    b = np.array([1.0, np.nan, np.inf, 4.0])
    d = difference(a, b)
    assert d.broken and d.nan_candidate == 1 and d.worst == (2,) and d.rel_l2 == math.inf


def test_where_the_difference_lies() -> None:
    a = np.zeros((1, 4, 3, 5))
    b = a.copy()
    b[:, 2, :, 4] = 1
    where = channel_map(a, b)
    assert where["channel"] == 2 and where["per_column"] == [0, 0, 0, 0, 1]
    a[:, :, 0, 0], b[:, :, 0, 0] = np.inf, np.inf  # the same on both sides is no difference
    assert channel_map(a, b)["per_channel"] == [0, 0, 1, 0]
    assert histogram(a, b)["zero"] == 57 and sum(histogram(a, b)["counts"]) == 3


def test_outputs_may_carry_ten_times_what_a_layer_may() -> None:
    """No more, however right each layer is by itself, unless values are rounded to steps."""
    a, b = sides(classifier())

    def limit(*own: float, quantised: bool = False) -> float:
        rows = [SimpleNamespace(isolated={"rel_l2": x}, within=True, quantized=quantised)
                for x in own]  # fmt: skip
        return output_limit(rows, a, b)

    assert limit() == pytest.approx(10 * (1e-4 + 8 * 2**-24))
    assert limit(3e-3, 4e-3) == pytest.approx(10 * 5e-3)
    assert limit(1e-5, quantised=True) == pytest.approx(10 ** (-THRESHOLD_DB / 20))
    assert limit(1.0) == limit(0.0, quantised=True)


def test_a_choice_is_an_index_of_the_scores() -> None:
    b = Builder((2, 5))
    graph = b.graph
    top = graph.add("TopK", [b.x, b.ints(2)], {"axis": -1}, outputs=2, name="top")
    assert index_output_of(top, top.outputs[0].name) is None  # values are numbers as any
    assert index_output_of(top, top.outputs[1].name).scores is b.x
    scores = np.array([[1.0, 2.0, 2.01, 0.0]])
    for other, right in ((2, True), (1, True), (0, False), (4, False), (-1, False)):
        assert same_indices(scores, 1, [[2]], [[other]], 0.01) == right


@pytest.mark.cpu
def test_each_output_of_a_layer_is_named(tmp_path, capsys) -> None:
    """The layer is one, its rows are two."""
    b = Builder((2, 5))
    b.graph.outputs = list(
        b.graph.add("TopK", [b.x, b.ints(2)], {"axis": -1}, outputs=2, name="top").outputs
    )
    infer_types(b.graph)
    path = optimize(b.graph).save(tmp_path / "top.lite")
    assert main(["compare", str(path)]) == 0
    said = capsys.readouterr().out
    second = b.graph.outputs[1].name
    assert re.findall(r"^\d  (.+?)  +TopK ", said, re.M) == ["top", f"top ({second})"]
    assert "agree on all 1 layer;" in said


def test_an_overflow_is_no_rounding() -> None:
    """A layer that half precision cannot hold is not excused by it, whoever computes it."""

    class Half(Side):
        precision = "fp16"

    b = Builder((1, 8))
    graph = b.done(b.add("Mul", b.add("Mul", b.x, b.scalar(0.3), name="fits"), b.scalar(1e6),
                         name="over"))  # fmt: skip
    one, other = (kind(Predictor(Model(graph), "reference")) for kind in (Side, Half))
    pairs, feeds = align(one, other), image(graph)
    found = explained(pairs, pairs, one, other, (feeds, feeds))
    assert 0 < found["fits"].rel_l2 < 2**-10 and found["over"].rel_l2 == 0


def test_half_a_step_of_integers_is_rounding() -> None:
    """What both sides quantize is stored in half precision before: some numbers take the next
    integer."""

    class Half(Side):
        precision = "fp16"

    b = Builder((1, 4096))
    scale, zero = b.scalar(1 / 128), b.graph.constant(np.int8(0))
    y = b.add("Mul", b.x, b.scalar(0.3), name="floats")
    graph = b.done(b.add("QuantizeLinear", y, scale, zero, name="integers"))
    infer_types(graph)
    one, other = (kind(Predictor(Model(graph), "reference")) for kind in (Side, Half))
    pairs, feeds = align(one, other), image(graph)
    found = explained(pairs, pairs, one, other, (feeds, feeds))
    halves = np.float32(0.3) * feeds["x"]
    steps = [np.rint(v.astype(np.float32) * 128) for v in (halves, halves.astype(np.float16))]
    assert (steps[0] != steps[1]).any()
    assert found["integers"].rel_l2 == pytest.approx(
        np.linalg.norm(steps[0] - steps[1]) / np.linalg.norm(steps[0]), rel=0.1
    )


def test_infinity_is_not_not_a_number() -> None:
    a, b = np.array([np.inf, np.nan, 1.0, -np.inf]), np.array([np.nan, np.nan, 1.0, -np.inf])
    d = difference(a, b)
    assert (d.nan_baseline, d.nan_candidate, d.worst) == (1, 1, (0,)) and d.broken
    assert not difference(b, b.copy()).broken


def test_where_in_a_picture() -> None:
    a = np.zeros((1, 3, 4, 5), np.float32)
    b = a.copy()
    b[0, 2, 1, 4] = 7
    found = channel_map(a, b)
    assert found["channel"] == 2 and found["per_channel"] == [0, 0, 7]
    assert found["per_row"] == [0, 7, 0, 0] and found["per_column"] == [0, 0, 0, 0, 7]


def test_what_a_layer_leaves_behind() -> None:
    """Of an activation in two layers the first one leaves the convolution's value."""
    b = Builder((1, 4))
    first, second = (b.add(op, b.x, name=op) for op in ("Relu", "Neg"))
    second.producer.inputs = [first]
    first.producer.sources, second.producer.sources = ("conv", "swish"), ("swish",)
    b.done(second)
    assert [_left_by(v.producer) for v in (first, second)] == ["conv", "swish"]
