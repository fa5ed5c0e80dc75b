"""A plug-in on whole networks, and with half of their operators refused; with a fault planted.

`python zoo_runs.py NAME FOLDER [free]` does so for an installed plug-in and the ONNX files of a
folder, in an environment that has nothing but packages, and prints a line of JSON for each. `free`
lets a plug-in that takes a few operators only have them, whatever the copies cost.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import numpy as np
from lite_engine import Predictor, load, optimize
from lite_engine.backends import get_plugin
from lite_engine.compare import Side, compare
from lite_engine.ir import Value
from lite_engine.plan import cut
from lite_engine.runtime import host_target

#: Of the largest value of an output.
TOLERANCE = 2e-5
#: Networks for a fault: the second one where the plug-in takes no layer with weights of the first.
SPOILT = "a wrong constant"
FAULT_IN = ("mobilenet_v3_small", "text_encoder")


def feeds_of(graph):
    rng = np.random.default_rng(0)
    return {
        v.name: rng.random(v.shape, np.float32)
        if v.dtype.is_float
        else rng.integers(0, 9, v.shape).astype(v.dtype.np)
        for v in graph.inputs
    }


def free_borders(plugin):
    """Copies between the plug-in and the CPU count nothing: whatever it takes, it gets."""
    plugin.border_cost = lambda: (0.0, 0.0, 0.0)


def whole_and_halves(plugin, model):
    """The layers of each run, the layers that failed there, and the largest error against the
    engine's own kernels, relative to each output's largest value. Halves: of the operators that the
    plug-in takes every second one is refused, then every other one, and borders are free, so that
    it really gets the rest."""
    feeds = feeds_of(model.graph)
    expected = Predictor(model, host_target(), threads=1).run(feeds)
    supports, before = plugin.supports, dict(vars(plugin))
    taken = sorted({n.op for n in model.graph.nodes if not supports(n)})
    runs, failed, errors = [], {}, []
    try:
        for refused in ((), taken[1::2], taken[::2]):
            if refused:
                plugin.supports = lambda n, no=refused: "no" if n.op in no else supports(n)
                free_borders(plugin)
            predictor = Predictor(model, plugin.name, threads=1)
            errors.append(_error(predictor.run(feeds), expected))
            runs.append(_layers(predictor, plugin.name))
            failed |= predictor.refused
    finally:
        vars(plugin).clear()
        vars(plugin).update(before)
    return {"whole": runs[0], "halves": runs[1:], "failed": failed, "error": max(errors)}


def fault_found(plugin, model):
    """(layer with a fault that the plug-in is made to compute, layer that compare names), None
    where the plug-in takes no layer with weights."""
    steps = Predictor(model, plugin.name, threads=1).plan().steps
    at = [s.name for s in steps if s.backend == plugin.name and s.node and _spoilt(s.node)]
    if not at:
        return None
    name = at[len(at) // 2]
    compile_graph = plugin.compile

    def spoilt(graph, **options):
        for node in graph.nodes:
            if node.name == name and not any(v and v.name == SPOILT for v in node.inputs):
                node.inputs = _spoilt(node)
        return compile_graph(graph, **options)

    plugin.compile = spoilt
    try:
        sides = (Side(Predictor(model, b, threads=1)) for b in ("reference", plugin.name))
        return name, compare(*sides, feeds_of(model.graph)).finding.layer
    finally:
        del plugin.compile


def _spoilt(node):
    """The node's inputs with another first constant of floats; empty where it has none."""
    for i, v in enumerate(node.inputs):
        if i and v is not None and v.const is not None and v.const.dtype == np.float32:
            wrong = Value(SPOILT, v.dtype, v.shape, const=1 - v.const)
            return [*node.inputs[:i], wrong, *node.inputs[i + 1 :]]
    return []


def _error(got, expected):
    return float(max(np.abs(got[n] - w).max() / max(np.abs(w).max(), 1e-9)
                     for n, w in expected.items()))  # fmt: skip


def _layers(predictor, name):
    """How many layers and sub-graphs the plug-in has, and how many layers the CPU."""
    plan = predictor.plan()
    layers = [s.backend for s in plan.steps if s.node is not None]
    return {
        "layers": layers.count(name), "cpu": len(layers) - layers.count(name),
        "subgraphs": sum(segment.backend == name for segment in cut(plan)),
    }  # fmt: skip


def main(name, folder, borders=""):
    plugin = get_plugin(name).plugin
    if borders == "free":
        free_borders(plugin)
    fault = None
    for file in sorted(Path(folder).glob("*.onnx")):
        began = time.monotonic()
        model = optimize(load(file))
        made = {"network": file.stem, **whole_and_halves(plugin, model)}
        if file.stem in FAULT_IN and not fault and (fault := fault_found(plugin, model)):
            made["planted"], made["found"] = fault
        print(json.dumps({**made, "s": round(time.monotonic() - began)}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
