"""The text form: what is printed reads back as the same graph; what is wrong names its line."""

from __future__ import annotations

import string
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lite_engine.errors import LiteError, ModelFormatError
from lite_engine.ir import DType, Graph, Node, Value, from_text, to_text, verify

NAMES = st.text(
    st.sampled_from(string.ascii_letters + string.digits + "./:_-äß /\"'\\(){}[],=#@\n\t"),
    min_size=1,
    max_size=12,
)
DIMS = st.one_of(st.integers(0, 9), st.none(), st.sampled_from(["n", "batch size", "H*2", "h,w"]))
SCALARS = st.one_of(
    st.integers(-(2**63), 2**63 - 1), st.floats(allow_nan=False), NAMES, st.booleans()
)
ATTRS = st.one_of(
    SCALARS,
    st.lists(st.integers(-9, 9), max_size=4),
    st.lists(st.floats(-9, 9), max_size=4),
    st.sampled_from(DType),
    st.binary(max_size=5),
    st.builds(lambda n: np.arange(n, dtype=np.float32).reshape(1, n), st.integers(0, 5)),
)


@st.composite
def graphs(
    draw: Any, depth: int = 1, outer: tuple[Value, ...] = (), taken: set[str] | None = None
) -> Graph:
    """A graph of arbitrary operators, names, types and attributes; every name once."""
    taken = set() if taken is None else taken

    def name() -> str:
        found = f"{draw(NAMES)}{len(taken)}"
        taken.add(found)
        return found

    def typed() -> Value:
        shape = draw(st.one_of(st.none(), st.lists(DIMS, max_size=3).map(tuple)))
        return Value(name(), draw(st.sampled_from(DType)), shape)

    graph = Graph(draw(NAMES))
    graph.inputs = [typed() for _ in range(draw(st.integers(1, 2)))]
    known = [*outer, *graph.inputs]
    for _ in range(draw(st.integers(0, 3))):
        dtype = draw(st.sampled_from([d for d in DType if d is not DType.BF16]))
        size = draw(st.sampled_from([0, 1, 3, 70]))
        known.append(Value(name(), const=np.arange(size).astype(dtype.np)))
    for _ in range(draw(st.integers(1, 4))):
        attrs = draw(st.dictionaries(st.sampled_from("abcdef"), ATTRS, max_size=3))
        if depth and draw(st.booleans()):
            attrs["body"] = draw(graphs(depth - 1, tuple(known), taken))
        inputs = draw(st.lists(st.one_of(st.none(), st.sampled_from(known)), max_size=3))
        outputs = [
            typed() if draw(st.booleans()) else Value(name())
            for _ in range(draw(st.integers(1, 2)))
        ]
        sources = draw(st.lists(NAMES, min_size=1, max_size=2))
        graph.nodes.append(Node("Op", inputs, outputs, attrs, name=name(), sources=sources))
        known += outputs
    graph.outputs = draw(st.lists(st.sampled_from(known), min_size=1, max_size=2, unique_by=id))
    return graph


@settings(max_examples=60, deadline=None, derandomize=True)
@given(graphs())
def test_round_trip(graph: Graph) -> None:
    arrays: list[np.ndarray] = []
    text = to_text(graph, arrays)
    again = from_text(text, arrays)
    more: list[np.ndarray] = []
    assert to_text(again, more) == text
    assert len(more) == len(arrays)
    for a, b in zip(arrays, more, strict=True):
        np.testing.assert_array_equal(a, b)
    assert [n.sources for n in again.nodes] == [n.sources for n in graph.nodes]
    assert [v.shape for v in again.inputs] == [v.shape for v in graph.inputs]


@settings(max_examples=60, deadline=None, derandomize=True)
@given(graphs(depth=0), st.data())
def test_damaged_text_is_refused_or_reads(graph: Graph, data: Any) -> None:
    arrays: list[np.ndarray] = []
    text = to_text(graph, arrays)
    at = data.draw(st.integers(0, len(text) - 1))
    cut = data.draw(st.integers(0, 5))
    damaged = text[:at] + data.draw(st.text(max_size=3)) + text[at + cut :]
    try:
        from_text(damaged, arrays)
    except LiteError as error:
        assert isinstance(error, ModelFormatError)


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        ('graph "g" {\n  "n": y = Relu(x)\n}', 2, "read before"),
        ('graph "g" {\n  input x: f32[2]\n  input x: f32[2]\n}', 3, "twice"),
        ('graph "g" {\n  input x: f33[2]\n}', 2, "f33"),
        ('graph "g" {\n  const w: f32[2] = [1, 2, 3]\n}', 2, "reshape"),
        ('graph "g" {\n  const w: f32[2] = @7\n}', 2, ""),
        ('graph "g" {\n  input x: f32[2]', 2, "}"),
        ("", 1, ""),
    ],
)
def test_errors_name_the_line(text: str, line: int, says: str) -> None:
    with pytest.raises(ModelFormatError, match=f"line {line}.*{says}"):
        from_text(text)


def test_reads_the_documented_form() -> None:
    text = """graph "mobilenet" {
      input x: f32[n,3,8,8]
      const w: f32[1,3,1,1] = [1.0, 2.0, 3.0]
      "conv1": y = Conv(x, w, _) {pads=[0, 0, 0, 0]} from ["conv1", "bn1"]
      output y
    }"""
    graph = from_text(text)
    verify(graph)
    assert graph.nodes[0].inputs[2] is None
    assert graph.nodes[0].sources == ("conv1", "bn1")
    assert graph.inputs[0].shape == ("n", 3, 8, 8)
