"""The oracle of the OpenCL benchmarks: PyTorch's own trouble costs no figure of ours."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest

from benchmarks.opencl import cases, networks


class Keeping:
    """A module that keeps the type and place of its first call, as cached attention biases do."""

    def __init__(self) -> None:
        self.form: tuple[str, str] | None = None
        self.kept: tuple[str, str] | None = None

    def to(self, device: str, dtype: str) -> Keeping:
        self.form = (dtype, device)
        return self

    def __call__(self, x: np.ndarray) -> list[SimpleNamespace]:
        self.kept = self.kept or self.form
        if self.kept != self.form:
            raise RuntimeError("expected scalar type Float but found Half\nand more")
        y = SimpleNamespace(numpy=lambda: 2.0 * x)
        y.double = y.cpu = lambda: y
        return [y]


@pytest.fixture
def torch(monkeypatch) -> SimpleNamespace:
    """As much of PyTorch as the oracle asks for."""
    backends = SimpleNamespace(
        cuda=SimpleNamespace(matmul=SimpleNamespace()), cudnn=SimpleNamespace()
    )
    made = SimpleNamespace(
        float16="float16", float32="float32", float64="float64", backends=backends,
        no_grad=nullcontext, Tensor=type(None),
        cuda=SimpleNamespace(is_available=lambda: True),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "torch", made)
    monkeypatch.setattr(cases, "tensors", lambda feeds, dtype, device: list(feeds.values()))
    return made


X = {"x": np.arange(3.0)}


def test_a_module_that_keeps_values_between_calls(torch) -> None:
    module = Keeping()
    (exact,) = networks._torch(module, X, "float64", "cpu")
    for precision in networks.LIMITS:
        assert networks._torch_error(module, precision, X, {"y": exact}) == {"torch": 0.0}
    assert module.form is None and module.kept is None


def test_what_pytorch_cannot_run_has_no_figure(torch) -> None:
    module = Keeping()
    module.kept = ("float32", "cuda")
    row = networks._torch_error(module, "fp16", X, {"y": 2 * X["x"]})
    assert row == {"torch": None, "torch_failed": "expected scalar type Float but found Half"}
    ours = {"error": 0.01, **row}
    assert not networks.reason({"fp32": {"error": 1e-6, "torch": None}, "fp16": ours})
    ours["error"] = 0.04
    assert networks.reason({"fp32": {"error": 1e-6, "torch": None}, "fp16": ours})
