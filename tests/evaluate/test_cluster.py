"""A local Dask cluster gives what one process gives, also when a worker dies in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import lite_workbench as lw
import pytest
from lite_engine import Predictor, optimize
from lite_engine.adapter import Adapter
from lite_engine.errors import LiteError, UsageError
from lite_workbench import cluster
from lite_workbench.cli import main
from lite_workbench.cluster import Cluster, cut
from lite_workbench.evaluate import Side, evaluate, read_dataset

from tests.evaluate import made

pytestmark = [pytest.mark.cpu]
distributed = pytest.importorskip("distributed", reason="pip install 'lite-workbench[cluster]'")


@pytest.fixture(scope="module")
def client():
    with Cluster(workers=2).open() as made_client:
        yield made_client


@pytest.mark.slow
def test_the_result_is_that_of_one_process_bit_for_bit(client, digit_folders):
    session = lw.open(lw.shipped("digits.onnx"))
    session.convert(targets=["x86"])
    alone = session.evaluate(digit_folders / "list.txt", ["x86", "reference"], limit=40)
    shared = session.evaluate(
        digit_folders / "list.txt", ["x86", "reference"], limit=40, client=client
    )
    assert shared.to_json() == alone.to_json()
    assert len(client.scheduler_info()["workers"]) == 2


@pytest.mark.slow
def test_a_worker_that_dies_costs_its_shard_only(client, tmp_path):
    labels = made.detection_set(tmp_path / "boxes", 24)
    model = optimize(made.colors_network(), targets=["x86"])
    sides = [Side("x86", Predictor(model, "x86"))]
    marker = tmp_path / "died"
    told = []
    shared = evaluate(
        sides, read_dataset(labels), adapter=Adapter(function=_dies_once(marker)),
        cluster=Cluster(client=client), progress=lambda done, total: told.append((done, total)),
    )  # fmt: skip
    alone = evaluate(sides, read_dataset(labels), adapter=Adapter(function=made.boxes_of_colors))
    assert marker.read_text() != str(os.getpid())
    assert shared.to_json() == alone.to_json() and told[-1] == (24, 24)


@pytest.mark.slow
def test_a_client_whose_only_worker_dies_gets_the_models_again(tmp_path):
    """Nobody has the models and the shared data any more, but the scheduler lives."""
    labels = made.detection_set(tmp_path / "boxes", 12)
    sides = [Side("x86", Predictor(optimize(made.colors_network(), targets=["x86"]), "x86"))]
    marker = tmp_path / "died"
    with Cluster(workers=1).open() as alone_client:
        shared = evaluate(
            sides, read_dataset(labels), adapter=Adapter(function=_dies_once(marker)),
            cluster=Cluster(client=alone_client),
        )  # fmt: skip
    alone = evaluate(sides, read_dataset(labels), adapter=Adapter(function=made.boxes_of_colors))
    assert marker.read_text() != str(os.getpid())
    assert shared.to_json() == alone.to_json()


@pytest.mark.slow
def test_a_shard_that_ends_every_worker_ends_the_work(client, tmp_path):
    labels = made.detection_set(tmp_path / "boxes", 4)
    sides = [Side("x86", Predictor(optimize(made.colors_network(), targets=["x86"]), "x86"))]

    def read(outputs, picture):
        os._exit(1)

    with pytest.raises(LiteError, match="the cluster was lost"):
        evaluate(
            sides, read_dataset(labels), adapter=Adapter(function=read),
            cluster=Cluster(client=client),
        )  # fmt: skip


def _dies_once(marker):
    """Reads boxes, but the first process that calls it ends at once."""

    def read(outputs, picture):
        try:
            descriptor = os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY)
        except FileExistsError:
            return made.boxes_of_colors(outputs, picture)
        os.write(descriptor, str(os.getpid()).encode())
        os._exit(1)

    return read


@pytest.mark.slow
def test_the_command_starts_a_cluster_of_its_own(digit_folders, capsys):
    bad = digit_folders / "damaged.txt"
    bad.write_text("nothing.png 1\n" + (digit_folders / "list.txt").read_text())
    words = ["evaluate", str(lw.shipped("digits.onnx")), "--data", str(bad), "--limit", "30"]
    assert main(words) == 0
    alone = capsys.readouterr().out
    assert main([*words, "--workers", "2"]) == 0
    assert capsys.readouterr().out == alone and "left out: " in alone


def test_nothing_is_served_over_http_unless_a_dashboard_is_asked_for(client):
    """Dask listens all the same; without routes it tells nobody about tasks and workers."""
    base = client.dashboard_link.removesuffix("/status")
    for path in ("/status", "/info/main/workers.html", "/json/counts.json", "/metrics", "/health"):
        with pytest.raises(urllib.error.HTTPError, match="404"):
            urllib.request.urlopen(base + path, timeout=10)
    with pytest.raises(UsageError, match="--dashboard needs --workers"):
        Cluster(client=client, dashboard=True)


def test_a_dashboard_needs_its_package(digit_folders, capsys, monkeypatch):
    words = ["evaluate", str(lw.shipped("digits.onnx")), "--data", str(digit_folders / "list.txt")]
    found = cluster.find_spec
    monkeypatch.setattr(cluster, "find_spec", lambda n: None if n == "bokeh" else found(n))
    assert main([*words, "--workers", "1", "--dashboard"]) == 1
    assert "`pip install bokeh`" in capsys.readouterr().err
    assert main([*words, "--dashboard"]) == 2


def test_a_script_without_a_main_guard_is_told(tmp_path):
    """Its workers import it, and would start workers."""
    (tmp_path / "s.py").write_text(
        "from lite_workbench.cluster import Cluster\nwith Cluster(workers=1).open():\n    pass\n"
    )
    ran = subprocess.run([sys.executable, "s.py"], cwd=tmp_path, capture_output=True, text=True,
                         timeout=120, check=False)  # fmt: skip
    assert ran.returncode == 1 and '`if __name__ == "__main__":`' in ran.stderr.splitlines()[-1]


def test_shards_are_cut_in_order():
    shards = cut(list(range(10)), 2)
    assert [x for shard in shards for x in shard] == list(range(10))
    assert [len(shard) for shard in shards] == [2, *[1] * 8]
    assert [len(shard) for shard in cut(range(100), 2)][:4] == [13, 11, 10, 9]
    assert cut([], 2) == []


def test_what_is_wrong_is_said(digit_folders, capsys):
    words = ["evaluate", str(lw.shipped("digits.onnx")), "--data", str(digit_folders / "list.txt")]
    assert main([*words, "--workers", "2", "--scheduler", "tls://127.0.0.1:1"]) == 2
    assert "leave out --scheduler" in capsys.readouterr().err
    assert main([*words, "--scheduler", "nonsense://x"]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    with pytest.raises(UsageError):
        Cluster(2, "tcp://x")
    assert not Cluster().used and issubclass(UsageError, LiteError) and Path(__file__).is_file()
