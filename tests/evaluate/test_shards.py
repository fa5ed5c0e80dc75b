"""What runs on a cluster besides `evaluate`: calibration, sweeps, boards; data at URLs; a scheduler
that comes back. The numbers are those of one process."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.adapter import Adapter
from lite_engine.devices import add_entry
from lite_engine.errors import CalibrationError, UsageError
from lite_engine.quantize import Options, quantize
from lite_engine.quantize.calibrate import BLOCK
from lite_workbench import cluster_resources
from lite_workbench.budget import Feeds
from lite_workbench.cluster import Cluster, _sent
from lite_workbench.evaluate import Side, evaluate, read_dataset
from lite_workbench.quantize_shards import calibrator
from lite_workbench.quantizing import FastRun, float_graph
from lite_workbench.sweep import sweep
from PIL import Image

from tests.evaluate import made
from tests.small_models import Builder

pytestmark = [pytest.mark.cpu, pytest.mark.slow]
distributed = pytest.importorskip("distributed", reason="pip install 'lite-workbench[cluster]'")
MODEL = lw.shipped("digits.onnx")


@pytest.fixture(scope="module")
def client():
    with Cluster(workers=2).open() as made_client:
        yield made_client


@pytest.fixture(scope="module")
def model():
    return optimize(MODEL, targets=["x86"])


def test_a_model_is_sent_once_to_each_worker(client, model, digit_folders):
    data = read_dataset(digit_folders / "list.txt").first(24)
    for _ in range(2):
        evaluate([Side("x86", Predictor(model, "x86"))], data, cluster=Cluster(client=client))
        assert not client.amm.running()  # it would drop copies that no task waits for
    keys = [k for own in client.has_what().values() for k in own if "lite-model-" in str(k)]
    assert len(keys) == 2 and len(set(keys)) == 1  # one on each worker, named by its content
    (future,) = _sent[client].values()
    assert hashlib.sha256(future.result()).hexdigest() in future.key


@pytest.mark.parametrize("source", ["arrays", "data set"])
def test_calibration_is_that_of_one_process_bit_for_bit(client, model, digits, source, tmp_path):
    count = 3 * BLOCK + 20  # and some are held out: the last block is not full
    graph = float_graph(model)
    if source == "arrays":
        given = [np.repeat(x[..., None], 3, axis=2) for x in digits[0][:count]]
    else:
        given = Feeds(model, read_dataset((digits[0][:count], digits[1][:count])))
    options = Options(method="avg", rounding="sums")
    alone = quantize(graph, given, options, run=FastRun(), force=True)
    told = []
    shared = quantize(
        graph, given, options, run=FastRun(), force=True,
        progress=lambda done, total: told.append((done, total)),
        calibrator=calibrator(Cluster(client=client)),
    )  # fmt: skip
    assert shared.calibration.samples == alone.calibration.samples == count - 16
    for name, statistics in alone.calibration.statistics.items():
        for key, array in statistics.arrays().items():
            got = shared.calibration.statistics[name].arrays()[key]
            np.testing.assert_array_equal(got, array, err_msg=f"{name} {key}")
    assert shared.ranges == alone.ranges and told[-1] == (count - 16, count - 16)
    assert [f["image"].tobytes() for f in shared.held] == [f["image"].tobytes() for f in alone.held]


@pytest.mark.parametrize("count", [300, pytest.param(5000, marks=pytest.mark.hours)])
def test_calibration_streams_at_constant_memory(client, tmp_path, count):
    """An image takes 0.8 MB as a feed, and 0.8 MB on its way: those of `count` would show."""
    b = Builder((1, 3, 256, 256), "large")
    graph = optimize(b.done(b.add("AveragePool", b.x, name="p", kernel_shape=[8, 8],
                                  strides=[8, 8])), targets=["x86"]).graph  # fmt: skip
    ramp = np.linspace(0, 255, 256).astype(np.uint8)
    for i in range(count):
        picture = np.broadcast_to(np.roll(ramp, i)[None, :, None], (256, 256, 3))
        Image.fromarray(np.ascontiguousarray(picture)).save(tmp_path / f"{i:04}.bmp")
    sizes: list[int] = []

    def progress(done: int, total: int) -> None:
        if done >= 2 * BLOCK:
            sizes.append(max(client.run(_resident).values()))

    made_of = quantize(graph, tmp_path, Options(method="minmax", rounding="sums"), run=FastRun(),
                       progress=progress, calibrator=calibrator(Cluster(client=client)),
                       force=True)  # fmt: skip
    assert made_of.calibration.samples == count - 16
    grown = (max(sizes) - sizes[0]) / 1e6
    print(f"{count} images: a worker grew by {grown:.1f} MB beyond {sizes[0] / 1e6:.0f} MB")
    assert grown < 60


def _resident() -> int:
    import psutil

    return psutil.Process().memory_info().rss


def test_what_cannot_be_calibrated_is_said(client, model, digits):
    graph = float_graph(model)
    made_of = calibrator(Cluster(client=client))
    feeds = ({"image": np.zeros((1, 1, 32, 32), np.float32)} for _ in range(3))
    with pytest.raises(CalibrationError, match="all 3 calibration samples are the same"):
        quantize(graph, feeds, run=FastRun(), calibrator=made_of)
    bad = [np.full((1, 1, 32, 32), np.nan if i == 40 else i, np.float32) for i in range(60)]
    with pytest.raises(CalibrationError, match=r"NaN or infinity in image .* sample 33"):
        quantize(graph, bad, run=FastRun(), calibrator=made_of)  # the 33rd that is not held out


def test_a_sweep_measures_on_one_worker_of_each_machine(client, model, digits, tmp_path):
    data = read_dataset((digits[0][:40], digits[1][:40]))
    given = {"backends": ["x86"], "threads": [1], "batches": [1, 2, 3, 4, 5], "streams": [1, 2],
             "rounds": 2}  # fmt: skip
    found = sweep(model, data=data, cluster=Cluster(client=client), **given,
                  resume=tmp_path / "s.json")  # fmt: skip
    assert len(found.cells) == 10 and {c.status for c in found.cells} <= {"measured", "stopped"}
    assert all(c.latency_ms > 0 and c.machine for c in found.cells)
    alone = evaluate([Side("x86", Predictor(model, "x86"))], data)["x86"].main
    assert {c.value for c in found.cells} == {alone.value}
    owners = client.run_on_scheduler(cluster_resources._resources)
    assert sorted(own.get("timing", 0) for own in owners.values()) == [0, 1]
    again = sweep(model, data=data, cluster=Cluster(client=client), **given,
                  resume=tmp_path / "s.json")  # fmt: skip
    assert [c.latency_ms for c in again.cells] == [c.latency_ms for c in found.cells]


def test_a_board_is_reached_from_the_worker_that_has_it(client, model, digits):
    data = read_dataset((digits[0][:8], digits[1][:8]))
    side = Side("x86", Predictor(model, "x86"), device="rock")
    with pytest.raises(UsageError, match="no worker has the resource board:rock"):
        evaluate([side], data, cluster=Cluster(client=client))
    add_entry("rock", "local")  # the same list of devices as the workers': lite_run on this machine
    address = sorted(client.nthreads())[0]
    client.run(cluster_resources._take, "board:rock", workers=[address])
    found = evaluate([side], data, cluster=Cluster(client=client))
    assert found.rows == evaluate([Side("x86", Predictor(model, "x86"))], data).rows
    where = client.run(_device_sides)
    assert where[address] == ["rock"] and not any(v for a, v in where.items() if a != address)
    with pytest.raises(UsageError, match="one board at a time"):
        evaluate([side, Side("b", side.predictor, device="other")], data,
                 cluster=Cluster(client=client))  # fmt: skip


def _device_sides() -> list[str]:
    from lite_workbench.evaluate import shards

    return [eval(key)[-1] for key in shards._sides if eval(key)[-1] != "local"]


def test_data_at_a_url_is_fetched_by_whoever_uses_it(client, model, digit_folders):
    side = [Side("x86", Predictor(model, "x86"))]
    here = evaluate(side, read_dataset(digit_folders / "list.txt").first(30))
    url = (digit_folders / "list.txt").as_uri()
    there = read_dataset(url).first(30)
    assert there.name == "list" and type(there.samples[0].source).__name__ == "Remote"
    for cluster in (None, Cluster(client=client)):
        assert evaluate(side, there, cluster=cluster).to_json() == here.to_json()
    folders = read_dataset((digit_folders / "classes").as_uri())
    assert len(folders) == 100 and list(folders.classes) == list("0123456789")
    with pytest.raises(UsageError, match=r"cannot be read|expected 1 to"):
        read_dataset(digit_folders.as_uri() + "/nothing-there/")


@pytest.mark.sweep
def test_a_scheduler_that_is_started_again_loses_nothing(model, tmp_path):
    labels = made.detection_set(tmp_path / "boxes", 24)
    sides = [Side("x86", Predictor(optimize(made.colors_network(), targets=["x86"]), "x86"))]
    marker = tmp_path / "seen"

    def read(outputs, picture):
        with marker.open("a") as file:
            file.write("x")
        time.sleep(0.05)
        return made.boxes_of_colors(outputs, picture)

    port = 20000 + os.getpid() % 20000
    running = _cluster(port, tmp_path)
    found = []
    told = []
    thread = threading.Thread(target=lambda: found.append(evaluate(
        sides, read_dataset(labels), adapter=Adapter(function=read),
        cluster=Cluster(scheduler=f"tcp://127.0.0.1:{port}"),
        progress=lambda done, total: told.append(done),
    )))  # fmt: skip
    try:
        thread.start()
        limit = time.monotonic() + 60
        while not any(told) and time.monotonic() < limit:
            time.sleep(0.02)
        for process in running:
            process.kill()
            process.wait()
        before = max(told)
        running = _cluster(port, tmp_path)
        thread.join(90)
    finally:
        for process in running:
            process.kill()
            process.wait()
    alone = evaluate(sides, read_dataset(labels), adapter=Adapter(function=made.boxes_of_colors))
    assert found and found[0].to_json() == alone.to_json()
    assert 0 < before < 24 and told[-1] == 24


def _cluster(port: int, folder: Path) -> list[subprocess.Popen]:
    """A scheduler at the port, and a worker."""
    address, quiet = f"tcp://127.0.0.1:{port}", subprocess.DEVNULL
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1",
                 "--port", str(port), "--no-dashboard"]  # fmt: skip
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1",
              "--no-nanny", "--no-dashboard", "--local-directory", str(folder)]  # fmt: skip
    return [
        subprocess.Popen(words, stdout=quiet, stderr=quiet, cwd=Path.cwd())
        for words in (scheduler, worker)
    ]
