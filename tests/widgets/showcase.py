"""One of every widget with realistic data: what the picture tests draw."""

from __future__ import annotations

import math
import random
from typing import Any

import lite_widgets as lw
import numpy as np

from tests.widgets import samples

ROOF = {"gflops": 118, "gbytes_per_s": 19.4, "what": "2 threads, AVX2 + FMA"}


def timeline(profile: dict[str, Any]) -> dict[str, Any]:
    """Two threads, of which the second waits a third of each layer."""
    at, tracks = 0.0, [{"name": f"thread {n}", "busy": 0.8, "events": []} for n in (1, 2)]
    for row in profile["layers"]:
        end = at + row["median_ms"]
        ready = end - row["median_ms"] / 3
        for track, until in zip(tracks, (end, ready), strict=True):
            event = {"name": row["name"], "start_ms": at, "end_ms": until}
            track["events"].append({**event, "kind": "run"})
        tracks[1]["events"].append(
            {"name": row["name"], "kind": "wait", "start_ms": ready, "end_ms": end}
        )
        at = end
    return {"tracks": tracks, "summary": "threads wait for each other 17 % of the time"}


def memory() -> dict[str, Any]:
    """An arena whose tensors do not overlap: two ends, alternating."""
    rows, tensors = samples.profile()["layers"], []
    sizes = [4 * math.prod(row["output_shapes"][0]) for row in rows]
    arena = 2 * max(sizes)
    for i, (row, size) in enumerate(zip(rows, sizes, strict=True)):
        offset = 0 if i % 2 else arena - size
        tensors.append(
            {
                "name": row["name"],
                "first": i,
                "last": min(i + 1, len(rows) - 1),
                "offset": offset,
                "bytes": size,
            }
        )
    return {
        "tensors": tensors,
        "steps": [r["name"] for r in rows],
        "arena_bytes": arena,
        "weight_bytes": 930_000,
    }


def sensitivity() -> list[dict[str, Any]]:
    """Points of accuracy that each layer costs alone."""
    rng = random.Random(2)
    names = [row["name"] for row in samples.profile()["layers"] if row["macs"]]
    rows = [{"name": name, "cost": round(0.9 * rng.random() ** 5, 3)} for name in names]
    return sorted(rows, key=lambda row: -row["cost"])


def trade_off() -> lw.TradeOff:
    """Versions by two methods."""
    order = sensitivity()
    points = [
        {
            "method": method,
            "kept": [row["name"] for row in order[:k]],
            "latency_ms": 2.5 + k * 0.15,
            "accuracy": 98.4 - pen * 0.5 * sum(row["cost"] for row in order[k:]),
            "bytes": 270_000 + k * 40_000,
        }
        for method, pen in (("kl", 1.0), ("minmax", 1.25))
        for k in (0, 1, 2, 3, 4, 6, 8, 11, 15)
    ]
    fp32 = {"accuracy": 98.4, "latency_ms": 5.9, "bytes": 950_000}
    return lw.TradeOff(points=points, float_=fp32, metric="lines read right")


def sweep_chart() -> lw.SweepChart:
    """Threads and batch sizes; two of six are on the front."""
    cells = [
        {"label": f"x86 · {t} threads · batch {b}", "latency_ms": 8.0 * b / t + 0.4 * b,
         "throughput": 1000 * b / (8.0 * b / t + 0.4 * b) * (0.9 + 0.05 * b),
         "note": "top-1 87.2 %", "front": t == 4, "best": (t, b) == (4, 4)}
        for t in (1, 2, 4) for b in (1, 4)
    ]  # fmt: skip
    return lw.SweepChart(title="ocr_line", cells=cells, max_ms=12.0)


def ranges() -> dict[str, Any]:
    """A histogram with a tail."""
    counts = [int(10 ** (5 * math.exp(-(((i - 24) / 16) ** 2)))) - 1 for i in range(40)]
    return {
        "name": "head/fc2",
        "kept": True,
        "cost": 0.86,
        "low": -6.1,
        "high": 9.5,
        "counts": counts + [3 if i % 5 == 1 else 0 for i in range(24)],
        "clip_low": None,
        "clip_high": 5.13,
        "method": "kl",
        "weights": [[-0.01 * i, 0.012 * i] for i in range(1, 81)],
    }


def difference() -> lw.DifferencePane:
    """A layer whose last column is missing."""
    rng = np.random.default_rng(0)
    a = rng.normal(size=(1, 88, 12, 160)).astype(np.float32)
    b = a + rng.normal(size=a.shape).astype(np.float32) * 2e-4
    b[..., 159] = 0
    row = {**samples.comparison()["layers"][12], "kernel": "dw3x3_x8_buf"}
    pane = lw.DifferencePane(layer={**row, "sources": ["Conv_26", "BatchNormalization_27"]})
    pane.show(a, b)
    return pane


CARDS = [
    {
        "id": "x86",
        "title": "x86 CPU, this machine",
        "backend": "x86",
        "state": "ready",
        "facts": [["Processor", "8 cores"], ["Instructions", "AVX2, FMA"]],
    },
    {
        "id": "pi",
        "title": "pi, over ssh",
        "backend": "arm",
        "state": "ready",
        "facts": [["Address", "ssh://pi@10.0.0.5"]],
        "tick": False,
        "stages": [
            {"name": "reach", "state": "done", "seconds": 0.4},
            {"name": "copy", "state": "attention", "detail": "disk full"},
        ],
        "actions": [["use", "Run arm here"], ["remove", "Remove"]],
    },
    {
        "id": "rock",
        "title": "rock5b, over ssh",
        "backend": "opencl",
        "state": "broken",
        "facts": [["Board", "RK3588"]],
        "notice": {
            "what": "**OpenCL is not usable on rock5b.** No ICD file names `libmali.so.1`.",
            "fix": "echo libmali.so.1 | sudo tee /etc/OpenCL/vendors/mali.icd",
            "tried": [["✓", "libOpenCL.so.1", "loader found"], ["–", "$OCL_ICD", "not set"]],
        },
    },
]


JOBS = [
    {"id": "1", "title": "Profiling arm", "state": "running", "done": 31, "total": 50,
     "left": "about 1 s"},
    {"id": "2", "title": "Comparing x86 and OpenCL", "state": "waiting"},
]  # fmt: skip


def tensor() -> Any:
    """Return a TensorView of two sides whose last column of one channel differs."""
    a = np.random.default_rng(0).normal(size=(1, 24, 12, 60)).astype(np.float32)
    b = a.copy()
    b[:, 7, :, -1] = np.nan
    view = lw.TensorView(tensors=[["y", "output y"], ["w", "W w"]])
    view.show("y", {"x86": a, "opencl": b}, layer="b3/dw", note="random data")
    return view


def showcase() -> list[Any]:
    """Return fresh widgets, one of each that draws, filled."""
    x86, opencl = samples.profile(), samples.profile("opencl")
    dw = next(row for row in x86["layers"] if row["name"] == "b5/dw")
    return [
        lw.TopBar(
            title="ocr_line.onnx",
            versions=["fp32", "int8"],
            version="fp32",
            jobs=JOBS,
        ),
        lw.Running(jobs=JOBS, shown="x86 at 14:32:05"),
        lw.Stepper(current="Profile"),
        lw.StepHeader(
            title="Where does the time go?",
            values={"backend": "x86"},
            segments={"name": "backend", "options": [["x86", "x86", "x86"]]},
            buttons=[{"id": "run", "label": "Run again", "primary": True}],
        ),
        lw.TimingLine(profile=x86),
        lw.LatencyChart(profile=x86, link="p"),
        lw.GraphView(graph=samples.graph(), profile=x86, link="p"),
        lw.LayerTable(profile=x86, link="p"),
        lw.OverviewStrip(profile=x86, height=200, link="p"),
        lw.Roofline(profile=x86, roof=ROOF, link="p"),
        lw.TypeSummary(profile=x86, link="p"),
        lw.CopiesTable(profile=opencl),
        lw.TransitionMatrix(profile=opencl),
        lw.MemoryMap(memory=memory(), link="p"),
        lw.Timeline(profile=x86, timeline=timeline(x86), link="p"),
        lw.Waterfall(change=samples.change(x86, opencl)),
        lw.Inspector(
            layer=dw,
            count=60,
            total_ms=5.9,
            roof=ROOF,
            backends=["x86", "opencl"],
            others=[{"backend": "opencl", "median_ms": 0.331}],
            advice={"text": "At 13 % of its roof.", "button": "Try it", "code": "x"},
        ),
        lw.ErrorStrip(comparison=samples.comparison(), link="c"),
        lw.GraphView(graph=samples.graph(), comparison=samples.comparison(), profile=x86, link="c"),
        difference(),
        lw.GraphView(graph=samples.graph(), source_graph=samples.source_graph(), profile=x86),
        trade_off(),
        sweep_chart(),
        lw.RangePlot(layer=ranges()),
        tensor(),
        lw.SensitivityList(layers=sensitivity(), kept=[r["name"] for r in sensitivity()[:6]]),
        lw.DoctorCards(cards=CARDS, choose=True, chosen=["x86"]),
        lw.Stages(
            title="Try on rock5b",
            stages=[
                {"name": "Connect", "state": "done", "seconds": 0.4},
                {"name": "Copy", "state": "running"},
            ],
        ),
        lw.BundleList(items=[{"id": "m", "file": "m.lite", "bytes": 340_000, "fixed": True}]),
        lw.DataTable(
            title="Support",
            columns=[
                {"id": "op", "head": "Operator"},
                {"id": "x86", "head": "x86", "kind": "check"},
            ],
            rows=[{"op": "Conv", "x86": True}, {"op": "Mean", "x86": ["on CPU", "warn"]}],
        ),
        lw.Form(
            title="Add a board",
            fields=[
                {"name": "address", "label": "Address", "hint": "ssh://pi@10.0.0.5"},
                {"name": "name", "label": "Name"},
                {"name": "config", "label": "OpenSSH configuration", "optional": True},
            ],
        ),
        lw.FactsCard(title="File", facts=[["Name", "ocr_line.onnx"]]),
        lw.DropZone(accept=".onnx", choices=[["a", "a.onnx"]]),
        lw.ResultCard(kind="text", items=[{"label": c, "score": 0.97} for c in "TOTAL"]),
        lw.SourceCode(sources={"C": "int main(void) { return 0; }"}),
        lw.Notice(kind="warn", what="**Two layers have no kernel.**", fix="session.convert()"),
        lw.CodeDrawer(lines=['session = lw.open("ocr_line.onnx")']),
    ]
