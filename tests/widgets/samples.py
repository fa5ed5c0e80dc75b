"""Made-up but self-consistent data for the widget tests: a line recogniser of about 60 layers.

`ocr()` gives its graph, source graph, profiles on three backends and a comparison with one layer
that is wrong by itself; `long_chain(n)` gives a graph and profile of n nodes.
"""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any

from tests.widgets.sample_network import elements, sample_nodes

FAILING = "b3/dw"
RATES = {
    "x86": {"Conv 1×1": 38, "Conv k×k": 22, "Depthwise conv": 8.2, "SE fc": 3.1, "MatMul": 33},
    "opencl": {"Conv 1×1": 64, "Conv k×k": 30, "Depthwise conv": 19, "SE fc": 6, "MatMul": 40},
    "arm": {"Conv 1×1": 12, "Conv k×k": 9, "Depthwise conv": 5, "SE fc": 2, "MatMul": 11},
}


def profile(backend: str = "x86") -> dict:
    """A profile as `lite profile --json` writes it."""
    rng, layers = random.Random(11), []
    shapes = {"x": [1, 3, 48, 320]} | {n["name"]: n["output_shapes"][0] for n in sample_nodes()}
    for node in sample_nodes():
        moved = (
            4
            * (
                sum(elements(shapes[i]) for i in node["inputs"])
                + elements(node["output_shapes"][0])
            )
            + node["weights"]
        )
        fallback = backend == "opencl" and (
            node["name"] == "b7/se/pool"
            or node["block"] == "head"
            or node["name"].endswith("transpose")
        )
        on = "x86" if fallback else backend
        rate = RATES[on].get(node["type"], 1e9)
        bandwidth = 24e6 if on == "opencl" else 15e6
        ms = max(node["macs"] / (rate * 1e6), moved / bandwidth) * rng.uniform(0.88, 1.12)
        ms += 0.0105 if on == "opencl" else 0.0028
        kernel = {"Conv 1×1": "gemm_6x16", "Depthwise conv": "dw5x5", "SE fc": "gemv"}.get(
            node["type"], node["op"].lower()
        )
        if node["name"] == "b7/se/pool" and fallback:
            layers.append(_copy("copy b7/dw → x86", 0.094, 115200, "opencl", "x86"))
        layers.append(
            {
                "index": len(layers),
                "name": node["name"],
                "op": node["op"],
                "type": node["type"],
                "block": node["block"],
                "sources": node["sources"],
                "backend": on,
                "kernel": kernel + {"x86": "_avx2", "opencl": "_buf", "arm": "_neon"}[on],
                "why": "buffer variant: 1.3× faster than image2d"
                if on == "opencl"
                else "only candidate",
                "input_shapes": [shapes[i] for i in node["inputs"]],
                "output_shapes": node["output_shapes"],
                "dtype": "fp16" if on == "opencl" else "fp32",
                "median_ms": ms,
                "min_ms": ms * 0.96,
                "ci_ms": max(ms * 0.012, 0.0007),
                "share": 0.0,
                "macs": node["macs"],
                "bytes": moved,
                "instructions": int(node["macs"] * 0.4 + moved * 0.55 + 9000),
                "gflops": 2 * node["macs"] / ms / 1e6 if node["macs"] else None,
                "gbytes_per_s": moved / ms / 1e6,
            }
        )
        if node["name"] == "b7/se/pool" and fallback:
            layers.append(_copy("copy b7/se/pool → opencl", 0.058, 480, "x86", "opencl"))
    total = sum(row["median_ms"] for row in layers)
    for row in layers:
        row["share"] = row["median_ms"] / total
    return {
        "model": "ocr_line.onnx",
        "backend": backend,
        "device": "this machine",
        "threads": 2,
        "environment": {"isa": "AVX2"},
        "first_run_ms": total * 3,
        "overhead_ms": total * 0.008,
        "total_ms": {"median": total / 0.9885, "min": total * 0.985, "p90": total * 1.05},
        "layers": layers,
        "peak_memory_bytes": 368640,
        "runs": 50,
        "rankable_us": 4,
        "emulated": backend == "arm",
    }


def _copy(name, ms, size, source, target) -> dict:
    return {
        "index": 0,
        "name": name,
        "op": "Copy",
        "median_ms": ms,
        "min_ms": ms,
        "share": 0.0,
        "backend": target,
        "kernel": "",
        "why": "",
        "macs": 0,
        "dtype": "fp16",
        "sources": [],
        "input_shapes": [],
        "output_shapes": [],
        "gflops": None,
        "gbytes_per_s": None,
        "copy": {
            "source": source,
            "target": target,
            "bytes": size,
            "why": "b7/se/pool runs on x86: OpenCL ReduceMean needs keepdims = 1",
            "fix": 'session.convert(enable=["reduce_mean_to_gap"])',
            "gain_ms": 0.19,
        },
    }


def _figures(error: float) -> dict:
    return {
        "rel_l2": error,
        "max_abs": error * 36.8,
        "mean_abs": error * 2.1,
        "cosine": 1 - error * error / 2,
        "sqnr_db": 22.0,
    }


def comparison() -> dict:
    """x86 against OpenCL with one layer wrong by itself and victims after it."""
    rng, layers, seen, carried = random.Random(3), [], False, 2.6e-4
    for i, node in enumerate(sample_nodes()):
        iso = {"MatMul": 1.1e-6, "Layout": 1e-7}.get(node["type"], 3.4e-4) * rng.uniform(0.7, 1.4)
        if node["name"] == FAILING:
            iso, seen, carried = 7.91e-2, True, 7.9e-2
        carried = (
            carried * rng.uniform(0.97, 1.06) if seen else (carried**2 + (iso / 2) ** 2) ** 0.5
        )
        acc = carried * (0.12 if seen and "/se/" in node["name"] else 1.0)
        layers.append(
            {
                "index": i,
                "name": node["name"],
                "op": node["op"],
                "type": node["type"],
                "block": node["block"],
                **_figures(acc),
                "nan_baseline": 0,
                "nan_candidate": 0,
                "range_baseline": [-0.375, 6.1],
                "range_candidate": [-0.375, 6.0],
                "isolated": _figures(iso),
                "within": node["name"] != FAILING,
                "state": "failing"
                if node["name"] == FAILING
                else "propagated"
                if acc > 1e-2
                else "within",
                "tolerance": 1e-2 if node["type"].startswith(("Conv", "Depth")) else 2e-3,
            }
        )
    return {
        "baseline": "x86",
        "candidate": "opencl",
        "tolerance": 1e-2,
        "layers": layers,
        "agrees": False,
        "verdict": f"{FAILING} (Conv) fails on its own: error 7.9e-02, tolerance 1.0e-02",
        "notice": {
            "kind": "error",
            "what": f"OpenCL goes wrong at **{FAILING}**: on the input of x86, it has an error of "
            "**7.9e−2** (tolerance 1.0e−2).",
            "detail": "The layers after it are correct on correct input; they only propagate the "
            "error.",
            "layer": FAILING,
            "actions": [["run_on_a", "Run this layer on x86"]],
        },
        "first_divergence": {"index": 12, "name": FAILING},
    }


def graph() -> dict:
    """The optimised graph."""
    keys = ("name", "op", "type", "inputs", "output_shapes", "sources", "block")
    nodes = [{k: n[k] for k in keys} for n in sample_nodes()]
    return {
        "name": "ocr_line",
        "inputs": [{"name": "x", "shape": [1, 3, 48, 320]}],
        "outputs": [{"name": "text", "shape": [1, 80, 97]}],
        "nodes": nodes,
    }


def source_graph() -> dict:
    """The graph as read: the nodes that were fused, in order."""
    nodes, ops = [], ("Conv", "BatchNormalization", "HardSwish")
    out_of = {"x": "x"}
    for node in sample_nodes():
        inputs = [out_of[i] for i in node["inputs"]]
        for i, source in enumerate(node["sources"]):
            op = node["op"] if i == 0 else ops[min(i, 2)]
            nodes.append(
                {
                    "name": source,
                    "op": op,
                    "inputs": inputs,
                    "block": node["block"],
                    "output_shapes": node["output_shapes"],
                }
            )
            inputs = [source]
        out_of[node["name"]] = node["sources"][-1]
    return {
        "name": "ocr_line.onnx",
        "inputs": [{"name": "x", "shape": [1, 3, 48, 320]}],
        "outputs": [{"name": "text", "shape": [1, 80, 97]}],
        "nodes": nodes,
    }


def long_chain(n: int = 1000) -> SimpleNamespace:
    """A graph and profile of n nodes: residual units in stages, with scopes two deep."""
    rng, nodes, last, start = random.Random(5), [], "input", "input"
    for i in range(n):
        stage, unit, step = i // (n // 12), (i // 5) % 17, i % 5
        name = f"stage{stage}/unit{unit}/{('conv1', 'act1', 'conv2', 'add', 'act2')[step]}"
        op = ("Conv", "Relu", "Conv", "Add", "Relu")[step]
        nodes.append(
            {
                "name": name,
                "op": op,
                "inputs": [last, start] if op == "Add" else [last],
                "output_shapes": [[1, 64, 56, 56]],
                "sources": [f"n{i}"],
            }
        )
        last = name
        start = name if step == 4 else start
    layers = [
        {
            "index": i,
            "name": node["name"],
            "op": node["op"],
            "backend": "x86",
            "kernel": "k",
            "dtype": "fp32",
            "median_ms": rng.expovariate(20),
            "min_ms": 0.0,
            "macs": 1000,
            "gflops": 10.0,
            "output_shapes": node["output_shapes"],
            "sources": node["sources"],
        }
        for i, node in enumerate(nodes)
    ]
    total = sum(row["median_ms"] for row in layers)
    return SimpleNamespace(
        graph={
            "name": "long",
            "inputs": [{"name": "input", "shape": [1, 3, 224, 224]}],
            "outputs": [{"name": "out", "shape": [1, 10]}],
            "nodes": nodes,
        },
        profile={
            "model": "long",
            "backend": "x86",
            "layers": layers,
            "threads": 2,
            "total_ms": {"median": total, "min": total, "p90": total},
        },
    )


def change(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Two profiles with the same layers as the difference that the engine makes of them."""
    was, now = (
        {x["name"]: round(1e6 * x["median_ms"]) for x in p["layers"]} for p in (before, after)
    )
    changes = [
        {
            "name": name,
            "kind": "changed" if name in was and name in now else "new" if name in now else "gone",
            "before": [name] * (name in was),
            "after": [name] * (name in now),
            "before_ns": was.get(name, 0),
            "after_ns": now.get(name, 0),
            "delta_ns": now.get(name, 0) - was.get(name, 0),
        }
        for name in {**was, **now}
    ]
    return {
        "baseline": before["backend"],
        "candidate": after["backend"],
        "before_ns": sum(was.values()),
        "after_ns": sum(now.values()),
        "changes": sorted(changes, key=lambda x: -abs(x["delta_ns"])),
        "warnings": ["changes of less than 4.8 µs in a layer may be noise"],
    }
