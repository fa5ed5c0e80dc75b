"""`lite prune` and `session.prune` on a lesson's model."""

from __future__ import annotations

import json

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine.ir import from_text
from lite_engine.model_file import open_model, optimize
from lite_engine.ops import infer_types
from lite_workbench.cli import main

pytestmark = pytest.mark.cpu
RNG = np.random.default_rng(4)


@pytest.fixture
def files(tmp_path):
    """A pointwise layer of 64 channels and samples of it."""
    w = RNG.standard_normal((64, 64, 1, 1)).astype(np.float32)
    graph = from_text(
        'graph "g" {\n  input x: f32[1,64,12,12]\n  const w: f32[64,64,1,1] = @0\n'
        '  "c": y = Conv(x, w)\n  output y\n}', [w],
    )  # fmt: skip
    infer_types(graph)
    optimize(graph, targets=["x86", "arm"]).save(tmp_path / "m.lite")
    x = np.einsum(
        "nkhw,kc->nchw", RNG.standard_normal((10, 5, 12, 12)), RNG.standard_normal((5, 64))
    )
    np.savez(tmp_path / "x.npz", x=x.astype(np.float32))
    return tmp_path


def test_the_file_has_the_zeros_and_the_report_the_times(files, capsys):
    words = ["prune", str(files / "m.lite"), "--calibration", str(files / "x.npz"), "-o",
             str(files / "p.lite"), "--json", "-"]  # fmt: skip
    code = main(words)
    told = json.loads(capsys.readouterr().out)
    if code == 1:  # a busy machine may find the sparse kernel slower: then nothing is left to prune
        assert "not faster here" in told["error"]["fix"]
        return
    assert code == 0
    (layer,) = told["layers"]
    (weight,) = [
        v.const for v in open_model(files / "p.lite").graph.constants() if v.const.ndim == 4
    ]
    assert (weight == 0).mean() == pytest.approx(layer["zeros"], abs=1e-3)
    assert layer["zeros"] >= 0.8 and told["guard"]["held_out"]
    assert told["gains"][0]["dense_ms"] > 0 and told["latency"]["pruned_ms"] > 0


def test_where_nothing_gains_it_says_so(files, capsys):
    words = ["prune", str(files / "m.lite"), "--calibration", str(files / "x.npz"), "-o",
             str(files / "p.lite"), "--pattern", "2:4"]  # fmt: skip
    assert main(words) == 0
    assert "they need 70 % zeros" in capsys.readouterr().out


@pytest.mark.parametrize(("share", "reached"), [("0.2", True), ("0.9", False)])
def test_labeled_data_judges_it(tmp_path, capsys, share, reached):
    words = ["prune", str(lw.shipped("digits.onnx")), "-o", str(tmp_path / "p.lite"), "--data",
             str(lw.shipped("digits_held_back.npz")), "--limit", "20", "--no-measure",
             "--channels", share, "--max-drop", "5%", "--json", "-"]  # fmt: skip
    code = main(words)
    told = json.loads(capsys.readouterr().out)
    assert (code == 0) == reached == (tmp_path / "p.lite").exists()
    if reached:
        assert told["budget"]["reached"] and told["budget"]["loss"] <= 0.05
        assert told["channels"][0]["after"] < told["channels"][0]["before"]
    else:
        assert "the budget is 5.0 points" in str(told["error"])


def test_a_session_gets_a_version(files):
    session = lw.open(files / "m.lite")
    made = session.prune(str(files / "x.npz"), sparsity=0.8, measure=False)
    assert session.version == "pruned" and made.made.passed
    assert "session.prune" in session.code[-1]
    assert made.table()[1][0][0] == "c" and "dB" in made.headline


def test_what_is_missing_is_named(files, capsys):
    base = ["prune", str(files / "m.lite"), "-o", str(files / "p.lite")]
    assert main(base) == 2
    assert "--calibration" in capsys.readouterr().err
    assert main([*base, "--calibration", str(files / "x.npz"), "--max-drop", "1%"]) == 2
    assert "--data" in capsys.readouterr().err
