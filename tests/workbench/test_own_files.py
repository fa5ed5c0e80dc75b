"""No verb writes over a file that it reads, but for those that may replace a `.lite` file."""

import re
import shutil

import lite_workbench as lw
import pytest
from lite_engine import optimize
from lite_engine.model_file import read_model
from lite_engine.model_file.naive_buffer import write_nb
from lite_engine.runtime import host_target
from lite_workbench.cli import main
from lite_workbench.commands import _own_files, available, get_command, parser_for

from tests.small_models import classifier

_NAMES_A_FILE = re.compile("FILE|DIR|OUT|NPZ|DATASET|FRAMES|MODEL|PIPELINE|REPORT")
FILES = ("digits.onnx", "digits.png", "digits_held_back.npz")
CALIBRATED = "--calibration digits_held_back.npz --samples 2"


@pytest.fixture
def place(tmp_path, monkeypatch):
    for file in FILES:
        shutil.copy(lw.shipped("digits.onnx").with_name(file), tmp_path)
    (tmp_path / "link.onnx").symlink_to("digits.onnx")
    shutil.copy(tmp_path / "digits.onnx", tmp_path / "digits")
    (tmp_path / "link").symlink_to("digits")
    optimize(classifier(), targets=["x86", "arm"]).save(tmp_path / "m.lite")
    write_nb(classifier(), tmp_path / "m.nb")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    "call",
    [
        "convert digits -o digits",
        "convert digits -o ./digits",
        "convert digits -o link",
        f"quantize digits -o digits {CALIBRATED}",
        f"quantize m.lite -o m.lite {CALIBRATED}",
        f"quantize digits.onnx -o q.lite --analyze digits_held_back.npz {CALIBRATED}",
        f"prune m.lite -o m.lite {CALIBRATED}",
        "recommend m.lite -o m --data digits_held_back.npz --max-drop 1%",
        "edit digits.onnx -o digits.onnx --batch 2",
        "tune digits --backend cpu -o digits",
        "run digits.onnx --input x=digits.png --draw digits.png",
        "run digits.onnx --output digits.onnx",
        "profile digits.onnx --csv digits.onnx",
        "compare digits.onnx --json digits.onnx",
        "diff digits.onnx m.lite --report m.lite",
        "evaluate digits.onnx --data digits_held_back.npz --predictions digits_held_back.npz",
        "report digits.onnx m.lite -o m.lite",
        "info digits.onnx --json link.onnx",
        "opt --model_file m.nb --optimize_out m",
        "edit digits.onnx --replace a:b=m.lite -o m.lite",
        "edit digits.onnx --replace-pattern Relu(x)=m.lite -o m.lite",
        f"quantize digits.onnx -o q.lite --repeat m.nb:2 --json m.nb {CALIBRATED}",
        "tune --import m.nb --json m.nb",
        "pipeline m.lite --sound digits.png --draw digits.png",
        "devices list --ssh-config m.nb --json m.nb",
    ],
)
def test_what_is_read_is_not_written_over(call, place, capsys):
    before = {path.name: path.read_bytes() for path in place.iterdir()}
    assert main(call.split()) == 2
    said = capsys.readouterr().err
    assert " is an input of this command; choose another place with --" in said
    assert said.count("\n") == 1
    assert {path.name: path.read_bytes() for path in place.iterdir()} == before


@pytest.mark.parametrize(
    "call",
    [
        "convert digits.onnx -o copy.ONNX",
        f"quantize digits.onnx -o q.tflite {CALIBRATED}",
        f"prune digits.onnx -o q.nb {CALIBRATED}",
        "recommend digits.onnx -o q.pb --data digits_held_back.npz --max-drop 1%",
        "tune digits.onnx --backend cpu -o q.json",
    ],
)
def test_a_lite_file_has_no_name_of_another_format(call, place, capsys):
    before = sorted(place.iterdir())
    assert main(call.split()) == 2
    said = capsys.readouterr().err
    assert "has another format's extension" in said and said.count("\n") == 1
    assert sorted(place.iterdir()) == before


def test_a_folder_keeps_the_model_that_it_holds(place, capsys):
    own = (place / "m.lite").rename(place / f"{read_model(place / 'm.lite').name}.lite")
    data = own.read_bytes()
    assert main(["export", own.name, "-o", ".", "--target", "x86", "--no-report"]) == 2
    assert f"{own.name} is an input of this command" in capsys.readouterr().err
    assert own.read_bytes() == data


@pytest.mark.cpu
def test_a_lite_file_may_be_replaced_by_its_own_conversion(place):
    here = host_target()
    assert main(["convert", "m.lite", "-o", "m.lite", "--targets", here]) == 0
    assert list(read_model(place / "m.lite").targets) == [here]
    assert main(["tune", "m.lite", "--backend", "cpu", "-o", "m.lite"]) == 0
    assert list(read_model(place / "m.lite").targets) == [here]


def test_every_option_that_names_a_file_is_known():
    """A new one belongs in one of the lists; `opt`, whose names Paddle-Lite chose, looks itself."""
    lists = (_own_files.READ, _own_files.WRITTEN, _own_files.CONTINUED)
    known = [name for names in lists for name in names]
    assert len(known) == len(set(known))
    found, writes = set(), set()
    for name in set(available()) - {"opt", "lab"}:
        for action in parser_for(get_command(name))._actions:
            if _NAMES_A_FILE.search(str(action.metavar)):
                found.add(action.dest)
            if str(action.help).startswith("write ") and action.nargs != 0:
                writes.add(action.dest)
    assert found <= set(known)
    assert len(writes) > 6 and not writes & set(_own_files.READ)
