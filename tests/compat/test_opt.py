"""`opt` with Paddle-Lite's flags."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lite_engine.compat.opt import Opt, run_opt
from lite_engine.importers import load
from lite_engine.ir import DType
from lite_engine.model_file import read_model

from tests.importers.paddle_files import small_network


@pytest.fixture
def program(tmp_path: Path) -> Path:
    return small_network().save(tmp_path)


def flags(program: Path, *more: str) -> list[str]:
    return [f"--model_file={program}", f"--param_file={program.with_suffix('.pdiparams')}", *more]


def test_naive_buffer(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "opt"
    assert run_opt(flags(program, f"--optimize_out={out}", "--valid_targets=arm")) == 0
    kernels = load(tmp_path / "opt.nb").metadata["paddle_lite"]["kernels"]
    assert "conv2d/def arm float NCHW" in kernels.values()
    assert "opt.nb" in capsys.readouterr().out


def test_model_dir_and_lite(program: Path, tmp_path: Path) -> None:
    out = tmp_path / "m"
    argv = ["--model_dir", str(program.parent), "--optimize_out", str(out)]
    assert run_opt([*argv, "--optimize_out_type", "lite", "--valid_targets", "x86 arm"]) == 0
    assert read_model(tmp_path / "m.lite").targets == ["x86", "arm"]


def test_quantization(program: Path, tmp_path: Path) -> None:
    more = [f"--optimize_out={tmp_path / 'q'}", "--quant_model=true", "--quant_type=QUANT_INT8"]
    assert run_opt(flags(program, *more)) == 0
    stored = [v.dtype for v in load(tmp_path / "q.nb").constants() if v.const.ndim == 4]
    assert stored == [DType.I8]


def test_lists(program: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_opt(flags(program, "--print_model_ops=true", "--valid_targets=arm,opencl")) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["operator", "count", "arm", "opencl"]
    assert ["conv2d", "1", "Y", "Y"] in [line.split() for line in lines]
    assert run_opt(["--print_supported_ops", "true", "--valid_targets", "arm"]) == 0
    assert "yolo_box" in capsys.readouterr().out


@pytest.mark.parametrize("argv, code", [
    (["--optimize_out=x"], 2),
    (["--model_file=absent.pdmodel", "--optimize_out=x"], 1),
    (["--model_file=absent.pdmodel", "--valid_targets=npu"], 2),
    (["--quant_type=QUANT_INT4"], 2),
    (["--print_all_ops=perhaps"], 2),
    (["--no_such_flag"], 2),
])  # fmt: skip
def test_exit_codes(argv: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_opt(argv) == code
    assert "error: " in capsys.readouterr().err


def test_opt_class(program: Path, tmp_path: Path) -> None:
    opt = Opt()
    opt.set_model_file(str(program))
    opt.set_param_file(str(program.with_suffix(".pdiparams")))
    opt.set_valid_places("x86")
    opt.set_optimize_out(str(tmp_path / "class"))
    assert opt.check_if_model_supported()
    opt.run()
    assert np.isfinite([v.const.max() for v in load(tmp_path / "class.nb").constants()]).all()
