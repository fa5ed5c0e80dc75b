"""A Paddle-Lite script runs on the shim by changing its import, with the same result."""

from __future__ import annotations

import enum
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lite_engine.compat import paddlelite as lite
from lite_engine.errors import ModelFormatError, ShapeError, UsageError
from lite_engine.importers import load
from lite_engine.model_file import optimize
from lite_engine.model_file.naive_buffer import write_nb

from tests.importers.golden_runs import run_graph
from tests.importers.paddle_files import small_network

#: Of the usual shape: config, predictor, input, run, output.
SCRIPT = """
import sys
import numpy as np
from {module} import *

config = MobileConfig()
config.set_model_from_file(sys.argv[1])
predictor = create_paddle_predictor(config)
image = np.load(sys.argv[2])
tensor = predictor.get_input(0)
tensor.resize(list(image.shape))
tensor.from_numpy(image)
predictor.run()
output = predictor.get_output(0)
assert output.shape() == list(output.numpy().shape)
print(predictor.get_input_names(), predictor.get_output_names(), output.shape())
np.save(sys.argv[3], output.numpy())
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return small_network().save(tmp_path)


@pytest.fixture
def nb(program: Path, tmp_path: Path) -> Path:
    return write_nb(load(program), tmp_path / "m.nb", targets=["x86"])


def image(size: int = 8) -> np.ndarray:
    return np.random.default_rng(1).normal(size=(1, 3, size, size)).astype(np.float32)


def wanted(program: Path, x: np.ndarray) -> np.ndarray:
    (y,) = run_graph(load(program, shapes={"x": x.shape}), {"x": x}).values()
    return y


def open_mobile(path: Path) -> lite.LightPredictor:
    config = lite.MobileConfig()
    config.set_model_from_file(str(path))
    return lite.create_paddle_predictor(config)


def run_script(python: str, module: str, folder: Path, path: Path) -> tuple[str, np.ndarray]:
    np.save(folder / "x.npy", image())
    out = folder / f"{module}.npy"
    command = [
        python,
        "-c",
        SCRIPT.format(module=module),
        str(path),
        str(folder / "x.npy"),
        str(out),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-1500:]
    return done.stdout.splitlines()[-1], np.load(out)


def test_script_on_the_shim(program: Path, nb: Path, tmp_path: Path) -> None:
    _, y = run_script(sys.executable, "lite_engine.compat.paddlelite", tmp_path, nb)
    assert np.abs(y - wanted(program, image())).max() < 1e-5


def test_script_on_both(nb: Path, tmp_path: Path) -> None:
    python = os.environ.get("LITE_TEST_PADDLELITE")
    if not python:
        pytest.skip("LITE_TEST_PADDLELITE is not set to a python with paddlelite")
    said, real = run_script(python, "paddlelite.lite", tmp_path, nb)
    ours, y = run_script(sys.executable, "lite_engine.compat.paddlelite", tmp_path, nb)
    assert said == ours and np.abs(y - real).max() < 1e-5


NAMES = """
import json, sys, paddlelite.lite as lite
kinds = {n: k for n, k in vars(lite).items() if not n.startswith("_")}
print(json.dumps({n: [m for m in dir(k) if m[0] != "_"] for n, k in kinds.items()}))
"""


def test_names_are_paddle_lites() -> None:
    """All but what asks for the settings of accelerators again."""
    python = os.environ.get("LITE_TEST_PADDLELITE")
    if not python:
        pytest.skip("LITE_TEST_PADDLELITE is not set to a python with paddlelite")
    done = subprocess.run([python, "-c", NAMES], capture_output=True, text=True, timeout=60)
    missing = []
    for name, members in json.loads(done.stdout.splitlines()[-1]).items():
        kind = getattr(lite, name)
        for member in members:
            some = next(iter(kind)) if isinstance(kind, enum.EnumMeta) else kind
            if not hasattr(some, member) and not member.startswith("nnadapter_"):
                missing.append(f"{name}.{member}")
    assert not missing


def test_lite_files(program: Path, tmp_path: Path) -> None:
    path = optimize(load(program, shapes={"x": (1, 3, 8, 8)})).save(tmp_path / "m.lite")
    predictor = open_mobile(path)
    predictor.get_input_by_name("x").from_numpy(image())
    predictor.run()
    y = predictor.get_output(0).numpy()
    assert np.abs(y - wanted(program, image())).max() < 1e-5


def test_another_size(program: Path, nb: Path) -> None:
    predictor = open_mobile(nb)
    for size in (8, 12):
        predictor.get_input(0).from_numpy(image(size))
        predictor.run()
        y = predictor.get_output(0).numpy()
        assert np.abs(y - wanted(program, image(size))).max() < 1e-5


def test_from_memory(program: Path, nb: Path) -> None:
    config = lite.MobileConfig()
    config.set_model_from_buffer(nb.read_bytes())
    assert config.is_model_from_memory()
    predictor = lite.create_paddle_predictor(config)
    predictor.get_input(0).from_numpy(image())
    predictor.run()
    assert predictor.get_output(0).shape() == [1, 5]


def test_from_two_buffers(program: Path) -> None:
    files = [program.read_bytes(), program.with_suffix(".pdiparams").read_bytes()]
    config = lite.CxxConfig()
    config.set_model_buffer(files[0], len(files[0]), files[1], len(files[1]))
    predictor = lite.create_paddle_predictor(config)
    predictor.get_input(0).from_numpy(image())
    predictor.run()
    y = predictor.get_output(0).numpy()
    assert np.abs(y - wanted(program, image())).max() < 1e-5


def test_settings_of_other_hardware_are_accepted_with_a_word() -> None:
    config = lite.MobileConfig()
    with pytest.warns(
        UserWarning, match="set_nnadapter_device_names: this hardware is not supported"
    ):
        config.set_nnadapter_device_names(["huawei_ascend_npu"])
    with pytest.warns(UserWarning, match="set_metal_use_mps"):
        config.set_metal_use_mps(True)


def test_cxx_config(program: Path, tmp_path: Path) -> None:
    config = lite.CxxConfig()
    config.set_model_file(str(program))
    config.set_param_file(str(program.with_suffix(".pdiparams")))
    config.set_valid_places([lite.Place(lite.TargetType.Host, lite.PrecisionType.FP32)])
    config.set_threads(2)
    predictor = lite.create_paddle_predictor(config)
    tensor = predictor.get_input(0)
    tensor.resize([1, 3, 8, 8])
    tensor.set_float_data(image().ravel().tolist())
    predictor.run()
    y = np.asarray(predictor.get_output(0).float_data())
    assert np.abs(y - wanted(program, image()).ravel()).max() < 1e-5
    predictor.save_optimized_model(str(tmp_path / "saved"))
    assert load(tmp_path / "saved.nb").metadata["format"] == "naive_buffer"


def test_mistakes_are_told(program: Path, nb: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="has no model"):
        lite.create_paddle_predictor(lite.MobileConfig())
    with pytest.raises(ModelFormatError, match="no such file"):
        open_mobile(tmp_path / "absent.nb")
    predictor = open_mobile(nb)
    with pytest.raises(UsageError, match="holds no data yet"):
        predictor.run()
    with pytest.raises(UsageError, match="the model has 1"):
        predictor.get_input(3)
    with pytest.raises(UsageError, match="this engine has X86"):
        lite.CxxConfig().set_valid_places([lite.Place(lite.TargetType.XPU)])
    tensor = predictor.get_input(0)
    tensor.resize([1, 3])
    with pytest.raises(ShapeError, match="2 elements"):
        tensor.set_float_data([1.0, 2.0])


def test_enumerations_have_paddle_lites_numbers() -> None:
    assert int(lite.TargetType.OpenCL) == 5 and str(lite.TargetType.X86) == "TargetType.X86"
    assert int(lite.PrecisionType.FP16) == 5 and int(lite.DataLayoutType.NHWC) == 3
    assert lite.Place(lite.TargetType.ARM).is_valid()
    assert isinstance(lite.is_opencl_backend_valid(), bool)
