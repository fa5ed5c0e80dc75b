"""The shipped text transformer: what naive integers lose, and that ours do not."""

from __future__ import annotations

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.ir import Graph
from lite_engine.model_file import Model
from lite_engine.quantize import Options, quantize
from lite_workbench.quantizing import FastRun, float_graph, model_from

pytestmark = pytest.mark.cpu
#: Lists that calibrate; the others judge.
CALIBRATING = 24


@pytest.fixture(scope="module")
def held() -> tuple[np.ndarray, np.ndarray]:
    with np.load(lw.shipped("listops_held_back.npz")) as file:
        return file["tokens"], file["labels"]


@pytest.fixture(scope="module")
def model() -> Model:
    return optimize(lw.shipped("listops.onnx"), targets=["x86"])


def accuracy(model: Model, held: tuple[np.ndarray, np.ndarray], count: int | None = None) -> float:
    """In percent, on the lists that do not calibrate."""
    predictor = Predictor(model, threads=1)
    tokens, labels = (part[CALIBRATING:][:count] for part in held)
    answers = [predictor.run({"tokens": row[None]})["answer"].argmax() for row in tokens]
    return 100 * float(np.mean(np.array(answers) == labels))


def integers(model: Model, held: tuple[np.ndarray, np.ndarray], options: Options) -> Model:
    feeds = [{"tokens": row[None]} for row in held[0][:CALIBRATING]]
    graph: Graph = float_graph(model)
    made = quantize(graph, feeds, options, run=FastRun(), force=True).finished()
    return model_from(made.graph, model)


def test_naive_integers_lose_what_scaled_ones_keep(model, held):
    whole = accuracy(model, held)
    assert 70 <= whole <= 95
    naive = Options(method="minmax", rounding="nearest", equalize=False, bias_correction=False)
    assert accuracy(integers(model, held, naive), held, 600) <= whole - 3
    ours = integers(model, held, Options(method="minmax", rounding="sums"))
    assert accuracy(ours, held) >= whole - 0.5


@pytest.mark.hours
def test_the_usual_options_keep_it_too(model, held):
    assert accuracy(integers(model, held, Options()), held) >= accuracy(model, held) - 0.5


def test_its_script_makes_the_lists_that_are_shipped(held):
    """The generator, without the training: tokens and labels of the held-back lists."""
    namespace: dict = {"__file__": "train_listops.py", "__name__": "train_listops"}
    source = lw.shipped("train_listops.py").read_text(encoding="utf-8")
    exec(compile(source, "train_listops.py", "exec"), namespace)
    tokens, values = namespace["lists"](2, 50)
    np.testing.assert_array_equal(tokens, held[0][:50])
    np.testing.assert_array_equal(values, held[1][:50])
