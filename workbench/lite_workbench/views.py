"""Engine objects → the plain data of `lite_widgets` (shapes in its data.py)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeGuard

from lite_engine.ir import format_shape
from lite_engine.runtime.shares import sentence
from lite_messages import tr, trn
from lite_widgets.formats import NAMES

from .places import Placing, distinct_regions, places, set_blocks
from .state import architecture, comparisons
from .verdict import verdict
from .words import REWRITING, common_prefix, listed_inside, milliseconds, number

if TYPE_CHECKING:
    from lite_engine.compare.comparison import Comparison
    from lite_engine.ir import Graph, Node, Shape, Value
    from lite_engine.model_file import Model
    from lite_engine.profile import Profile
    from lite_engine.runtime.support import ModelInfo

    from .model_diff import ModelDiff
    from .state._state import Pair, SessionState

#: Of an attribute that is a list, and of one that is a text: how much of it is shown.
_SHOWN, _LONGEST = 12, 80


def graph_data(graph: Graph, placing: Placing = places) -> dict[str, Any]:
    """A Graph as GraphData; every operator once, constants left out."""
    rows: list[dict[str, Any]] = []
    known = placing(graph)
    for node in graph.nodes:
        reads = [_origin(v) for v in node.inputs if v is not None and v.const is None]
        shapes = [list(v.shape) for v in node.outputs if _static(v.shape)]
        rows.append(
            {"name": node.name, "op": node.op, "inputs": reads, "output_shapes": shapes,
             "sources": list(node.sources), "block": known[node.name].block,
             "region": known[node.name].region.name, **_details(node)}
        )  # fmt: skip
    drawn = {name: i for i, name in enumerate(known)}
    rows.sort(key=lambda row: drawn[row["name"]])
    _label(rows)
    inputs = [{"name": v.name, "shape": _dims(v.shape)} for v in graph.inputs]
    outputs = [{"name": v.name, "shape": _dims(v.shape), "from": _origin(v)} for v in graph.outputs]
    evidence = {region.name: region.evidence for region in distinct_regions(known)}
    return {"name": graph.name, "inputs": inputs, "outputs": outputs, "nodes": rows,
            "regions": evidence}  # fmt: skip


def rewrites_data(model: Model) -> dict[str, Any]:
    """What the passes refused, with the reasons, and what they did, as traits of a DataTable."""
    entries = sorted(model.journal.entries, key=lambda entry: entry.action == "rewrote")
    common = common_prefix([name for entry in entries for name in entry.nodes])
    rows = [
        {"rule": e.rule, "what": REWRITING.get(e.action, e.action), "why": e.reason,
         "nodes": listed_inside([name[len(common) :] for name in e.nodes])}
        for e in entries
    ]  # fmt: skip
    shown = [
        {"id": "rule", "head": tr("Pass"), "kind": "code"},
        {"id": "what", "head": tr("Action"), "kind": "text"},
        {"id": "nodes", "head": tr("Layers"), "kind": "wrap"},
        {"id": "why", "head": tr("Reason"), "kind": "wrap"},
    ]
    if not any(row["why"] for row in rows):  # only a refusal has one
        shown.pop()
    note = tr("All names begin with {prefix}", prefix=common) if common else ""
    return {"columns": shown, "rows": rows, "note": note}


def _details(node: Node) -> dict[str, Any]:
    """A node's attributes in words and its weights, where it has any."""
    attributes = {name: _attribute(value) for name, value in node.attrs.items()}
    weights = [
        {"name": v.name, "type": f"{'×'.join(map(str, v.const.shape)) or '1'} {v.type.dtype}",
         "bytes": int(v.const.nbytes)}
        for v in node.inputs
        if v is not None and v.const is not None
    ]  # fmt: skip
    return {k: v for k, v in (("attributes", attributes), ("weights", weights)) if v}


def _attribute(value: Any) -> str:
    from lite_engine.ir import Graph

    if isinstance(value, Graph):
        return trn("graph of {n} node", "graph of {n} nodes", len(value.nodes))
    if isinstance(value, (list, tuple)):
        shown = " ".join(map(str, value[:_SHOWN]))
        return shown + (f" … ({len(value)})" if len(value) > _SHOWN else "")
    shape = getattr(value, "shape", ())
    if shape:
        return tr("array {shape}", shape="×".join(map(str, shape)))
    return str(value)[:_LONGEST]


def diff_data(made: ModelDiff) -> dict[str, Any]:
    """Traits of GraphView: the baseline is drawn as the source graph, matched layers linked."""
    from lite_engine.compare.node_match import matched_nodes

    before = {b.name: a.name for a, b in matched_nodes(made.baseline, made.candidate)}
    graph, source = graph_data(made.candidate), graph_data(made.baseline)
    for node in graph["nodes"]:
        node["sources"] = [before[node["name"]]] if node["name"] in before else []
    return {"graph": graph, "source_graph": source, "changes": made.changes.to_dict()}


def _origin(value: Value) -> str:
    return value.producer.name if value.producer is not None else value.name


def _static(shape: Shape | None) -> TypeGuard[tuple[int, ...]]:
    return shape is not None and all(isinstance(d, int) for d in shape)


def _dims(shape: Shape | None) -> list[int | str]:
    return [d if isinstance(d, int) else str(d or "?") for d in shape or ()]


def _label(rows: list[dict[str, Any]]) -> None:
    """A label for what shares the last part of its name with another layer of its block: the fewest
    last parts that tell it from the others (depthwise → Conv2d_1_depthwise/depthwise)."""
    suffixes = [_suffixes(row["name"]) for row in rows]
    uses = Counter((row.get("block"), end) for row, ends in zip(rows, suffixes) for end in ends)
    for row, ends in zip(rows, suffixes):
        own = next((end for end in ends if uses[row.get("block"), end] == 1), ends[-1])
        if own != ends[0]:
            row["label"] = own


def _suffixes(name: str) -> list[str]:
    """a/b/c → c, b/c, a/b/c"""
    parts = name.strip("/").split("/")
    return ["/".join(parts[-count:]) for count in range(1, len(parts) + 1)]


def structure_data(session: SessionState) -> dict[str, Any]:
    """The regions of a session's network as columns and rows of a DataTable."""
    columns = [
        {"id": "region", "head": tr("Region"), "kind": "wrap"},
        {"id": "layers", "head": tr("Layers"), "kind": "number"},
        {"id": "weights", "head": tr("Weights"), "kind": "text"},
        {"id": "evidence", "head": tr("Evidence"), "kind": "wrap"},
    ]
    rows = [
        {**row, "weights": number(row["weights_bytes"], "B")} for row in architecture.rows(session)
    ]
    shown = [{column["id"]: row[column["id"]] for column in columns} for row in rows]
    return {"columns": columns, "rows": shown}


def profile_data(
    profile: Profile, graph: Graph | None = None, placing: Placing = places
) -> dict[str, Any]:
    """A Profile: intervals and copies under the names that the widgets know, blocks under those of
    the `graph` that was measured (default: the one that the profile knows)."""
    graph = graph or profile.graph
    data = profile.to_dict()
    names: dict[str, int] = {}
    for i, row in enumerate(data["layers"]):
        row["backend"] = _backend(row["backend"], profile.backend)
        if row["overhead"] and row["copy"] is None:
            row["copy"] = _copy(data["layers"], i, profile.backend)
        for side in ("source", "target") if row["copy"] else ():
            row["copy"][side] = _backend(row["copy"][side], profile.backend)
        seen = names[row["name"]] = names.get(row["name"], 0) + 1
        if seen > 1:
            row["name"] = f"{row['name']} ({seen})"
    set_blocks(data["layers"], graph, [row.name for row in profile.layers], placing)
    data["emulated"] = not profile.times_meaningful
    names_of_model = {node.name for node in graph.nodes} if graph is not None else set()
    idle = len(names_of_model - {row.name for row in profile.layers})
    data["ran"] = sentence(profile.shares, profile.backend, idle=idle)
    return data


def session_profile(
    session: SessionState, backend: str, placing: Placing = places
) -> dict[str, Any]:
    """A session's last profile of a backend."""
    _, predictor = session.profiled[backend]
    return profile_data(session.profiles[backend], predictor.graph, placing)


def session_comparison(
    session: SessionState, pair: Pair, placing: Placing = places
) -> dict[str, Any]:
    """A session's last comparison of a pair."""
    graph = comparisons.graph_of(session, pair)
    return comparison_data(session.comparisons[pair], graph, placing)


def _backend(name: str, own: str) -> str:
    """The plan says "cpu"; a person says which."""
    if name != "cpu":
        return name
    return own if own in ("x86", "arm") else "x86"


def _copy(rows: list[dict[str, Any]], index: int, own: str) -> dict[str, Any]:
    """Between which sides a Copy or Relayout moves, by its neighbours."""
    row = rows[index]
    before = next((r["backend"] for r in reversed(rows[:index]) if not r["overhead"]), "cpu")
    after = next((r["backend"] for r in rows[index + 1 :] if not r["overhead"]), "cpu")
    sides = [_backend(b, own if own in ("x86", "arm") else "x86") for b in (before, after)]
    layouts: dict[str, str] = {}
    if row["op"] == "Relayout":
        sides = ["row-major", "channels-last"] if index == 0 else ["channels-last", "row-major"]
        layouts = {"source_layout": sides[0], "target_layout": sides[1]}
    return {"source": sides[0], "target": sides[1], "bytes": row["bytes"], "why": row["why"],
            **layouts}  # fmt: skip


def facts_data(info: ModelInfo) -> dict[str, Any]:
    """What is in a file, as FactsCard's title, figures and facts."""
    ports = [[tr("Input {name}", name=p["name"]), f"{p['dtype']} {p['text']}"] for p in info.inputs]
    ports += [
        [tr("Output {name}", name=p["name"]), f"{p['dtype']} {p['text']}"] for p in info.outputs
    ]
    sizes = ", ".join(f"{n} {format_shape(tuple(dims))}" for n, dims in info.assumed.items())
    big = [
        [tr("layers"), str(len(info.layers)), "", tr("as in the file")],
        [tr("parameters"), *number(info.params).partition(" ")[::2], ""],
        [
            tr("multiply-adds"),
            *("–" if info.macs is None else number(info.macs)).partition(" ")[::2],
            tr("for {sizes}", sizes=sizes) if sizes and info.macs is not None else "",
        ],
    ]
    return {"title": info.name, "big": big, "facts": [[tr("Format"), info.format], *ports]}


def support_data(info: ModelInfo) -> dict[str, Any]:
    """`model_info`'s operators as DataTable's note, columns and rows: which target runs each, and
    where one does not, why and what then."""
    targets = list(dict.fromkeys(s.target for s in info.support))
    cells = {(s.op, s.target): s for s in info.support}
    rows: list[dict[str, Any]] = []
    for op, uses in info.operators.items():
        states = {target: cells[op, target] for target in targets}
        said: dict[str, list[str]] = {}  # what is said of a target → all of which it is said
        for target, state in states.items():
            if not state.supported:
                known = said.setdefault(f"{state.reason} ({state.fix})", [])
                known.append(NAMES.get(target, target))
        whys = [f"{', '.join(names)}: {why}" for why, names in said.items()]
        runs = {
            t: s.supported or (bool(s.backend) and [s.runs_on, "warn"]) for t, s in states.items()
        }
        rows.append({"op": op, "uses": uses, **runs, "why": "; ".join(whys)})
    columns = [
        {"id": "op", "head": tr("Operator"), "kind": "code"},
        {"id": "uses", "head": tr("Uses"), "kind": "number"},
        *({"id": t, "head": t, "kind": "check", "backend": t} for t in targets),
        {"id": "why", "head": tr("Reason and alternative"), "kind": "wrap"},
    ]
    kinds = trn("{n} operator type", "{n} operator types", len(rows))
    note = f"{kinds}, {trn('{n} layer', '{n} layers', len(info.layers))}"
    return {"note": note, "columns": columns, "rows": rows}


def work_data(info: ModelInfo) -> dict[str, Any]:
    """`model_info`'s layers as TypeSummary's profile before anything ran."""
    layers = [
        {"name": x.name, "op": x.op, "index": x.index, "macs": x.macs or 0,
         "weight_bytes": x.weight_bytes, "kernel": ""}
        for x in info.layers
    ]  # fmt: skip
    return {"layers": layers}


def comparison_data(
    comparison: Comparison, graph: Graph | None = None, placing: Placing = places
) -> dict[str, Any]:
    """A Comparison with its verdict in the words of the screen; blocks under the names of the
    baseline's `graph` (default: the one that the comparison knows)."""
    graph = graph or comparison.graph
    data = comparison.to_dict()
    data["notice"] = verdict(comparison)
    data["layers"] = _worst_outputs(data["layers"])
    set_blocks(data["layers"], graph, [row["name"] for row in data["layers"]], placing)
    return data


def _worst_outputs(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row per layer: of one with several outputs (Split, LSTM, TopK) the worst."""
    worst: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row["name"] not in worst or _badness(row) > _badness(worst[row["name"]]):
            worst[row["name"]] = row
    return list(worst.values())


def compared_outputs(row: Mapping[str, Any]) -> tuple[str, str]:
    """What the two sides call the output that a row is about."""
    return row["value_baseline"], row["value_candidate"]


def pane_layer(row: Mapping[str, Any], comparison: Comparison) -> dict[str, Any]:
    """A row as DifferencePane's layer."""
    return {**row, "kernel": row["kernel_candidate"], "usual_tolerance": comparison.usual_tolerance}


def _badness(row: dict[str, Any]) -> tuple[bool, float, float]:
    """Wrong by itself first, then by its own error, then by what it carries."""
    own = row["isolated"] or row
    errors = [math.inf if r["rel_l2"] is None else r["rel_l2"] for r in (own, row)]
    return not row["within"], errors[0], errors[1]


def memory_data(profile: Profile) -> dict[str, Any]:
    """A profiled plan's memory: which tensor lies where, and from which step to which; a device's
    buffers behind the arena."""
    made = profile.memory_map
    return {**made, "arena_bytes": max(1, made["arena_bytes"] + made["device_bytes"])}


def timeline_data(profile: Profile, data: Mapping[str, Any]) -> dict[str, Any] | None:
    """Timeline's tracks; layers have the names of `data`, the profile's `profile_data`. None where
    times mean nothing."""
    from lite_engine.figures.timeline import summary, tracks

    if not profile.times_meaningful:
        return None
    plain = profile.to_dict()
    made = tracks(plain)
    whole = max((e.end_ms for track in made for e in track.events), default=0.0) or 1.0
    names = [row["name"] for row in data["layers"]]
    shown = [
        {
            "name": _backend(track.name, profile.backend),
            "busy": track.spent_ms("run", "copy") / whole,
            "events": [
                {"name": names[e.layer], "kind": e.kind, "start_ms": e.start_ms,
                 "end_ms": e.end_ms}
                for e in track.events
            ],
        }
        for track in made
    ]  # fmt: skip
    return {"tracks": shown, "summary": summary(plain, made)}


def total_text(profile: Profile) -> str:
    """A whole run: its median time, or its executed instructions where times mean nothing."""
    if profile.times_meaningful:
        if profile.step_ms:
            return f"{profile.total_text} ms"
        return milliseconds(profile.total_ms["median"])
    counts = profile.instructions
    return tr("{number} instructions", number=number(counts["run"])) if counts else tr("no times")


def roof_of(profile: Profile) -> dict[str, Any] | None:
    """Measured limits of the profile's machine, where the engine has measured them."""
    roof = profile.roofline
    if not isinstance(roof, dict) or not roof.get("gflops") or not roof.get("gbytes_per_s"):
        return None
    return {"gflops": roof["gflops"], "gbytes_per_s": roof["gbytes_per_s"],
            "what": ", ".join(filter(None, [
                roof.get("what", trn("{n} thread", "{n} threads", profile.threads)),
                roof.get("date")])),
            "integer_gops": roof.get("integer_gops", 0.0)}  # fmt: skip
