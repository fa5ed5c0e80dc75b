"""Errors hold what, where, fix and command apart, and say them in one line."""

from __future__ import annotations

import ast
import json
import pickle
import re
import shlex
from pathlib import Path

import pytest
from lite_engine import errors
from lite_engine.errors import (
    DeviceError,
    LiteError,
    ModelFormatError,
    UnsupportedOperatorError,
    UsageError,
)
from lite_engine.terminal import error_line, printable, shortened
from lite_workbench.cli import main

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine/lite_engine", "widgets/lite_widgets", "workbench/lite_workbench")
KINDS = {name: kind for name, kind in vars(errors).items()
         if isinstance(kind, type) and issubclass(kind, LiteError)}  # fmt: skip


def test_the_line_is_composed_of_the_fields():
    assert str(LiteError("damaged")) == "damaged"
    assert str(LiteError("damaged", where=Path("m.lite"))) == "m.lite: damaged"
    assert str(LiteError("no torch", command="pip install torch")) == (
        "no torch; run `pip install torch`"
    )
    full = LiteError("old", where="m.lite", fix="convert it again", command="lite convert m.onnx")
    assert str(full) == "m.lite: old; convert it again: `lite convert m.onnx`"


@pytest.mark.parametrize("name", KINDS)
def test_every_error_survives_a_pickle_and_has_a_kind_of_its_own(name):
    error = KINDS[name]("what", where="where", fix="fix", command="command")
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is KINDS[name] and copy.to_dict() == error.to_dict()
    assert len({kind.kind for kind in KINDS.values()}) == len(KINDS)


def test_an_error_of_another_class_keeps_its_fields():
    inner = LiteError("cut off", where="section GRAPH", fix="copy it", command="cp a b")
    outer = ModelFormatError.of(inner, where="m.lite")
    assert str(outer) == "m.lite: section GRAPH: cut off; copy it: `cp a b`"
    assert outer.within("m.lite").where == "m.lite: section GRAPH"  # it names the file already
    assert UnsupportedOperatorError("x", ("n",)).within("layer").nodes == ("n",)
    assert DeviceError("x", stage="copy").stage == "copy"


def test_what_a_hostile_file_says_is_cut():
    error = LiteError("x" * 10**6, where="y" * 10**6, fix="z" * 10**6)
    assert all(len(f) == errors.FIELD_LIMIT for f in (error.what, error.where, error.fix))
    assert shortened("abcdefghij", 8) == "abcd … j" and shortened("abc", 3) == "abc"


def test_line_breaks_of_names_leave_one_line():
    error = UsageError("no operator 'a\r\nb\u2028c'", where="x\ny").within("m\nn.lite")
    assert str(error) == "m n.lite: x y: no operator 'a b c'"
    assert str(error.within("m\nn.lite")) == str(error)


def test_a_terminal_obeys_nothing_of_an_error():
    hostile = "a\x1b]0;title\x07\x9b2J\u202eb\u2028c\x00\ud800 é 語 👩\u200d🚀"
    line = error_line(LiteError(hostile))
    escaped = r"a\x1b]0;title\x07\x9b2J\u202eb c\x00\ud800 é 語 👩" + "\u200d🚀"
    assert line == f"error: {escaped}"
    assert printable("plain text") == "plain text"


def test_a_failing_verb_gives_its_error_as_json(tmp_path, capsys):
    missing = tmp_path / "no model\x1b.onnx"
    for arguments in (["--json", "-"], ["--json=-"]):
        assert main(["info", str(missing), *arguments]) == 1
        out, told = capsys.readouterr()
        error = json.loads(out)["error"]
        assert set(error) == {"kind", "what", "where", "fix", "command"}
        assert error["kind"] == "model_format" and error["where"] == str(missing)
        assert told.startswith("error: ") and "\x1b" not in told and told.count("\n") == 1
    assert main(["info", str(missing)]) == 1 and capsys.readouterr().out == ""
    assert main(["info", "--nonsense", "--json", "-"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["kind"] == "usage"


def test_commands_of_errors_can_be_pasted(tmp_path):
    from lite_engine import Predictor, optimize

    from tests.small_models import classifier

    model = optimize(classifier(), targets=["opencl"]).save(tmp_path / "a b's.lite")
    with pytest.raises(LiteError) as caught:
        Predictor(model, "x86")
    words = shlex.split(caught.value.command)
    assert words[:3] == ["lite", "convert", str(model)] and f"`{caught.value.command}`" in str(
        caught.value
    )


def test_no_error_hides_its_fix_in_what_is_wrong_and_nobody_parses_one():
    """A message in the form "what; fix" is what the fields replace."""
    found = []
    for path in sorted(p for package in PACKAGES for p in (ROOT / package).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and node.args and _hides(node):
                found.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not found


def _hides(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    first = call.args[0]
    if name in ("partition", "split"):
        return isinstance(first, ast.Constant) and first.value == "; "
    if isinstance(first, ast.Call) and getattr(first.func, "id", "") in ("tr", "trn"):
        first = first.args[0]
    if name not in KINDS or not isinstance(first, ast.Constant | ast.JoinedStr):
        return False
    parts = first.values if isinstance(first, ast.JoinedStr) else [first]
    text = "".join(p.value if isinstance(p, ast.Constant) else "x" for p in parts)
    return "; " in re.sub(r"\([^()]*\)", "", text)
