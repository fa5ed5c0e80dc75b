"""Evaluations and sweeps are saved runs, and go to MLflow as it reads them itself."""

from __future__ import annotations

import json
import sqlite3

import lite_workbench as lw
import pytest
from lite_engine import optimize, settings
from lite_engine.errors import UsageError
from lite_engine.history import History
from lite_workbench.cli import main

from tests.small_models import classifier

pytestmark = pytest.mark.cpu
DIGITS = str(lw.shipped("digits.onnx"))


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(settings, "cache_dir", lambda: tmp_path)
    return tmp_path / "runs.sqlite"


def test_runs_are_listed_by_model_device_metric_and_kind(store, digit_folders, tmp_path, capsys):
    session = lw.open(DIGITS)
    session.convert(targets=["x86"])
    made = session.evaluate(digit_folders / "list.txt", ["x86", "reference"], limit=20)
    path = str(optimize(classifier(), targets=["x86"]).save(tmp_path / "m.lite"))
    assert main(["sweep", path, "--backends", "x86", "--rounds", "1"]) == 0
    capsys.readouterr()

    def listed(*words: str) -> list[dict]:
        assert main(["runs", "list", *words, "--json", "-"]) == 0
        return json.loads(capsys.readouterr().out)["runs"]

    assert [r["kind"] for r in listed()] == ["sweep", "evaluation"]
    (run,) = listed("--metric", "top-1")
    assert (run["model"], run["value"]) == ("digits", made["reference"].main.value)
    assert [r["kind"] for r in listed("--kind", "sweep")] == ["sweep"]
    assert main(["runs", "list", "--device", "rock5b"]) == 0
    assert "no saved run is of this" in capsys.readouterr().out
    assert listed("--device", "rock5b") == [] and len(listed("--model", "digits")) == 1
    assert main(["runs", "show", str(run["id"])]) == 0
    said = capsys.readouterr().out
    assert made.sentences[0] in said and str(made["x86"].main) in said
    assert main(["runs", "tag", str(run["id"]), "shipped"]) == 0
    assert main(["runs", "list"]) == 0 and "shipped" in capsys.readouterr().out
    assert main(["runs", "diff", "shipped", "shipped"]) == 2
    assert "is not a profile" in capsys.readouterr().err
    with pytest.raises(UsageError, match="is not a profile"):
        History().get("shipped")
    _, document = History().document("shipped")
    assert document["samples"] == 20 and "rows" not in document


def test_a_store_of_before_is_read(store):
    """The table had no kind, metric and value."""
    with sqlite3.connect(store) as db:
        db.execute(
            "create table runs (id integer primary key, at real not null, tag text not null default"
            " '', path text not null, model text not null, backend text not null, precision text"
            " not null, threads integer not null, device text not null, machine text not null,"
            " median_ms real not null, profile text not null)"
        )
        db.execute(
            "insert into runs values (1, 1.0, '', '', 'm', 'x86', 'fp32', 1, 'local',"
            " '', 2.5, '{}')"
        )
    (run,) = History().list()
    assert (run.kind, run.metric, run.median_ms) == ("profile", "", 2.5)


def test_mlflow_reads_what_was_exported(store, digit_folders, tmp_path, monkeypatch, capsys):
    tracking = pytest.importorskip("mlflow.tracking", reason="pip install mlflow-skinny")
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    folder, out = tmp_path / "mlruns", tmp_path / "e.json"
    words = ["evaluate", DIGITS, "--data", str(digit_folders / "list.txt"), "--limit", "30",
             "--backend", "x86,reference", "--mlflow", str(folder), "--json", str(out)]  # fmt: skip
    assert main(words) == 0
    assert main(["sweep", DIGITS, "--backends", "x86", "--batch", "1,2", "--rounds", "1",
                 "--mlflow", str(folder)]) == 0  # fmt: skip
    client = tracking.MlflowClient(tracking_uri=folder.as_uri())
    experiment = client.get_experiment_by_name("lite-workbench")
    runs = client.search_runs([experiment.experiment_id])
    sides = {r.data.params["backend"]: r for r in runs if "dataset" in r.data.params}
    wanted = json.loads(out.read_text())["sides"]
    assert {s["backend"]: s["metrics"][0]["value"] for s in wanted} == {
        name: run.data.metrics["top-1"] for name, run in sides.items()
    }
    assert sides["x86"].data.params["samples"] == "30" and sides["x86"].info.status == "FINISHED"
    (artefact,) = client.list_artifacts(sides["x86"].info.run_id)
    assert artefact.path == "result.json" and artefact.file_size > 1000
    cells = [r for r in runs if "batch" in r.data.params]
    assert 1 <= len(cells) <= 2 and all(r.data.metrics["latency_ms"] > 0 for r in cells)
    capsys.readouterr()
    # A store that cannot be written to is known before anything is measured.
    monkeypatch.setattr("lite_workbench.evaluate.evaluate", None)
    assert main([*words[:-4], "--mlflow", "nonsense://x"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
