"""docs/backends.md, step by step: its files become an installed package that runs a network."""

from __future__ import annotations

import subprocess
import sys

import pytest

from .pages import backend_of_the_page

_USE = """
import numpy as np
from lite_engine import Predictor
from lite_engine.doctor import examine
from lite_engine.ir import DType, Graph, Value
from lite_engine.ops import infer_types

graph = Graph()
graph.inputs = [Value("x", DType.F32, (2, 5))]
half = graph.constant(np.full(5, 0.5, np.float32))
a = graph.add("Mul", [graph.inputs[0], half], name="half").output
b = graph.add("Softmax", [a], name="softmax").output
graph.outputs = [graph.add("Mul", [b, half], name="y").output]
infer_types(graph)
x = np.arange(10, dtype=np.float32).reshape(2, 5)
predictor = Predictor(graph, "acme", overrides={"half": "acme", "y": "acme"})
got = predictor.run(x=x)["y"]
e = np.exp(x / 2 - x.max(1, keepdims=True) / 2)
np.testing.assert_allclose(got, e / e.sum(1, keepdims=True) / 2, rtol=1e-6)
print({s.name: s.backend for s in predictor.plan().steps}, examine().backends["acme"])
"""


@pytest.mark.cpu
@pytest.mark.slow
def test_the_page_makes_a_backend(root, tmp_path):
    source, site = tmp_path / "acme", tmp_path / "site"
    backend_of_the_page(root, source)
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation",
           "--no-index", "--target", str(site), str(source)]  # fmt: skip
    subprocess.run(pip, check=True, capture_output=True)
    code = f"import sys; sys.path[:0] = {[str(site), *sys.path]!r}\n{_USE}"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "{'half': 'acme', 'softmax': 'cpu', 'y': 'acme'} True"
