"""Energy from the counters of powercap, as the kernel writes them; its absence is said."""

from __future__ import annotations

from pathlib import Path

from lite_engine import optimize
from lite_workbench.sweep import sweep
from lite_workbench.sweep.energy import Meter

from tests.small_models import classifier


def package(root: Path, name: str, energy: int, most: int = 1_000_000) -> Path:
    folder = root / name
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "energy_uj").write_text(f"{energy}\n")
    (folder / "max_energy_range_uj").write_text(f"{most}\n")
    return folder


def test_packages_are_added_and_a_counter_may_begin_again(tmp_path):
    for name, energy in (("intel-rapl:0", 999_000), ("intel-rapl:1", 5_000), ("intel-rapl:0:0", 7)):
        package(tmp_path, name, energy)
    meter = Meter(tmp_path)
    before = meter.now()
    assert meter.why == "" and before == [999_000, 5_000]  # a part of a package counts once
    package(tmp_path, "intel-rapl:0", 1_000)
    package(tmp_path, "intel-rapl:1", 9_000)
    assert meter.spent_mj(before, meter.now()) == (2_000 + 4_000) / 1e3


def test_what_cannot_be_read_is_said(tmp_path, monkeypatch):
    assert "no RAPL" in Meter(tmp_path).why and Meter(tmp_path).now() is None
    (package(tmp_path, "intel-rapl:0", 1) / "energy_uj").write_text("none")
    assert "RAPL cannot be read" in Meter(tmp_path).why
    monkeypatch.setattr("lite_workbench.sweep.energy.ROOT", tmp_path / "none")
    monkeypatch.setattr(Meter.__init__, "__defaults__", (tmp_path / "none",))
    made = sweep(optimize(classifier(), targets=["x86"]), backends=["x86"], rounds=1)
    assert made.cells[0].energy_mj is None and "energy was not measured" in made.sentences[-1]


def test_a_sweep_has_the_energy_of_a_sample(tmp_path, monkeypatch):
    readings = iter(range(0, 10**9, 3_000))
    monkeypatch.setattr(Meter, "now", lambda self: [next(readings)])
    monkeypatch.setattr(Meter, "spent_mj", lambda self, a, b: (b[0] - a[0]) / 1e3)
    made = sweep(optimize(classifier(), targets=["x86"]), backends=["x86"], rounds=3)
    cell = made.cells[0]
    assert cell.energy_mj is not None and cell.energy_mj * cell.runs / 3 < 4
    assert "energy, mJ" in made.table()[0]
