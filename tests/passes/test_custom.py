"""Passes of users, and docs/own_operators.md as it stands."""

from __future__ import annotations

import os
import re

import numpy as np
import pytest
from lite_engine import Predictor, extensions, optimize
from lite_engine.errors import LiteError, UsageError
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types
from lite_engine.passes import graph_pass

FENCE = re.compile(r"^```python\n(.*?)^```", re.M | re.S)


@pytest.fixture(scope="module")
def page(root, tmp_path_factory):
    names: dict = {}
    os.chdir(tmp_path_factory.mktemp("page"))
    for body in FENCE.findall((root / "docs/own_operators.md").read_text()):
        exec(body, names)
    os.chdir(root)
    return names


def _times_itself(dtype=DType.F32):
    graph = Graph()
    graph.inputs = [Value("x", dtype, (2, 3))]
    graph.outputs = [graph.add("Mul", [graph.inputs[0]] * 2, name="y").output]
    infer_types(graph)
    return graph


def test_the_pass_of_the_page_rewrites_and_refuses(page):
    model = optimize(_times_itself(), passes=[page["square"]])
    assert [n.op for n in model.graph.nodes] == ["Square"]
    x = np.float32([[1, 2, 3], [4, 5, 6]])
    assert np.array_equal(Predictor(model, "reference").run(x=x)["y"], x * x)
    model = optimize(_times_itself(DType.I32), passes=[page["square"]])
    assert [n.op for n in model.graph.nodes] == ["Mul"]
    assert any(e.reason == "integers stay as they are" for e in model.journal.entries)


def test_an_installed_pass_is_asked_for_by_name(page):
    extensions.register(extensions.PASSES, "acme-square", page["square"])
    try:
        assert [n.op for n in optimize(_times_itself()).graph.nodes] == ["Mul"]
        model = optimize(_times_itself(), passes=["acme-square"])
    finally:
        extensions.unregister(extensions.PASSES, "acme-square")
    assert [n.op for n in model.graph.nodes] == ["Square"]
    with pytest.raises(UsageError, match="there is no pass 'acme-square'"):
        optimize(_times_itself(), passes=["acme-square"])


def test_a_pass_that_raises_or_breaks_the_graph_is_named():
    @graph_pass("acme-broken")
    def broken(graph, journal):
        raise KeyError("gone")

    with pytest.raises(LiteError, match=r"the pass acme-broken raised KeyError\('gone'\)"):
        optimize(_times_itself(), passes=[broken])

    @graph_pass("acme-cutter")
    def cutter(graph, journal):
        graph.outputs = [Value("nobody", DType.F32, (2, 3))]
        return 1

    with pytest.raises(LiteError, match="acme-cutter"):
        optimize(_times_itself(), passes=[cutter])
    with pytest.raises(UsageError, match="is not a pass"):
        optimize(_times_itself(), passes=[42])
