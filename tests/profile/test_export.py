"""Exports of a profile, its memory map and its roof."""

from __future__ import annotations

import csv
import io
import json
from itertools import pairwise

import pytest
from lite_engine import Predictor, optimize, settings
from lite_engine.profile import profile
from lite_engine.profile.export import chrome_trace, layers_csv, netron_attachment
from lite_engine.profile.memory_map import memory_map
from lite_engine.profile.roof import Roof
from lite_engine.runtime import host_target
from lite_engine.terminal import printable
from lite_workbench.cli import main

from tests.profile.profiles import made_up
from tests.small_models import classifier, image

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    graph = classifier()
    with settings.override(LITE_CACHE_DIR=str(tmp_path_factory.mktemp("cache"))):
        return profile(Predictor(graph, host_target(), threads=1), image(graph), runs=5)


def test_csv_has_every_layer(measured) -> None:
    rows = list(csv.DictReader(io.StringIO(layers_csv(measured))))
    assert [r["name"] for r in rows] == [x.name for x in measured.layers]
    assert float(rows[0]["median_ms"]) == measured.layers[0].median_ms


def test_csv_alone_on_standard_output(tmp_path, capsys) -> None:
    model = str(optimize(classifier(), targets=[host_target()]).save(tmp_path / "m.lite"))
    assert main(["profile", model, "--backend", host_target(), "--runs", "2", "--csv", "-"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert rows and all(float(row["median_ms"]) > 0 for row in rows)


@pytest.mark.parametrize("name", ["=1+1", "+1", "-1", "@sum(a1)", " =1", '=cmd|" /c x"!a1'])
def test_a_name_is_no_formula(name: str) -> None:
    profile = made_up([-1.5])
    profile.layers[0].name, profile.layers[0].sources = name, [name, "b\x1b[2J"]
    (row,) = csv.DictReader(io.StringIO(layers_csv(profile)))
    assert row["name"] == f"'{printable(name)}" and row["sources"].startswith("'")
    assert "\x1b" not in row["sources"] and float(row["median_ms"]) == -1.5


def test_trace_has_real_spans(measured) -> None:
    events = [e for e in chrome_trace(measured)["traceEvents"] if e["ph"] == "X"]
    layers = [e for e in events if e["name"] != "run"]
    assert len(layers) == len(measured.layers)
    for first, second in pairwise(layers):
        assert first["ts"] + first["dur"] <= second["ts"] + 1e-6
    json.dumps(events, allow_nan=False)


def test_trace_is_in_the_format(measured) -> None:
    """Trace Event Format: numbers for process and thread, µs, names in metadata events."""
    events = chrome_trace(measured)["traceEvents"]
    assert {e["ph"] for e in events} == {"M", "X"}
    assert all(isinstance(e[k], int) for e in events for k in ("pid", "tid"))
    named = {e["tid"]: e["args"]["name"] for e in events if e["name"] == "thread_name"}
    assert named == {0: "run", 1: "cpu"}
    spans = [e for e in events if e["ph"] == "X"]
    assert all(e["dur"] >= 0 and e["cat"] and e["tid"] in named for e in spans)
    assert spans[0]["dur"] == pytest.approx(1e3 * max(measured.total_ms["median"], max(
        x.span_ms[1] for x in measured.layers)))  # fmt: skip


def test_netron_names_the_nodes_of_the_file(measured) -> None:
    attachment = netron_attachment(measured)
    assert attachment["signature"] == "netron:attachment"
    assert {"stem", "dw", "pw", "fc"} <= {m["target"] for m in attachment["metrics"]}


def check_map(found) -> None:
    tensors, whole = found["tensors"], found["arena_bytes"] + found["device_bytes"]
    for i, a in enumerate(tensors):
        assert a["offset"] + a["bytes"] <= whole
        for b in tensors[i + 1 :]:
            together = a["first"] <= b["last"] and b["first"] <= a["last"]
            low, high = sorted((a, b), key=lambda t: t["offset"])
            apart = low["offset"] + low["bytes"] <= high["offset"]
            assert not together or apart, (a, b)
    peak = found["peak"]
    assert sum(t["bytes"] for t in peak["tensors"]) == peak["live_bytes"]
    assert peak["live_bytes"] <= whole and peak["name"] in peak["text"]


def test_tensors_of_the_memory_map_do_not_overlap(measured) -> None:
    check_map(measured.memory_map)


@pytest.mark.opencl
def test_buffers_of_the_device_are_in_the_map() -> None:
    graph = classifier()
    predictor = Predictor(optimize(graph), "opencl")
    plan = predictor.plan({"x": image(graph)["x"].shape})
    found = memory_map(plan)
    check_map(found)
    assert len(found["tensors"]) > 5 and found["peak"] is not None
    own = predictor.execution({"x": image(graph)["x"].shape}).memory()["device"]
    assert 0 < found["device_bytes"] <= own  # which has weights too


def test_every_layer_has_its_part_of_the_roof(measured) -> None:
    assert measured.roofline["gflops"] > 0 and measured.roofline["gbytes_per_s"] > 0
    assert all(x.roofline_fraction > 0 for x in measured.layers if x.flops and x.median_ms)


def test_the_roof_of_a_layer() -> None:
    roof = Roof(100.0, 10.0, 50.0, "paper", cache_bytes=1000)
    assert roof.fraction(200_000_000, 10, 4.0) == pytest.approx(0.5)
    assert roof.bound_by(200_000_000, 10) == "compute"
    assert roof.fraction(0, 20_000_000, 8.0) == pytest.approx(0.25)
    assert roof.fraction(0, 500, 0.00001) == pytest.approx(1.0)
    assert roof.fraction(0, 500, 0.000005) == pytest.approx(2.0), "not cut off: the roof is wrong"
    assert roof.fraction(0, 0, 1.0) is None
    assert roof.better(Roof(90.0, 12.0, 40.0, "again")).gbytes_per_s == 12.0
