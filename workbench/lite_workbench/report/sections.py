"""A Session's results → the sections of a report."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from lite_engine.history.changes import changes
from lite_engine.ir import Graph
from lite_engine.profile import Profile
from lite_engine.profile.advice import Advice
from lite_messages import tr, trn
from lite_widgets import (
    CopiesTable,
    DataTable,
    DifferencePane,
    ErrorStrip,
    FactsCard,
    GraphView,
    Inspector,
    LatencyChart,
    LayerTable,
    MemoryMap,
    Roofline,
    SensitivityList,
    Tabbed,
    Timeline,
    TimingLine,
    TradeOff,
    TypeSummary,
    Waterfall,
    columns,
)
from lite_widgets._base import Checked, checked
from lite_widgets.formats import NAMES

from .. import views
from ..places import Place, places
from ..state import SessionState, comparisons
from ..words import milliseconds, number
from .evaluated import evaluated
from .page import Section, answer, answer_rows

#: How many layers of a comparison carry their picture: the worst ones.
PICTURES = 6
#: A picture larger than this (values) is not carried.
PICTURE_VALUES = 250_000


def sections(session: SessionState, prefix: str = "") -> list[Section]:
    """Everything that the session knows, in the order of the walk."""
    graphs = _Graphs()
    profiles = {
        backend: views.session_profile(session, backend, graphs.placing)
        for backend in session.profiles
    }
    shown = {backend: checked(data, backend) for backend, data in profiles.items()}
    return [
        *_model(session, prefix),
        *_conversion(session, prefix, graphs),
        *_profiles(session, prefix, graphs, profiles, shown),
        *_differences(session, prefix),
        *_comparisons(session, prefix, graphs, next(iter(shown.values()), None)),
        *_quantization(session, prefix),
        *evaluated(session, prefix),
    ]


def environment_section() -> Section:
    """What everything was measured on."""
    from lite_engine.profile.environment import environment

    facts = [[key.replace("_", " "), str(value)] for key, value in environment().items()]
    return Section(
        "environment", tr("Environment"), "", [FactsCard(title=tr("This machine"), facts=facts)]
    )


class _Graphs:
    """Each graph as the widgets take it, and the places of its layers: several draw the same one.
    The graphs are held, so that no id is used again."""

    def __init__(self) -> None:
        self._places: dict[int, tuple[Graph, Mapping[str, Place]]] = {}
        self._known: dict[int, tuple[Graph, Checked]] = {}

    def placing(self, graph: Graph) -> Mapping[str, Place]:
        if id(graph) not in self._places:
            self._places[id(graph)] = graph, places(graph)
        return self._places[id(graph)][1]

    def data(self, graph: Graph) -> Checked:
        if id(graph) not in self._known:
            made = checked(views.graph_data(graph, self.placing), graph.name, "nodes")
            self._known[id(graph)] = graph, made
        return self._known[id(graph)][1]


def _called(side: str) -> str:
    """A backend or a version as people call it."""
    return NAMES.get(side, side)


# ---- model and conversion


def _model(session: SessionState, prefix: str) -> Iterator[Section]:
    info = session.info
    facts = FactsCard(**views.facts_data(info))
    types = TypeSummary(profile=views.work_data(info), columns="cost", title=tr("Cost by operator"))
    support = DataTable(title=tr("Operator support by target"), **views.support_data(info))
    hints = " ".join(f"{h}." for h in info.hints)
    yield Section(
        f"{prefix}model", tr("Model"), hints,
        [columns(types, facts, kind="half"), support],
    )  # fmt: skip


def _conversion(session: SessionState, prefix: str, graphs: _Graphs) -> Iterator[Section]:
    for version, model in session.versions.items():
        entries = model.journal.entries
        done = [e for e in entries if e.action == "rewrote"]
        data = views.rewrites_data(model)
        count = tr(
            "{rewrites} rewrites, {refusals} refusals",
            rewrites=len(done),
            refusals=len(entries) - len(done),
        )
        note = " · ".join(filter(None, (count, data.pop("note"))))
        journal = DataTable(title=tr("Graph rewrites"), note=note, **data, height=460)
        graph = GraphView(
            title=tr("Optimized ({version})", version=version),
            graph=graphs.data(model.graph),
            source_graph=None if session.graph is model.graph else graphs.data(session.graph),
            height=460,
        )
        named = (f"{_called(t)} {model.display_precision(t)}" for t in model.targets)
        targets = ", ".join(named) or tr("any target")
        name = "" if version == session.base else f" ({version})"
        yield Section(
            f"{prefix}conversion-{version}",
            tr("Conversion{name}", name=name),
            tr(
                "{layers} layers became {count}, for {targets}.",
                layers=len(session.graph.nodes),
                count=len(model.graph.nodes),
                targets=targets,
            ),
            [columns(graph, journal, kind="half")],
        )


# ---- where the time goes


def _profiles(
    session: SessionState,
    prefix: str,
    graphs: _Graphs,
    profiles: Mapping[str, dict[str, Any]],
    shown: Mapping[str, Checked],
) -> Iterator[Section]:
    """`shown` are the `profiles` as all widgets take them."""
    for backend, profile in session.profiles.items():
        data = profiles[backend]
        baseline = next((shown[n] for n in session.profiles if n != backend), None)
        link = f"{prefix}{backend}"
        _, predictor = session.profiled[backend]
        shared = {"profile": shown[backend], "link": link}
        graph = graphs.data(predictor.graph)
        roof = views.roof_of(profile)
        inspector = Inspector(
            link=link, count=len(data["layers"]), total_ms=profile.total_ms["median"],
            emulated=data["emulated"], roof=roof,
        )  # fmt: skip
        answer_rows(inspector, "layer", shown[backend])
        tabs = Tabbed(
            {
                tr("Layers"): LayerTable(**shared, baseline=baseline),
                tr("Roofline"): Roofline(**shared, roof=roof),
                tr("Types"): TypeSummary(**shared),
                tr("Timeline"): Timeline(**shared, timeline=views.timeline_data(profile, data)),
                tr("Copies"): CopiesTable(**shared),
                tr("Memory"): MemoryMap(link=link, memory=views.memory_data(profile)),
            },
            height=496,
        )
        copies = sum(1 for row in data["layers"] if row.get("copy"))
        tabs.badge(tr("Copies"), str(copies) if copies else "")
        chart = LatencyChart(**shared, baseline=baseline, roof=roof)
        left = GraphView(**shared, graph=graph, baseline=baseline)
        advice = _advice(session.advice.get(backend, []))
        yield Section(
            f"{prefix}time-{backend}",
            tr("Where the time goes: {backend}", backend=_called(backend)),
            _sentence(profile),
            [TimingLine(**shared), chart, columns(left, tabs, kind="graph"), inspector, *advice],
        )


def _advice(found: list[Advice]) -> list[DataTable]:
    """What could be faster, with evidence; nothing when there is nothing to say."""
    rows = [
        {"evidence": a.evidence, "advice": a.advice, "gain": f"{a.gain_ms:.3f}",
         "try": a.command}
        for a in found
    ]  # fmt: skip
    columns_ = [
        {"id": "evidence", "head": tr("Observation"), "kind": "wrap"},
        {"id": "advice", "head": tr("Advice"), "kind": "wrap"},
        {"id": "gain", "head": tr("Possible gain, ms"), "kind": "number"},
        {"id": "try", "head": tr("Try"), "kind": "code"},
    ]
    return [DataTable(title=tr("Advice"), columns=columns_, rows=rows)] if rows else []


def _sentence(profile: Profile) -> str:
    total = profile.total_ms
    said = tr(
        "{precision}, {threads}: ",
        precision=profile.precision,
        threads=trn("{n} thread", "{n} threads", profile.threads),
    )
    if profile.times_meaningful:
        said += tr(
            "median {milliseconds} over {runs}, 90 % within {within}; first run {run}.",
            milliseconds=milliseconds(total["median"]),
            runs=trn("{n} run", "{n} runs", profile.runs),
            within=milliseconds(total["p90"]),
            run=milliseconds(profile.first_run_ms),
        )
    elif counts := profile.instructions:
        said += tr(
            "{total} per run, {first} from the start of the runner to the first result.",
            total=views.total_text(profile),
            first=number(counts["first_result"]),
        )
    else:
        said += tr("instructions are only counted with one thread.")
    peak = (profile.memory_map.get("peak") or {}).get("text")
    return tr("{said} Memory: {peak}.", said=said, peak=peak) if peak else said


def _differences(session: SessionState, prefix: str) -> Iterator[Section]:
    real = [p for p in session.profiles.values() if p.times_meaningful]
    for before, after in pairwise(real):
        yield Section(
            f"{prefix}change-{after.backend}",
            tr("From {a} to {b}", a=_called(before.backend), b=_called(after.backend)),
            tr("Layers that became faster or slower; the bars add up to the difference."),
            [Waterfall(change=changes(before, after))],
        )


# ---- which layer is wrong


def _comparisons(
    session: SessionState, prefix: str, graphs: _Graphs, profile: Checked | None
) -> Iterator[Section]:
    for (a, b), comparison in session.comparisons.items():
        data = views.session_comparison(session, (a, b), graphs.placing)
        link = f"{prefix}{a}-{b}"
        tolerance = data["usual_tolerance"]
        drawn = checked(data, link)
        graph = GraphView(
            graph=graphs.data(comparisons.graph_of(session, (a, b))),
            comparison=drawn, link=link, tolerance=tolerance, profile=profile,
        )  # fmt: skip
        strip = ErrorStrip(comparison=drawn, link=link, tolerance=tolerance)
        pane = _evidence(session, a, b, data, link)
        table = LayerTable(comparison=drawn, link=link, tolerance=tolerance)
        yield Section(
            f"{prefix}compare-{a}-{b}", tr("Do {a} and {b} agree?", a=_called(a), b=_called(b)),
            f"{comparison.verdict}.",
            [strip, columns(graph, pane or table, kind="graph"), *([table] if pane else [])],
        )  # fmt: skip


def _evidence(
    session: SessionState, a: str, b: str, data: Mapping[str, Any], link: str
) -> DifferencePane | None:
    """The worst layers' pictures; picking one of them shows it."""

    def own(row: Mapping[str, Any]) -> float:
        error = (row.get("isolated") or row)["rel_l2"]
        return math.inf if error is None else error

    first = (data["first_divergence"] or {}).get("name")
    order = sorted(data["layers"], key=lambda row: (row["name"] != first, -own(row)))
    answers: dict[str, dict[str, Any]] = {}
    for row in order[:PICTURES]:
        alone = row["isolated"] is not None
        outputs = views.compared_outputs(row)
        one = comparisons.values(session, a, row["name"], None, (a, b), outputs)
        before = a if alone else None
        two = comparisons.values(session, b, row["name"], before, (a, b), outputs)
        if one.shape != two.shape or not one.size:
            continue
        pane = DifferencePane(a=a, b=b, tolerance=data["usual_tolerance"])
        pane.show(one, two)
        if pane.map_shape[0] * pane.map_shape[1] > PICTURE_VALUES:
            continue
        answers[row["name"]] = {
            "kind": "isolated" if alone else "accumulated",
            "layer": views.pane_layer(row, session.comparisons[a, b]),
            "channel": pane.channel, "map_shape": pane.map_shape, "map": pane.map,
            "detail": pane.detail,
        }  # fmt: skip
    if not answers:
        return None
    shown = next(iter(answers.values()))
    pane = DifferencePane(
        a=a, b=b, tolerance=data["usual_tolerance"], link=link, height=496, **shown
    )
    return answer(pane, answers)


# ---- quantization


def _quantization(session: SessionState, prefix: str) -> Iterator[Section]:
    made = session.quantization
    if made is None:
        return
    verdict = made.verdict
    facts = FactsCard(
        title=tr("Accuracy against the float model"),
        facts=[[k.replace("_", " "), f"{v:.4g}" if isinstance(v, float) else str(v)]
               for k, v in vars(verdict).items() if isinstance(v, (int, float, str, bool))],
    )  # fmt: skip
    widgets: list[Any] = [facts]
    if made.points:
        trade = TradeOff(
            points=made.points, method=made.method, float_=made.float_point,
            metric=made.accuracy_name,
        )  # fmt: skip
        widgets = [columns(trade, facts, kind="wide")]
    if made.layers:
        widgets.append(SensitivityList(layers=made.layers, kept=made.kept))
    kept = ", ".join(made.kept) or tr("none")
    yield Section(
        f"{prefix}quantization",
        tr("Quantization"),
        tr("Method: {method}. Layers kept in float: {kept}.", method=made.method, kept=kept),
        widgets,
    )
