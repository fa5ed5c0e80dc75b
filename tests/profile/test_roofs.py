"""A roofline that was measured too low is said, and measured again on request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from lite_engine import optimize, settings
from lite_engine.profile.roof import Roof
from lite_workbench.cli import main

from tests.small_models import classifier


@pytest.mark.cpu
def test_layers_above_the_roofline(tmp_path: Path, monkeypatch: Any, capsys: Any) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(tmp_path))
    kept = settings.cache_dir() / "roofs.json"
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text("{}")
    model = str(optimize(classifier()).save(tmp_path / "net.lite"))
    command = ["profile", model, "--runs", "2", "--no-history"]

    for roof, above in ((1e-6, True), (1e9, False)):
        made = Roof(roof, roof, roof, "paper", date="2026-01-02")
        monkeypatch.setattr("lite_engine.profile._profile.measured_roof", lambda _, made=made: made)
        assert main(command) == 0
        said = capsys.readouterr().out
        assert ("the roofline is too low" in said) is above
        assert "(paper, 2026-01-02)" in said
    assert kept.exists()
    assert main([*command, "--remeasure-roofs"]) == 0
    assert not kept.exists(), "the next profile measures"
