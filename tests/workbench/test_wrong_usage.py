"""What a person gives wrongly: one line that says what is wrong, and the exit code of it."""

from __future__ import annotations

import io
import sys
import zipfile
from pathlib import Path

import lite_workbench as lw
import numpy as np
import onnx
import pytest
from lite_engine import load, settings
from lite_engine.arrays import read_array
from lite_engine.errors import ModelFormatError, UsageError
from lite_engine.settings import SETTINGS
from lite_workbench.cli import main
from onnx import TensorProto, helper

pytestmark = pytest.mark.cpu
MODEL = str(lw.shipped("digits.onnx"))


def said(capsys, *words: str | Path) -> tuple[int, str]:
    """(exit code, the line on standard error)"""
    code = main([str(w) for w in words])
    err = capsys.readouterr().err
    assert err.startswith("error: ") and err.count("\n") == 1, err
    return code, err[7:].strip()


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("run --threads 0", "not a whole number of 1 or more"),
        ("run --threads 1000", "threads must be between 1 and 256, got 1000"),
        ("run --backned x86", "lite run has no option --backned; did you mean --backend?"),
        ("info --optimised", "lite info has no option --optimised; did you mean --optimized?"),
        ("run --zzz", "unrecognized arguments: --zzz"),
        ("run --adapter boxs", "adapter 'boxs' is not one of text, top, boxes"),
        ("run --adapter top,overlp=1", "an adapter has no 'overlp'"),
        ("evaluate --data . --task clasification", "'clasification' is not a task; choose from"),
        ("run --top 0", "not a whole number of 1 or more"),
        ("run --threshold 3", "not a number from 0 to 1"),
        ("run --labels nowhere.txt", "nowhere.txt: labels cannot be read (No such file"),
        ("run --input nowhere.png", "nowhere.png: no such file"),
        (f"run {MODEL}", f"is given without an option; pass it as `--input {MODEL}`"),
        ("compare --threads 0", "threads must be between 1 and 256, got 0"),
        ("compare --precision fp32,fp16,bf16", "--precision needs two values, like fp32,fp16"),
        ("compare --backends x86", "--backends needs two values, like x86,opencl"),
        ("compare --random-inputs 0", "not a whole number of 1 or more"),
        ("compare --tolerance nan", "not a number of 0 or more"),
        ("quantize -o q.lite --calibration x --float-budget -1", "not a number of 0 or more"),
        ("quantize -o q.lite --calibration x --target-db nan", "not a number of decibels, like 25"),
        ("profile --warmup -1", "not a whole number of 0 or more"),
        ("convert --targets ,", "targets ',' name none of x86, arm, wasm, opencl"),
        ("quantize -o q.lite --calibration x --target-top1 7", "not a number from 0 to 1"),
        ("quantize -o q.lite --weights-only int8 --calibration x", "leave out --calibration"),
        ("quantize -o q.lite --weights-only int4 --target-db 20", "leave out --target-db"),
        *(
            (f"quantize -o q.lite --weights-only {word}", f"leave out --{word.split()[1][2:]}")
            for word in (
                "int4 --rounding learned",
                "int8 --rounding learned",
                "int4 --activations i8",
                "int4 --symmetric",
                "int4 --no-equalize",
                "int8 --float-budget 1",
                "int4 --workers 2",
            )
        ),
        ("quantize -o q.lite --weights-only int8 --group 32", "use --weights-only int4"),
        ("quantize -o q.lite --calibration x --method gptq", "add --weights-only int4"),
        ("quantize -o q.lite --weights-only int4 --method gptq", "gptq needs samples"),
    ],
)
def test_options(words: str, what: str, capsys, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    verb, *rest = words.split()
    code, line = said(capsys, verb, MODEL, *rest)
    assert code == 2 and what in line, line
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "what"),
    [
        ("profil m.onnx", "'profil' is not a verb; did you mean profile?"),
        ("xyz", "'xyz' is not a verb; verbs: doctor, info, "),
        ("devices add", "a name is missing: `lite devices add NAME ADDRESS`"),
        ("devices add board", "the address is missing: `lite devices add board ADDRESS`"),
        ("devices remove", "a name is missing: `lite devices remove NAME`"),
        ("runs list --limit 0", "not a whole number of 1 or more"),
        ("runs list --limit 1" + 20 * "0", "not a whole number between 1 and 9223372036854775807"),
    ],
)
def test_words(words: str, what: str, capsys) -> None:
    code, line = said(capsys, *words.split())
    assert code == 2 and what in line, line


@pytest.mark.parametrize("number", ["abc", "0", "1000", "1.5"])
def test_a_number_of_threads_in_the_environment(number: str, capsys, monkeypatch) -> None:
    monkeypatch.setenv("LITE_THREADS", number)
    code, line = said(capsys, "run", MODEL)
    assert code == 2 and line.startswith(f"LITE_THREADS='{number}': not a whole number between 1")


def test_every_setting_is_checked(monkeypatch) -> None:
    """Those that are a path or a part of a name may hold anything."""
    anything = {"LITE_OPENCL_LIBRARY", "LITE_OPENCL_DEVICE", "LITE_CACHE_DIR"}
    for name in SETTINGS:
        monkeypatch.setenv(name, "nonsense")
        if name in anything:
            assert str(settings.get(name)) == "nonsense"
        else:
            with pytest.raises(UsageError, match=f"{name}='nonsense'"):
                settings.get(name)


@pytest.mark.parametrize("opened", [lw.open, lw.Workbench, load])
def test_what_is_not_a_path(opened) -> None:
    with pytest.raises(UsageError, match="expected the path of a model, found int; write it to"):
        opened(5)


@pytest.mark.parametrize("more", [[MODEL], ["--precision", "fp32,bf16"], ["--threads", "1,2"]])
def test_one_backend_serves_two_sides(more: list[str], capsys) -> None:
    assert main(["compare", MODEL, *more, "--backends", "reference", "--layers", "/stem/Conv"]) == 0


def npz(path: Path, cut: int = 0, flip: int = 0) -> Path:
    np.savez(path, image=np.zeros((1, 1, 32, 32), np.float32))
    data = bytearray(path.read_bytes())
    if flip:
        data[flip] ^= 255
    path.write_bytes(data[:cut] if cut else data)
    return path


def test_damaged_inputs(tmp_path, capsys) -> None:
    huge = tmp_path / "huge.npy"
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1000000, 1000000, 1000)}\n"
    huge.write_bytes(b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header)
    octal = tmp_path / "octal.npy"  # which Python's parser refuses
    octal.write_bytes(huge.read_bytes().replace(b"<f4", b"<04"))
    objects = tmp_path / "objects.npy"
    np.save(objects, np.array([{}], object), allow_pickle=True)
    text = tmp_path / "words.txt"
    text.write_text("hello")
    for path, what in (
        (npz(tmp_path / "cut.npz", cut=300), "not a .npz file that can be read"),
        (npz(tmp_path / "flip.npz", flip=200), "not a .npz file that can be read"),
        (huge, "not a .npy file that can be read"),
        (octal, "not a .npy file that can be read (leading zeros"),
        (objects, "it contains Python objects"),
        (text, "expected a file that ends in one of .png, .jpg, .jpeg, .bmp"),
    ):
        code, line = said(capsys, "run", MODEL, "--input", path)
        assert code == 2 and line.startswith(f"{path}: ") and what in line, line
    with pytest.raises(UsageError, match="File name too long"):
        read_array(tmp_path / ("é" * 300 + ".npy"))
    with pytest.raises(UsageError, match="no such file"):
        read_array(tmp_path / "none.npy")
    out = tmp_path / "q.lite"
    for name in ("cut.npz", "flip.npz"):
        words = ("quantize", MODEL, "-o", out, "--calibration", tmp_path / name)
        code, line = said(capsys, *words)
        assert "not a .npz file that can be read" in line, line
    with zipfile.ZipFile(tmp_path / "none.npz", "w"):
        pass
    code, line = said(capsys, "quantize", MODEL, "-o", out, "--calibration", tmp_path / "none.npz")
    assert line == "no array called 'image'; there are: none"


@pytest.mark.parametrize(
    ("name", "data", "what"),
    [
        ("m.onnx", b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a", "git lfs pull"),
        ("m.onnx", b"\n<!DOCTYPE html><html>404</html>", "a web page, not a model"),
        ("m.lite", b"LITE\n\x1a\n and so on", "not a .lite file, or a damaged one"),
    ],
)
def test_what_a_download_leaves(name: str, data: bytes, what: str, tmp_path, capsys) -> None:
    path = tmp_path / name
    path.write_bytes(data)
    for verb in ("info", "run"):
        code, line = said(capsys, verb, path)
        assert code == 1 and line.startswith(f"{path}: ") and what in line, line


def test_a_file_without_weights_of_its_own(tmp_path, capsys) -> None:
    out = tmp_path / "d.lite"
    assert main(["convert", MODEL, "-o", str(out), "--targets", "x86"]) == 0
    assert said(capsys, "run", out, "--params", "w.bin")[0] == 2
    with pytest.raises(ModelFormatError, match="converted already"):
        load(out)
    half = tmp_path / "half.lite"
    half.write_bytes(out.read_bytes()[: out.stat().st_size // 2])
    assert "cut off or damaged; copy or download it again" in said(capsys, "info", half)[1]
    assert main(["doctor", str(half)]) == 1
    assert f"- {half}: section" in capsys.readouterr().out


def tiny(path: Path, nodes: list, inputs: dict, outputs: list[str]) -> Path:
    """An ONNX file; inputs are name → shape of float32."""
    ports = [helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in inputs.items()]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in outputs]
    graph = helper.make_graph(nodes, "g", ports, ends)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("own", 1)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=8), path)
    return path


def test_operators_that_nothing_has_are_all_named(tmp_path, capsys) -> None:
    nodes = [
        helper.make_node("FooBar", ["x"], ["a"], name="first", domain="own"),
        helper.make_node("FooBar", ["a"], ["b"], name="second", domain="own"),
        helper.make_node("Baz", ["b"], ["y"], name="third", domain="own"),
    ]
    path, out = tiny(tmp_path / "m.onnx", nodes, {"x": [1, 3]}, ["y"]), tmp_path / "m.lite"
    for words in (("convert", path, "-o", out), ("run", path)):
        code, line = said(capsys, *words)
        assert code == 1 and "FooBar (2, at first), " in line and "Baz (1, at third)" in line
    assert not out.exists()
    assert main(["info", str(path)]) == 0  # the table says it before anything is converted


def test_counts_and_units(tmp_path, capsys) -> None:
    nodes = [helper.make_node("Relu", ["x"], ["y"])]
    path = tiny(tmp_path / "m.onnx", nodes, {"x": [1, 3]}, ["y"])
    assert main(["info", str(path)]) == 0
    told = capsys.readouterr().out
    assert "1 layer, 0 parameters, 0 B of weights, 0 MACs\n" in told
    code, line = said(capsys, "quantize", path, "-o", tmp_path / "q.lite", "--weights-only", "int8")
    assert code == 1 and line == "no layer has float weights that can be stored as integers"


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_a_terminal_that_cannot_write_a_sign(encoding: str, tmp_path: Path, monkeypatch) -> None:
    """× on a terminal of plain letters, a file name whose bytes are no text on any: an escape."""
    model = tmp_path / "m\udcff.onnx"
    model.write_bytes(Path(MODEL).read_bytes())
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding=encoding))
    assert main(["info", str(model)]) == 0
    assert written.getvalue().startswith(rb"m\udcff.onnx (onnx): ")
