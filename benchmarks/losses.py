"""Which layers lose against the best peer: its own profile beside ours, matched by ONNX nodes.

Engines fuse differently, so layers are compared in groups: those of both sides that share nodes of
the ONNX file. Only peers that say which nodes a layer came from have profiles here.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.environments import python_of
from benchmarks.models import Files
from benchmarks.peers import peer
from benchmarks.schedule import Worker

RUNS = 20
SHOWN = 6


@dataclass
class Group:
    """Layers of both sides that compute the same nodes; milliseconds of one run."""

    ours_ms: float = 0.0
    peer_ms: float = 0.0
    kernels: list[str] = field(default_factory=list)
    layers: list[str] = field(default_factory=list)

    @property
    def lost_ms(self) -> float:
        return self.ours_ms - self.peer_ms


def find_losses(
    files: Files, network: str, rows: dict[str, Any], threads: int, precision: str
) -> dict[str, Any]:
    """Groups by lost time, against the fastest measured peer that has a profile."""
    rivals = {
        e: r["min_ms"] for e, r in rows.items()
        if e != "lite" and "min_ms" in r and "error" not in r and hasattr(peer(e), "layers")
    }  # fmt: skip
    if not rivals:
        return {"error": "no peer with a profile of its layers ran"}
    rival = min(rivals, key=rivals.__getitem__)
    source, feeds = files.network(network)
    found: dict[str, list[Any]] = {}
    for engine in ("lite", rival):
        worker = Worker([python_of(engine), "-m", "benchmarks.worker", engine])
        reply = worker.ask(
            model=str(files.model(engine, source, feeds, precision)), feeds=str(feeds),
            threads=threads, precision=precision, layers=RUNS,
        )  # fmt: skip
        worker.close()
        if "error" in reply:
            return {"error": f"{engine}: {reply['error']}"}
        found[engine] = reply["layers"]
    groups = compare(found["lite"], found[rival])
    return {"peer": rival, "groups": [vars(g) | {"lost_ms": g.lost_ms} for g in groups]}


Layer = dict[str, Any]  # nodes: names of ONNX nodes, ms, kernel


def compare(ours: list[Layer], theirs: list[Layer]) -> list[Group]:
    """Groups of layers joined by shared nodes, most lost time first; what shares no node with the
    other side is in a group of its own."""
    parent: dict[str, str] = {}

    def root(name: str) -> str:
        while parent.setdefault(name, name) != name:
            parent[name] = name = parent[parent[name]]
        return name

    for layer in (*ours, *theirs):
        for name in layer["nodes"]:
            parent[root(name)] = root(layer["nodes"][0])
    groups: dict[str, Group] = {}
    for layers, is_ours in ((ours, True), (theirs, False)):
        for layer in layers:
            key = root(layer["nodes"][0]) if layer["nodes"] else f"{is_ours} {layer['kernel']}"
            group = groups.setdefault(key, Group())
            if is_ours:
                group.ours_ms += layer["ms"]
                group.kernels.append(layer["kernel"])
                group.layers += layer["nodes"][-1:]
            else:
                group.peer_ms += layer["ms"]
    return sorted(groups.values(), key=lambda g: -g.lost_ms)


def print_losses(found: dict[str, Any]) -> None:
    """The groups that lose most, ours and the peer's milliseconds."""
    if "error" in found:
        print(f"    {found['error']}")
        return
    for group in found["groups"][:SHOWN]:
        if group["lost_ms"] > 0:
            kernels = " ".join(dict.fromkeys(group["kernels"]))
            print(
                f"    {group['ours_ms']:8.3f} ms, {found['peer']} {group['peer_ms']:.3f}"
                f"   {kernels[:60]:60} {' '.join(group['layers'])[:60]}"
            )
