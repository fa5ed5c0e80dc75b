"""Files beside a model that were damaged or written by hand: one line of ours, or as good as none.

A trade-off curve, an interrupted calibration, kept runs, devices, tables of a machine.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_engine.backends.opencl.tuning import Tuning
from lite_engine.devices import registry
from lite_engine.errors import CalibrationError, LiteError, ModelFormatError, UsageError
from lite_engine.history import History
from lite_engine.profile import LayerTime, Profile, roof
from lite_engine.quantize import Calibration, Options, read_curve
from lite_engine.quantize.scheme import Scheme
from lite_engine.quantize.statistics import Statistics

from tests.profile.profiles import made_up

DEEP = "[" * 100_000
NO_JSON = ["", "{", "5", "null", "[1]", '["a"]', "[null]", '{"a": 1}', DEEP]


def _point(**change: Any) -> dict[str, Any]:
    options = Options(scheme=Scheme(keep_float=frozenset({"a"})))
    return {"float_layers": 1, "sqnr_db": 30.0, "top1_agreement": None, "cost": 5.0,
            "size_bytes": 7, "scheme": options.scheme.to_dict(), "options": options.to_dict(),
            **change}  # fmt: skip


def test_a_good_curve_is_read(tmp_path: Path) -> None:
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"points": [_point()]}))
    (point,) = read_curve(path)["points"]
    assert Options.from_dict(point["options"]).scheme.keep_float == {"a"}


@pytest.mark.parametrize("text", [
    *NO_JSON,
    json.dumps({"points": [1]}),
    json.dumps({"points": [_point(scheme={"activation": "u8", "keep_float": 5})]}),
    json.dumps({"points": [_point(scheme={"activation": "f32"})]}),
    json.dumps({"points": [_point(options=None)]}),
    json.dumps({"points": [_point(sqnr_db="30")]}),
])  # fmt: skip
def test_damaged_curves(tmp_path: Path, text: str) -> None:
    path = tmp_path / "c.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=r"c\.json: not a trade-off curve \("):
        read_curve(path)


@pytest.mark.parametrize("change", [{"method": 5}, {"scheme": 5}, {"limit": "x"}, {"method": "x"}])
def test_damaged_options(change: dict[str, Any]) -> None:
    with pytest.raises((ModelFormatError, UsageError)):
        Options.from_dict({**Options().to_dict(), **change})


def _saved(**change: np.ndarray | None) -> dict[str, np.ndarray]:
    statistics = Statistics()
    assert statistics.update(np.arange(24, dtype=np.float32).reshape(1, 2, 3, 4))
    arrays = {f"{k}/x": v for k, v in statistics.arrays().items()} | {"samples": np.array(1)}
    return {k: v for k, v in {**arrays, **change}.items() if v is not None}


def test_a_good_calibration_is_read(tmp_path: Path) -> None:
    np.savez(tmp_path / "r.npz", **_saved())
    assert Calibration.load(tmp_path / "r.npz").statistics["x"].high == 23


@pytest.mark.parametrize("change", [
    {"samples": None}, {"samples": np.array("x")}, {"samples": np.array([1, 2])},
    {"samples": np.array(-1)}, {"numbers/x": np.array(5.0)}, {"numbers/x": np.full(9, np.nan)},
    {"numbers/x": np.full(9, -1.0)},  # an edge below 0 would double for ever
    {"counts/x": np.array(["x"])}, {"counts/x": np.zeros(3, np.int64)}, {"counts/x": None},
    {"channel_low/x": np.zeros((), np.complex64)}, {"channel_low/x": None},
    {"channel_sum/x": np.zeros(7)}, {"channel_high/x": np.zeros(2, np.int64)},
])  # fmt: skip
def test_damaged_calibrations(tmp_path: Path, change: dict[str, np.ndarray | None]) -> None:
    np.savez(tmp_path / "r.npz", **_saved(**change))
    with pytest.raises(CalibrationError, match=r"r\.npz: not a saved calibration \("):
        Calibration.load(tmp_path / "r.npz")


def _profile() -> Profile:
    layer = LayerTime(0, "l", "Relu", [], "cpu", "k", "", [[1, 2]], [[1, None]], "f32", 1.0, 1.0,
                      1.0, None, 1.0, 0, 2, 8, 0, 0.1, 0.1)  # fmt: skip
    totals = dict.fromkeys(("median", "min", "mean", "p90", "p99", "max"), 1.0)
    return Profile("m", "x86", "local", 1, {"cpu": "c"}, totals, 2.0, [layer], 0.0, 100)


@pytest.fixture
def history(tmp_path: Path) -> History:
    history = History(tmp_path / "runs.sqlite")
    assert history.add(_profile()) == 1
    return history


def _set(history: History, column: str, value: object) -> None:
    db = sqlite3.connect(history.path)
    db.execute(f"update runs set {column} = ?", (value,))
    db.commit()
    db.close()


def test_a_kept_run_comes_back(history: History) -> None:
    run, profile = history.get(1)
    assert (run.model, profile.to_dict()) == ("m", _profile().to_dict())


def _changed(change: Callable[[dict[str, Any]], object]) -> str:
    data = _profile().to_dict()
    change(data)
    return json.dumps(data)


@pytest.mark.parametrize("text", [
    *NO_JSON,
    _changed(lambda d: d.pop("threads")),
    _changed(lambda d: d["total_ms"].pop("median")),
    _changed(lambda d: d["layers"][0].pop("op")),
    _changed(lambda d: d["layers"][0].update(median_ms=[1])),
    _changed(lambda d: d.update(layers={})),
])  # fmt: skip
def test_damaged_profiles(history: History, text: str) -> None:
    _set(history, "profile", text)
    with pytest.raises(UsageError, match="run 1 can no longer be read") as found:
        history.get(1)
    assert "__init__" not in str(found.value) and "attribute" not in str(found.value)


@pytest.mark.parametrize(("column", "value"), [
    ("at", "x"), ("at", 1e300), ("at", float("inf")), ("tag", b"\xff"), ("threads", "many"),
    ("model", b"\xff"), ("median_ms", "x"),
])  # fmt: skip
def test_damaged_rows_are_left_out(history: History, column: str, value: object) -> None:
    assert history.add(_profile()) == 2
    db = sqlite3.connect(history.path)
    db.execute(f"update runs set {column} = ? where id = 1", (value,))
    db.commit()
    db.close()
    assert [run.id for run in history.list()] == [2]
    with pytest.raises(UsageError, match="run 1 can no longer be read"):
        history.get(1)


@pytest.mark.parametrize("text", [t for t in NO_JSON if t != "{}"])
def test_damaged_tables_of_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    (tmp_path / "devices.json").write_text(text)
    with pytest.raises(LiteError, match=r"devices\.json: damaged \(.*\); remove it") as found:
        registry.load_entries()
    assert "subscriptable" not in str(found.value) and "indices" not in str(found.value)
    assert Tuning.load(tmp_path / "devices.json").table == {}
    assert roof._read(tmp_path / "devices.json") == {}


@pytest.mark.parametrize("change", [
    {"total_ms": {"median": float("nan")}}, {"total_ms": {"median": -1.0}}, {"step_ms": 1e-300},
    {"total_ms": {"median": float("inf")}}, {"step_ms": float("nan")}, {"step_ms": -0.1},
    {"instructions": {}},
])  # fmt: skip
def test_a_profile_of_no_clock(change: dict[str, Any]) -> None:
    """Numbers that no text can be made of."""
    data = {**made_up([1.0]).to_dict(), "times_meaningful": False}
    assert Profile.from_dict(data).headline
    with pytest.raises(ModelFormatError, match=r"^profile\.(total_ms|step_ms|instructions)"):
        Profile.from_dict({**data, **change})
