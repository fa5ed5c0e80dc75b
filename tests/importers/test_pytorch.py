"""PyTorch modules: the export is torch's, the reading ours."""

from __future__ import annotations

import numpy as np
import pytest
from lite_engine import load
from lite_engine.errors import BackendUnavailableError, ModelFormatError, UsageError
from lite_engine.importers import pytorch

from tests.importers.golden_runs import run_graph


def test_without_torch_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(BackendUnavailableError, match="pip install torch"):
        pytorch.from_module(object(), ())


def test_other_objects_are_no_modules():
    assert not pytorch.is_module("model.onnx")
    with pytest.raises(ModelFormatError, match="no such file"):
        load("torch.nn.Module")


@pytest.fixture
def torch():
    return pytest.importorskip("torch", reason="torch is not installed; pip install torch")


@pytest.fixture
def module(torch):
    torch.manual_seed(0)
    nn = torch.nn
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, stride=2, padding=1), nn.BatchNorm2d(8), nn.Hardswish(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.5), nn.Linear(8, 5), nn.Softmax(-1),
    )  # fmt: skip


def test_same_answer_as_torch(torch, module):
    x = torch.randn(1, 3, 32, 32)
    graph = load(module, example_inputs=x)
    assert module.training and graph.metadata["format"] == "pytorch"
    (y,) = run_graph(graph, {graph.inputs[0].name: x.numpy()}).values()
    wanted = module.eval()(x).detach().numpy()
    np.testing.assert_allclose(y, wanted, atol=1e-6)


def test_names_follow_forward(torch):
    class Sum(torch.nn.Module):
        def forward(self, left, right):
            return left + right

    graph = load(Sum(), example_inputs=(torch.ones(2), torch.ones(2)), output_names=["total"])
    assert [v.name for v in graph.inputs] == ["left", "right"]
    assert [v.name for v in graph.outputs] == ["total"]


def test_example_inputs_are_needed(module):
    with pytest.raises(UsageError, match="example_inputs"):
        load(module)


def test_what_torch_cannot_export_is_one_line(torch):
    class Odd(torch.nn.Module):
        def forward(self, x):
            raise ValueError("not this way")

    with pytest.raises(ModelFormatError, match="torch cannot export this module: not this way"):
        load(Odd(), example_inputs=torch.ones(2))
