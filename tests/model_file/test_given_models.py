"""What `load`, `optimize`, `Predictor` and `Session` take for a model, and say of others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from lite_engine import Predictor, load, optimize
from lite_engine.errors import LiteError, ShapeError, UsageError
from lite_workbench import Session

from tests.small_models import classifier


class Elsewhere(os.PathLike):
    """A path of another package."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __fspath__(self) -> str:
        return str(self.path)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    return optimize(classifier()).save(tmp_path / "m.lite")


@pytest.mark.parametrize("given", [None, 3, b"bytes", {"graph": 1}])
@pytest.mark.parametrize("open_it", [load, optimize, Predictor, Session])
def test_what_is_no_model(open_it, given) -> None:
    kind = type(given).__name__
    with pytest.raises(UsageError, match=f"^expected the path of a model, found {kind}; write it"):
        open_it(given)


@pytest.mark.parametrize("open_it", [lambda p: Predictor(p, "reference"), Session])
def test_a_path_of_another_package(open_it, saved: Path) -> None:
    """Of a .lite file, which `load` does not take."""
    open_it(Elsewhere(saved))


@pytest.mark.parametrize(
    ("shapes", "error", "said"),
    [
        ([(1, 3, 20, 20)], UsageError, "shapes are a list, not a mapping; give them by name"),
        ({"x": 5}, ShapeError, "input x: 5 is not a valid shape; use whole numbers"),
        ({"x": "1x3"}, ShapeError, "input x: '1x3' is not a valid shape; use whole numbers"),
    ],
)
def test_shapes_that_are_none(shapes, error: type[LiteError], said: str, tmp_path: Path) -> None:
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    floats = onnx.helper.make_tensor_value_info
    x, y = (floats(name, onnx.TensorProto.FLOAT, ["n", 3, 20, 20]) for name in "xy")
    node = onnx.helper.make_node("Relu", ["x"], ["y"])
    model = onnx.helper.make_model(onnx.helper.make_graph([node], "g", [x], [y]))
    onnx.save(model, tmp_path / "m.onnx")
    with pytest.raises(error, match=said):
        load(tmp_path / "m.onnx", shapes=shapes)
