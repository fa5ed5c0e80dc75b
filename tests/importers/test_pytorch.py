"""PyTorch modules: the export is torch's, the reading ours."""

from __future__ import annotations

import zipfile

import numpy as np
import pytest
from lite_engine import load
from lite_engine.errors import BackendUnavailableError, ModelFormatError, UsageError
from lite_engine.importers import format_of, pytorch

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


EXPORTERS = pytest.mark.parametrize("exporter", pytorch.EXPORTERS)


@pytest.fixture
def onnxscript(torch):
    return pytest.importorskip("onnxscript", reason="onnxscript is not installed")


@EXPORTERS
def test_same_answer_as_torch(torch, module, exporter):
    if exporter == "dynamo":
        pytest.importorskip("onnxscript", reason="onnxscript is not installed")
    x = torch.randn(1, 3, 32, 32)
    graph = load(module, x, exporter=exporter)
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


@EXPORTERS
def test_both_exporters_of_a_transformer(torch, onnxscript, exporter):
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    module = torch.nn.Sequential(torch.nn.Linear(8, 16), layer, torch.nn.LSTM(16, 6)).eval()
    x = torch.randn(2, 5, 8)
    graph = load(module, (x,), exporter=exporter)
    got = list(run_graph(graph, {graph.inputs[0].name: x.numpy()}).values())
    y, (h, c) = module(x)
    for ours, theirs in zip(got, (y, h, c), strict=True):
        np.testing.assert_allclose(ours, theirs.detach().numpy(), atol=1e-5)


def test_programs_keep_their_dynamic_sizes(torch, onnxscript, module, tmp_path):
    x = torch.randn(2, 3, 32, 32)
    sizes = ({0: torch.export.Dim("batch")},)
    program = torch.export.export(module.eval(), (x,), dynamic_shapes=sizes)
    torch.export.save(program, tmp_path / "net.pt2")
    for given in (program, tmp_path / "net.pt2", tmp_path / "net"):
        graph = load(given)
        assert graph.metadata["format"] == "pytorch"
        batch, *rest = graph.inputs[0].shape
        assert isinstance(batch, str) and rest == [3, 32, 32]
        for n in (1, 7):
            x = torch.randn(n, 3, 32, 32)
            (y,) = run_graph(graph, {graph.inputs[0].name: x.numpy()}).values()
            np.testing.assert_allclose(y, module(x).detach().numpy(), atol=1e-6)
    graph = load(module, x, dynamic_shapes=sizes)
    assert isinstance(graph.inputs[0].shape[0], str)


def test_scripted_modules_have_one_exporter(torch, module):
    x = torch.randn(1, 3, 32, 32)
    graph = load(torch.jit.trace(module.eval(), x), x)
    (y,) = run_graph(graph, {graph.inputs[0].name: x.numpy()}).values()
    np.testing.assert_allclose(y, module(x).detach().numpy(), atol=1e-6)


def test_wrong_options_are_told(torch, module, tmp_path):
    x = torch.ones(1, 3, 32, 32)
    with pytest.raises(UsageError, match="exporter 'jit' is not one of dynamo, torchscript"):
        load(module, x, exporter="jit")
    with pytest.raises(UsageError, match="fixed sizes"):
        load(module, x, exporter="torchscript", dynamic_shapes=({0: "n"},))
    torch.save(module.state_dict(), tmp_path / "weights.pt")
    with pytest.raises(ModelFormatError, match=r"save it with torch\.export\.save"):
        load(tmp_path / "weights.pt")


def program_file(path):
    """The outside of a `.pt2` file."""
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("net/archive_format", "pt2")
        archive.writestr("net/models/model.json", "{}")
    return path


def test_a_program_without_torch_is_one_line(tmp_path, monkeypatch):
    path = program_file(tmp_path / "net.pt2")
    assert format_of(path) == "pytorch"
    monkeypatch.setitem(__import__("sys").modules, "torch", None)
    with pytest.raises(BackendUnavailableError, match="pip install torch"):
        load(path)


def test_another_name_is_no_program(tmp_path):
    """torch unpickles what is in it, so nothing but a `.pt2` file leads there."""
    path = program_file(tmp_path / "net.onnx")
    with pytest.raises(ModelFormatError, match=r"net\.onnx"):
        load(path)


def test_an_archive_of_a_later_version(tmp_path):
    path = program_file(tmp_path / "net.pt2")
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\1\2") + 6] = 255  # the version that is needed to read it
    path.write_bytes(data)
    with pytest.raises(ModelFormatError, match=r"net\.pt2"):
        load(path)


def test_damaged_programs(torch, tmp_path):
    with pytest.raises(ModelFormatError, match="torch cannot read this file"):
        load(program_file(tmp_path / "net.pt2"))
    (tmp_path / "cut.pt2").write_bytes((tmp_path / "net.pt2").read_bytes()[:60])
    with pytest.raises(ModelFormatError, match="a PyTorch file"):
        load(tmp_path / "cut.pt2")


def test_examples_are_for_modules(tmp_path):
    path = program_file(tmp_path / "net.pt2")
    with pytest.raises(UsageError, match="example inputs are for a PyTorch module"):
        load(path, np.ones(3))
