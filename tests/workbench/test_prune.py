"""`lite prune` and `session.prune` on a lesson's model."""

from __future__ import annotations

import json

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import settings
from lite_engine.errors import CalibrationError
from lite_engine.ir import from_text
from lite_engine.model_file import open_model, optimize
from lite_engine.ops import infer_types
from lite_workbench import rich
from lite_workbench.cli import main

pytestmark = pytest.mark.cpu
RNG = np.random.default_rng(4)


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Threads that wait for each other are slow where workers of pytest share the processors."""
    with settings.override(LITE_THREADS="1"):
        yield


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
        assert (
            told["trade_off"] is None
            and told["budget"]["reached"]
            and told["budget"]["loss"] <= 0.05
        )
        assert told["channels"][0]["after"] < told["channels"][0]["before"]
    else:
        assert "the budget is 5 points" in str(told["error"])


def test_a_session_gets_a_version(files):
    session = lw.open(files / "m.lite")
    made = session.prune(str(files / "x.npz"), sparsity=0.8, measure=False)
    assert session.version == "pruned" and made.made.passed
    assert "session.prune" in session.code[-1]
    assert made.table()[1][0][0] == "c" and "dB" in made.headline


@pytest.fixture(scope="module")
def half_and_less():
    """The shipped digits with 20 % of the channels gone, and 50 % beside."""
    session = lw.open(lw.shipped("digits.onnx"))
    with np.load(lw.shipped("digits_held_back.npz")) as held:
        pictures = held["images"][:10]
    return session, pictures, session.prune(pictures, channels=0.2, also=[0.5, 0.2], force=True)


def test_the_trade_off_is_what_each_share_alone_gives(half_and_less):
    session, pictures, made = half_and_less
    found = made.trade_off
    assert [p["share"] for p in found.points] == [0.2, 0.5] and not found.skipped
    dense = lw.open(lw.shipped("digits.onnx"))
    judged = pictures[4::5]  # one in five is held out
    before = [dense.run(picture).text for picture in judged]
    for point in found.points[1:]:
        alone = lw.open(lw.shipped("digits.onnx"))
        own = alone.prune(pictures, channels=point["share"], measure=False, force=True)
        assert point["sqnr_db"] == own.made.sqnr_db
        same = np.mean([alone.run(x).text == b for x, b in zip(judged, before, strict=True)])
        assert point["accuracy"] == pytest.approx(100 * same)
        consts = [v.const.nbytes for v in alone.model.graph.constants() if v.const is not None]
        assert point["bytes"] == sum(consts) < found.dense["bytes"]
        assert point["latency_ms"] > 0 and f"{100 * point['share']:.0f} % fewer" in point["label"]
    assert found.points[0]["sqnr_db"] == made.made.sqnr_db
    assert found.points[1]["bytes"] < found.points[0]["bytes"]
    assert "also=[0.5, 0.2]" in session.code[-1]


def test_the_widget_and_the_figure_show_it(half_and_less):
    made, found = half_and_less[2], half_and_less[2].trade_off
    widget = rich._VIEWS["Pruning"](made).children[0]
    assert (widget.points, widget.float_, widget.metric) == (
        found.points, found.dense, found.metric)  # fmt: skip
    widget.budget = 100.0
    assert widget.best == widget.choose(100.0) >= 0
    shares, dense = made.figure().data
    assert list(shares.y) == [p["accuracy"] for p in found.points]
    assert [c[0] for c in shares.customdata] == [p["label"] for p in found.points]
    assert list(dense.x) == [found.dense["latency_ms"]]


def test_plain_values_are_judged_by_their_error(files, capsys):
    words = ["prune", str(files / "m.lite"), "--calibration", str(files / "x.npz"), "--force",
             "-o", str(files / "p.lite"), "--channels", "0.1", "--sparsity", "0.9"]  # fmt: skip
    session = lw.open(files / "m.lite")
    try:
        found = session.prune(str(files / "x.npz"), sparsity=0.8, also=[0.9], force=True).trade_off
    except CalibrationError as error:  # a busy machine
        assert "not faster here" in error.fix
        return
    assert len(found.points) + len(found.skipped) == 2
    for point in found.points:
        assert point["accuracy"] == pytest.approx(100 - 100 * 10 ** (-point["sqnr_db"] / 20))
    assert main([*words, "--also", "0.7", "--no-measure"]) == 2
    assert "leave out --no-measure" in capsys.readouterr().err
    assert main([*words, "--also", "1.5"]) == 2


def test_what_is_missing_is_named(files, capsys):
    base = ["prune", str(files / "m.lite"), "-o", str(files / "p.lite")]
    assert main(base) == 2
    assert "--calibration" in capsys.readouterr().err
    assert main([*base, "--calibration", str(files / "x.npz"), "--max-drop", "1%"]) == 2
    assert "--data" in capsys.readouterr().err
