"""`lite convert` says what a lower precision costs and which layers need Python."""

from __future__ import annotations

import json
import subprocess

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine._native import runner_path
from lite_engine.model_file import read_model
from lite_engine.runtime import host_target, usability
from lite_engine.runtime.inputs import random_feeds
from lite_workbench.cli import main
from lite_workbench.commands import convert

pytestmark = pytest.mark.cpu


def test_what_bf16_costs_is_the_distance_of_the_outputs(tmp_path, capsys):
    here = host_target()
    if here != "x86":
        pytest.skip("bf16 is a precision of x86")
    out = tmp_path / "digits.lite"
    words = [str(lw.shipped("digits.onnx")), "-o", str(out), "--targets", here, "--json", "-"]
    assert main(["convert", *words, "--precision", "bf16"]) == 0
    told = json.loads(capsys.readouterr().out)["precision_loss"][here]

    exact = Predictor(lw.shipped("digits.onnx"), here)
    lower = Predictor(out, here, precision="bf16")
    feeds = random_feeds(exact.graph)
    a, b = exact.run(feeds), lower.run(feeds)
    for name, want in a.items():
        distance = np.linalg.norm(want - b[name]) / np.linalg.norm(want)
        assert told[name]["rel_l2"] == pytest.approx(distance, rel=1e-6) and distance > 0
        assert told[name]["max_abs"] == np.abs(want - b[name]).max()


def test_a_target_that_computes_in_fp32_loses_nothing(tmp_path, capsys):
    words = [str(lw.shipped("digits.onnx")), "-o", str(tmp_path / "d.lite"), "--targets", "x86"]
    assert main(["convert", *words, "--precision", "fp16"]) == 0
    assert "against fp32" not in capsys.readouterr().out


def test_a_large_network_is_not_emulated_unasked(tmp_path, capsys, monkeypatch):
    if host_target() == "arm" or not usability("arm").usable:
        pytest.skip("arm is not emulated here")
    monkeypatch.setattr(convert, "EMULATED_MACS", 1)
    out = tmp_path / "d.lite"
    words = [str(lw.shipped("digits.onnx")), "-o", str(out), "--targets", "arm"]
    assert main(["convert", *words, "--precision", "fp16"]) == 0
    fix = f"lite compare {out} --backends arm,arm --precision fp32,fp16"
    assert f"takes long under emulation; to measure: {fix}" in capsys.readouterr().out
    assert main(fix.split()[1:]) == 0


LINES = """<ir_version: 9, opset_import: ["" : 18]> g (float[9] m, float[9,4] x) => (float[n,4] y) {
    found = NonZero(m)
    places = Transpose(found)
    rows = GatherND(x, places)
    y = Neg(rows)
}"""


def test_layers_that_need_python_are_named(tmp_path, capsys):
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    onnx.save(onnx.parser.parse_model(LINES), tmp_path / "m.onnx")
    words = ["convert", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.lite")]
    assert main([*words, "--targets", "x86,opencl"]) == 0
    note = (
        "no program for lite_run: it cannot run GatherND, Neg without Python; "
        "`lite convert --outputs places` ends before that"
    )
    assert capsys.readouterr().out.splitlines()[1:] == [f"x86: {note}", f"opencl: {note}"]
    assert main(["info", str(tmp_path / "m.lite"), "--json", "-"]) == 0
    told = json.loads(capsys.readouterr().out)
    without = {s["op"] for s in told["support"] if not s["supported"] and s["target"] == "x86"}
    assert without == {"GatherND", "Neg"}
    assert main([*words, "--targets", "x86", "--outputs", "places", "--json", "-"]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == {}


#: What it computes, and where it ends: the layer without a bound in a branch, or behind an If that
#: has a program only beside sizes that are open.
BRANCHES = {
    "a layer in a branch": ("""
        mean = If (c) <then_branch = a () => (float[4] up) {
            up = ReduceMean<keepdims = 0>(rows, axis)
        }, else_branch = b () => (float[4] low) {
            low = ReduceMax<keepdims = 0>(rows, axis)
        }>
        y = Tanh(mean)
        z = Tanh(x)""", "ReduceMean", "rows,c,z"),
    "an If beside it": ("""
        part = If (c) <then_branch = a () => (float[9] up) { up = Neg(p) },
                       else_branch = b () => (float[9] low) { low = Abs(p) }>
        square = Mul(x, x)
        y = Unique(square)
        z = Tanh(part)""", "Unique", "p,c,square"),
}  # fmt: skip


@pytest.mark.parametrize("case", BRANCHES)
def test_the_advised_end_lies_before_the_whole_if(case, tmp_path, capsys):
    onnx = pytest.importorskip("onnx", reason="pip install onnx")
    body, missing, ends = BRANCHES[case]
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
    g (float[9] m, float[9,4] x) => (float[n] y, float[k,l] z) {{
        axis = Constant<value = int64[1] {{0}}>()
        p = Relu(m)
        found = NonZero(p)
        places = Squeeze(found, axis)
        rows = Gather(x, places)
        sum = ReduceSum<keepdims = 0>(m)
        three = Constant<value = float {{3.0}}>()
        c = Less(sum, three)
        {body}
    }}"""
    onnx.save(onnx.parser.parse_model(text), tmp_path / "m.onnx")
    words = ["convert", str(tmp_path / "m.onnx"), "-o", str(tmp_path / "m.lite")]
    words += ["--targets", "x86", "--json", "-"]
    assert main(words) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == {
        "x86": f"no program for lite_run: it cannot run {missing} without Python; "
        f"`lite convert --outputs {ends}` ends before that"
    }
    assert main([*words, "--outputs", ends]) == 0
    assert json.loads(capsys.readouterr().out)["notes"] == {}


def test_an_edited_file_keeps_its_targets_or_gets_the_usual_ones(tmp_path, capsys):
    """What `lite_run` finds, asked of it, is what the commands say."""
    source, bare = str(lw.shipped("digits.onnx")), str(tmp_path / "bare.lite")

    def found(path):
        done = subprocess.run([runner_path(), path, "--info"], capture_output=True, text=True)
        return json.loads(done.stdout)["targets"].split() if done.returncode == 0 else []

    assert main(["edit", source, "-o", bare, "--batch", "2"]) == 0
    said = capsys.readouterr().out
    assert f"it has no program for a device yet; `lite convert {bare} -o {bare}` makes it" in said
    assert found(bare) == []
    assert main(["convert", bare, "-o", bare]) == 0
    assert "x86 fp32, arm fp32, opencl fp32; " in capsys.readouterr().out
    assert found(bare) == ["x86", "arm", "opencl"]

    one, edited = str(tmp_path / "one.lite"), str(tmp_path / "edited.lite")
    assert main(["convert", source, "-o", one, "--targets", host_target()]) == 0
    assert main(["edit", one, "-o", edited, "--batch", "2"]) == 0
    said = capsys.readouterr().out
    assert f"  targets {host_target()}\n" in said and "no program" not in said
    assert found(edited) == [host_target()]


def test_an_edited_file_keeps_its_overrides(tmp_path, capsys):
    source, own, edited = str(lw.shipped("digits.onnx")), tmp_path / "o.lite", tmp_path / "e.lite"
    target, layers = host_target(), ("/b1/dw/Conv", "/b5/Conv")
    words = ["convert", source, "-o", str(own), "--targets", target]
    assert main([*words, *(w for name in layers for w in ("--layer", f"{name}=reference"))]) == 0
    assert main(["edit", str(own), "-o", str(edited), "--rename", "image=picture"]) == 0
    assert "overrides" not in capsys.readouterr().out
    assert read_model(edited).overrides == {target: dict.fromkeys(layers, "reference")}
    outputs = read_model(own).graph.nodes[3].output.name
    assert main(["edit", str(own), "-o", str(edited), "--outputs", outputs]) == 0
    assert "overrides of layers that are gone are dropped: /b5/Conv" in capsys.readouterr().out
    assert list(read_model(edited).overrides[target]) == ["/b1/dw/Conv"]
