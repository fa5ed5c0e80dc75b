"""The file's own program: used when it is what planning would give, left as soon as it is not."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine._native import runner_path
from lite_engine.errors import ModelFormatError, ShapeError
from lite_engine.model_file import open_model
from lite_engine.runtime import host_target

from tests.small_models import Builder, classifier
from tests.small_models import image as random_image

pytestmark = pytest.mark.cpu


@pytest.fixture
def saved(tmp_path):
    return optimize(classifier(), targets=["x86", "arm", "opencl"]).save(tmp_path / "m.lite")


@pytest.fixture
def image(saved):
    return random_image(open_model(saved).graph)


def test_stored_program_gives_what_planning_gives(saved, image) -> None:
    stored = Predictor(saved, host_target())
    fast = stored.run(image)
    assert not stored.model.is_read
    planned = Predictor(saved, host_target(), overrides={})
    planned.plan()
    slow = planned.run(image)
    assert planned.model.is_read
    assert fast.keys() == slow.keys() == set(stored.output_names)
    for name, array in fast.items():
        assert np.array_equal(array, slow[name])
    reference = Predictor(saved, "reference").run(image)
    for name, array in fast.items():
        np.testing.assert_allclose(array, reference[name], rtol=1e-4, atol=1e-5)


def test_outputs_are_called_as_in_the_model(tmp_path) -> None:
    """Brought to another order, seen through a view, the input itself: in Python and without."""
    b = Builder((1, 3, 6, 6))
    mask = b.conv(b.x, 3, 5, 3, name="mask")
    graph = b.done(mask, b.add("GlobalAveragePool", mask, name="pool"), b.x)
    path = optimize(graph, targets=[host_target()]).save(tmp_path / "m.lite")
    outputs = Predictor(path, host_target()).run(random_image(graph))
    assert list(outputs) == ["mask", "pool", "x"] and outputs["mask"].shape == (1, 5, 6, 6)
    told = subprocess.run([runner_path(), path, "--info"], capture_output=True, check=True).stdout
    assert [o["name"] for o in json.loads(told)["outputs"]] == ["mask", "pool", "x"]


def test_starting_imports_neither_importers_nor_operators_nor_planner(saved, image) -> None:
    name, array = next(iter(image.items()))
    code = (
        "import sys, numpy as np; from lite_engine import Predictor; "
        f"Predictor({str(saved)!r}, {host_target()!r}).run({{{name!r}: "
        f"np.zeros({array.shape}, 'float32')}}); "
        "heavy = ('importers', 'ir.graph', 'ops', 'passes', 'plan'); "
        "sys.exit(', '.join(m for m in heavy if f'lite_engine.{m}' in sys.modules) or None)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize("rows", [1, 2])
def test_weights_lie_in_memory_once(tmp_path, rows) -> None:
    """The file's own pages leave once a kernel has packed them; one row reads them in place."""
    wide = Builder((rows, 1024))
    weights = wide.weights(1024, 1024)  # 4 MiB
    graph = wide.done(wide.add("Gemm", wide.x, weights, transB=1))
    path = optimize(graph, targets=["x86", "arm"]).save(tmp_path / "wide.lite")
    predictor = Predictor(path, host_target(), threads=1)
    predictor.run({"x": np.ones((rows, 1024), np.float32)})
    assert not predictor.model.is_read
    lines = Path("/proc/self/smaps").read_text().splitlines()
    starts = [i for i, line in enumerate(lines) if line.endswith(str(path))]
    assert starts
    held = sum(int(next(x for x in lines[i:] if x.startswith("Rss:")).split()[1]) for i in starts)
    packed = predictor._stored._program.memory().packed_bytes
    assert packed + 1024 * held < 1.25 * weights.const.nbytes


def test_what_the_program_does_not_fit_is_planned(saved, image) -> None:
    predictor = Predictor(saved, host_target())
    name, array = next(iter(image.items()))
    layer = open_model(saved).graph.nodes[0]
    assert predictor.run(image, taps=[layer.outputs[0].name]).keys() > set(predictor.output_names)
    again = Predictor(saved, host_target())
    with pytest.raises(ShapeError, match="missing"):
        again.run({})
    assert again.run({name: array.tolist()}).keys() == set(again.output_names)


def test_a_file_of_another_engine_is_planned(saved, image, monkeypatch) -> None:
    monkeypatch.setattr("lite_engine.runtime.stored.__version__", "99")
    predictor = Predictor(saved, host_target())
    predictor.run(image)
    assert predictor.model.is_read


def test_damaged_weights_are_named_when_they_are_read(saved, image) -> None:
    data = bytearray(saved.read_bytes())
    data[-100] ^= 0xFF
    saved.write_bytes(data)
    with pytest.raises(ModelFormatError, match=r"WEIGHTS.*damaged"):
        Predictor(saved, host_target()).run(image)
