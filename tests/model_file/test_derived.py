"""Weight-only files: integers kept once, expanded when the runner opens the file."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine._native import runner_path
from lite_engine.model_file import Model
from lite_engine.model_file._container import read_container
from lite_engine.quantize import quantize_weights
from lite_engine.runtime import host_target

from tests.small_models import Builder, classifier, image


@pytest.mark.cpu
@pytest.mark.parametrize("bits", [8, 16])
def test_runner_expands_integer_weights(bits, tmp_path: Path) -> None:
    model = optimize(classifier(), targets=["x86", "arm"])
    whole = read_container(model.save(tmp_path / "float.lite"))
    model.graph = quantize_weights(model.graph, bits)
    path = model.save(tmp_path / "small.lite")
    small = read_container(path)
    assert len(small["WEIGHTS"]) < (0.45 if bits == 8 else 0.65) * len(whole["WEIGHTS"])
    feeds = image(model.graph)
    np.save(tmp_path / "x.npy", feeds["x"])
    args = ["--input", f"x={tmp_path / 'x.npy'}", "--output", str(tmp_path / "out")]
    done = subprocess.run([runner_path(), path, *args], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    exact = Predictor(path, "reference").run(feeds)["prob"]
    found = np.load(tmp_path / "out" / "prob.npy")
    np.testing.assert_allclose(found, exact, rtol=1e-5, atol=1e-6)


@pytest.mark.cpu
@pytest.mark.parametrize("zero", [0, 5])
def test_only_symmetric_integers_are_expanded(zero, tmp_path: Path) -> None:
    """A row says scale times integer: with a zero point the file holds floats."""
    b = Builder((2, 8))
    q = b.graph.constant(np.arange(-32, 32, dtype=np.int8).reshape(8, 8))
    w = b.add("DequantizeLinear", q, b.scalar(0.5), b.graph.constant(np.int8(zero)))
    graph = b.done(b.add("MatMul", b.x, w, name="y"))
    path = Model(graph, [host_target()]).save(tmp_path / "m.lite")
    assert ("WDERIVE" in read_container(path)) == (zero == 0)
    found = Predictor(path, host_target()).run(image(graph))["y"]
    wanted = image(graph)["x"] @ (0.5 * (q.const.astype(np.float32) - zero))
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.cpu
@pytest.mark.parametrize("field", range(7))
def test_rows_are_checked(field, tmp_path: Path) -> None:
    """A row that points elsewhere, or whose sizes do not fit, is refused in one line."""
    import zlib

    model = optimize(classifier(), targets=["x86", "arm"])
    model.graph = quantize_weights(model.graph, 8)
    path = model.save(tmp_path / "small.lite")
    data = bytearray(path.read_bytes())
    row = data.index(b"WDERIVE\0")
    offset, size = (
        int.from_bytes(data[row + 8 + 8 * i : row + 16 + 8 * i], "little") for i in (0, 1)
    )
    at = offset + (4 * field if field < 4 else 16 + 8 * (field - 4))
    data[at : at + 4] = (0x7FFFFFF3).to_bytes(4, "little")
    data[row + 24 : row + 28] = zlib.crc32(data[offset : offset + size]).to_bytes(4, "little")
    path.write_bytes(data)
    done = subprocess.run([runner_path(), path, "--info"], capture_output=True, text=True)
    assert done.returncode == 1 and "does not fit its data" in done.stderr
