"""`opt` with Paddle-Lite's flags."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.compat.opt import Opt, run_opt
from lite_engine.importers import load
from lite_engine.importers.naive_buffer.container import read_nb
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


def test_targets_of_other_makers(program: Path, tmp_path: Path, capsys) -> None:
    """A command line for a board with an NPU works: its CPU target is what is written."""
    out = f"--optimize_out={tmp_path / 'm'}"
    assert run_opt(flags(program, out, "--valid_targets=huawei_kirin_npu,host,arm")) == 0
    told = capsys.readouterr()
    assert "for arm" in told.out
    assert "huawei_kirin_npu needs the backend package lite-backend-huawei-kirin-npu" in told.err
    assert "not installed; arm is used instead" in told.err
    assert run_opt(flags(program, out, "--valid_targets=huawei_kirin_npu")) == 2
    assert run_opt(flags(program, out, "--valid_targets=arm,unheard_of")) == 2


def test_tailoring_lists(program: Path, tmp_path: Path) -> None:
    more = ["--record_tailoring_info=true", "--sparse_model=true", "--sparse_threshold=0.5"]
    assert run_opt(flags(program, f"--optimize_out={tmp_path / 'm'}", *more)) == 0
    ops = (tmp_path / "m" / ".tailored_ops_list").read_text().split()
    kernels = (tmp_path / "m" / ".tailored_kernels_list").read_text().split()
    assert ops == sorted(ops) and {"feed", "fetch", "conv2d"} <= set(ops)
    assert "conv2d,kARM,kFloat,kNCHW,def" in kernels and "feed,kHost,kAny,kAny,def" in kernels


def test_model_set(program: Path, tmp_path: Path, capsys) -> None:
    """Each folder's model, and one list of what they need together."""
    for name in ("one", "two"):
        (tmp_path / "set" / name).mkdir(parents=True)
        small_network().save(tmp_path / "set" / name)
    given = [f"--model_set_dir={tmp_path / 'set'}", "--model_filename=inference.pdmodel",
             "--param_filename=inference.pdiparams", f"--optimize_out={tmp_path / 'out'}",
             "--valid_targets=arm", "--record_tailoring_info=true"]  # fmt: skip
    assert run_opt(given) == 0
    assert sorted(p.name for p in (tmp_path / "out").glob("*.nb")) == ["one.nb", "two.nb"]
    assert "conv2d" in (tmp_path / "out" / ".tailored_ops_list").read_text().split()
    assert run_opt([f"--model_set_dir={tmp_path / 'none'}", "--optimize_out=x"]) == 2
    assert "there is no folder in it" in capsys.readouterr().err


def test_pictures(program: Path, tmp_path: Path) -> None:
    assert run_opt(flags(program, f"--optimize_out={tmp_path / 'm'}")) == 0
    drawn = [f"--optimized_nb_model_path={tmp_path / 'm.nb'}",
             f"--visualization_file_output_path={tmp_path / 'pictures'}"]  # fmt: skip
    assert run_opt(drawn) == 0
    text = (tmp_path / "pictures" / "Block_0.dot").read_text()
    assert text.startswith("digraph G {") and 'label="conv2d"' in text
    nodes = {line.split("[")[0].strip() for line in text.splitlines() if "[label=" in line}
    ends = {n.strip() for line in text.splitlines() if "->" in line for n in line.split("->")}
    assert ends <= nodes and len(ends) > 4


def test_markdown(capsys) -> None:
    assert run_opt(["--print_all_ops_in_md_format=true"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == ["| operator | lite | arm | x86 | opencl |", "|---|---|---|---|---|"]
    assert "| conv2d | Y | Y | Y | Y |" in lines


#: Command lines from Paddle-Lite's own documents (opt's user guide), with this test's paths.
DOCUMENTED = (
    "--model_dir={dir} --valid_targets=arm --optimize_out={out}",
    "--model_dir={dir} --optimize_out_type=naive_buffer --optimize_out={out} --valid_targets=arm",
    "--model_file={file} --param_file={params} --optimize_out_type=naive_buffer "
    "--optimize_out={out} --valid_targets=arm",
    "--model_file={file} --param_file={params} --optimize_out={out} --valid_targets=opencl,arm",
    "--model_file={file} --param_file={params} --optimize_out={out} --valid_targets=arm "
    "--quant_model=true --quant_type=QUANT_INT16",
    "--model_file={file} --param_file={params} --optimize_out={out} --valid_targets=arm "
    "--enable_fp16=true",
    "--model_file={file} --param_file={params} --optimize_out={out} "
    "--valid_targets=mediatek_apu,arm",
    "--model_file={file} --param_file={params} --optimize_out={out} --valid_targets=x86 "
    "--record_tailoring_info=true",
    "--print_model_ops=true --model_dir={dir} --valid_targets=arm",
    "--print_supported_ops=true --valid_targets=x86",
    "--print_all_ops=true",
)


@pytest.mark.parametrize("line", DOCUMENTED)
def test_documented_command_lines(line: str, program: Path, tmp_path: Path, capsys) -> None:
    """Unchanged, through `lite opt` as well."""
    from lite_workbench.cli import main

    names = {"dir": program.parent, "file": program, "params": program.with_suffix(".pdiparams"),
             "out": tmp_path / "result"}  # fmt: skip
    argv = line.format(**names).split()
    assert run_opt(argv) == 0 and main(["opt", *argv]) == 0
    capsys.readouterr()
    if "{out}" in line:
        assert load(tmp_path / "result.nb").nodes


def test_opt_class(program: Path, tmp_path: Path, capsys) -> None:
    opt = Opt()
    opt.set_model_file(str(program))
    opt.set_param_file(str(program.with_suffix(".pdiparams")))
    opt.set_valid_places("x86")
    opt.set_optimize_out(str(tmp_path / "class"))
    opt.set_sparse_model(True)
    opt.set_sparse_threshold(0.5)
    opt.record_model_info(True)
    assert opt.check_if_model_supported()
    opt.run()
    assert (tmp_path / "class" / ".tailored_ops_list").is_file()
    pictures = opt.visualize_optimized_nb_model(str(tmp_path / "class.nb"), str(tmp_path))
    assert [Path(p).name for p in pictures] == ["Block_0.dot"]
    opt.display_kernels_info()
    assert re.search(r"^conv2d +conv2d/def/4/1/1 ", capsys.readouterr().out, re.M)
    assert np.isfinite([v.const.max() for v in load(tmp_path / "class.nb").constants()]).all()


def prints_of(path: Path) -> list[str]:
    """What a `.nb` file prints, in order."""
    ops = read_nb(memoryview(path.read_bytes())).blocks[0].ops
    return [op.attrs["message"] for op in ops if op.type == "print"]


def test_prints_leave_the_other_operators_as_they_are(program: Path, tmp_path: Path) -> None:
    """Run by Paddle-Lite 2.13rc0 such a file printed every value and gave the same outputs."""
    for name, more in (("plain", []), ("all", ["--insert-print"])):
        assert run_opt(flags(program, f"--optimize_out={tmp_path / name}", *more)) == 0
    plain, printing = (
        read_nb(memoryview((tmp_path / f"{n}.nb").read_bytes())) for n in ("plain", "all")
    )
    ops = [(op.type, op.inputs, op.outputs) for op in printing.blocks[0].ops if op.type != "print"]
    assert ops == [(op.type, op.inputs, op.outputs) for op in plain.blocks[0].ops]
    made = [
        n for op, _, outs in ops if op not in ("feed", "fetch")
        for slot, (n,) in outs.items() if slot != "XShape"
    ]  # fmt: skip
    assert prints_of(tmp_path / "all.nb") == made
    feeds = {"x": np.random.default_rng(0).standard_normal((1, 3, 8, 8)).astype(np.float32)}
    one, two = (Predictor(tmp_path / f"{n}.nb", "reference").run(feeds) for n in ("plain", "all"))
    assert all(np.array_equal(one[n], two[n]) for n in one)


def test_one_value_is_printed(
    program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = f"--optimize_out={tmp_path / 'm'}"
    name = "h"
    assert run_opt(flags(program, out, "--valid_targets=opencl,arm", f"--insert-print={name}")) == 0
    assert prints_of(tmp_path / "m.nb") == [name]
    assert run_opt(flags(program, out, "--insert-print=nowhere")) == 2
    assert "no value of the result is called 'nowhere'" in capsys.readouterr().err
