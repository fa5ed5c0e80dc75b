"""How answers are displayed in a notebook: as the widget; as HTML where there are no widgets.

`import lite_workbench` in IPython calls `install`. Terminals show the short text of each object.
"""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Any

from lite_engine import settings
from lite_engine.errors import LiteError
from lite_engine.terminal import error_line
from lite_messages import tr

from .internal_error import as_ours, own_place

if TYPE_CHECKING:
    from ipywidgets import Widget
    from lite_engine.compare.comparison import Comparison
    from lite_engine.compare.many import ComparisonOfInputs
    from lite_engine.history.changes import ProfileChange
    from lite_engine.pipeline import Pipeline, PipelineComparison, PipelineProfile
    from lite_engine.profile import Profile
    from lite_engine.runtime.support import ModelInfo
    from lite_widgets import PicturedBox

    from .evaluate import Evaluation
    from .looking import Look
    from .model_diff import ModelDiff
    from .pipelines.quantizing import PipelineQuantization
    from .pipelines.session import PipelineSession
    from .pruning import Pruning
    from .quantizing import Quantization
    from .recommend import Recommendation
    from .session import Session
    from .sweep import Sweep
    from .workbench import Workbench

Bundle = dict[str, Any]


def install(shell: Any) -> None:
    """Sessions and answers become widgets in this IPython, and our errors one line."""
    formatter = shell.display_formatter.mimebundle_formatter
    for home, name in _SHOWN:
        formatter.for_type_by_name(home, name, lambda value, **_: bundle(value))
    shell.set_custom_exc((LiteError, KeyboardInterrupt), _one_line)


def _one_line(
    shell: Any, kind: type, error: BaseException, trace: Any, tb_offset: Any = None
) -> None:
    """What, where and the fix; a traceback only with LITE_DEBUG=1, and where code of others was
    interrupted."""
    theirs = isinstance(error, KeyboardInterrupt) and not own_place(error)
    if theirs or settings.get("LITE_DEBUG"):
        shell.showtraceback((kind, error, trace), tb_offset=tb_offset)
    else:
        shell._showtraceback(kind, error, [error_line(as_ours(error))])


def in_notebook() -> bool:
    """Does a Jupyter kernel run this, and are the widgets installed?"""
    from importlib.util import find_spec

    try:
        from IPython import get_ipython
    except ImportError:
        return False
    shell = get_ipython()
    return hasattr(shell, "kernel") and find_spec("anywidget") is not None


def bundle(value: Any) -> Bundle | None:
    """MIME type → content of an answer as a widget; None where another display has to do."""
    make = _VIEWS.get(type(value).__name__)
    widget = make(value) if make is not None and in_notebook() else None
    if widget is None:
        return None
    made = widget._repr_mimebundle_()
    data: Bundle = dict(made[0] if isinstance(made, tuple) else made)
    return {**data, "text/plain": repr(value)}


def _profile(value: Profile) -> PicturedBox:
    from lite_widgets import LatencyChart, LayerTable, TimingLine

    data, link = _views().profile_data(value), f"lite-{id(value)}"
    roof = _views().roof_of(value)
    return _stack(
        TimingLine(profile=data), LatencyChart(profile=data, link=link, roof=roof),
        LayerTable(profile=data, link=link, height=320),
    )  # fmt: skip


def _comparison(value: Comparison) -> PicturedBox:
    from lite_widgets import ErrorStrip, LayerTable

    data, link = _views().comparison_data(value), f"lite-{id(value)}"
    shared = {"comparison": data, "link": link, "tolerance": value.usual_tolerance}
    return _stack(ErrorStrip(**shared), LayerTable(**shared, height=320))


def _inputs(value: ComparisonOfInputs) -> PicturedBox:
    from .answer_tables import inputs_tables

    return _tables(inputs_tables(value))


def _change(value: ProfileChange) -> PicturedBox:
    from lite_widgets import Waterfall

    return _stack(Waterfall(change=value.to_dict()))


def _info(value: ModelInfo) -> PicturedBox:
    from lite_widgets import DataTable, FactsCard

    return _stack(
        FactsCard(**_views().facts_data(value)),
        DataTable(title=tr("Operators"), **_views().support_data(value)),
    )


def _session(value: Session | PipelineSession) -> Workbench:
    from .workbench import Workbench

    return Workbench(value)


def _quantization(value: Quantization) -> PicturedBox | None:
    from lite_widgets import SensitivityList, TradeOff

    if not value.points:
        return None
    return _stack(
        TradeOff(metric=value.accuracy_name, method=value.method, float_=value.float_point,
                 points=value.points),
        SensitivityList(layers=value.layers, unit="%"),
    )  # fmt: skip


def _pruning(value: Pruning) -> PicturedBox | None:
    from lite_widgets import DataTable, TradeOff

    from .pipelines.tables import table_traits

    own = value.trade_off
    if own is None:
        return None
    trade = TradeOff(metric=own.metric, method=own.method, float_=own.dense, points=own.points)
    return _stack(trade, DataTable(**table_traits(value.headline, *value.table())))


def _evaluation(value: Evaluation) -> PicturedBox:
    from .answer_tables import evaluation_tables

    return _tables(evaluation_tables(value))


def _sweep(value: Sweep) -> PicturedBox:
    from lite_widgets import DataTable, SweepChart

    from .answer_tables import sweep_chart, sweep_tables

    return _stack(SweepChart(**sweep_chart(value)), DataTable(**sweep_tables(value)[0]))


def _recommendation(value: Recommendation) -> PicturedBox:
    from .answer_tables import recommendation_tables

    return _tables(recommendation_tables(value))


def _diff(value: ModelDiff) -> PicturedBox:
    from lite_widgets import GraphView

    return _stack(GraphView(title=tr("What changed"), **_views().diff_data(value)))


def _look(value: Look) -> PicturedBox:
    from lite_widgets import TensorView

    view = TensorView()
    value.fill(view)
    view.tensors = []  # nobody answers a choice here
    return _stack(view)


def _pipeline(value: Pipeline) -> PicturedBox:
    from lite_widgets import DataTable, ResultCard, Stages

    from .pipelines.tables import answer_items, cards, stage_table, table_traits

    views = [Stages(title=value.name, stages=cards(value), cancellable=False)]
    if last := value.last:
        views += [
            ResultCard(kind="values", title=value.name, items=answer_items(last["answers"]),
                       image=b"" if value.hears else value.drawn()),
            DataTable(**table_traits(tr("Stages"), *stage_table(last["times"]))),
        ]  # fmt: skip
    return _stack(*views)


def _pipeline_comparison(value: PipelineComparison) -> PicturedBox:
    from lite_widgets import DataTable

    from .pipelines.tables import comparison_table, table_traits

    title = f"{value.baseline} / {value.candidate}"
    table = table_traits(title, *comparison_table(value))
    return _stack(DataTable(**table, note="; ".join(value.changes) or tr("same answer")))


def _pipeline_profile(value: PipelineProfile) -> PicturedBox:
    from .pipelines.tables import profile_table, table_traits

    return _tables([table_traits(value.pipeline, *profile_table(value))])


def _pipeline_quantization(value: PipelineQuantization) -> PicturedBox:
    from .pipelines.tables import choices_table, table_traits

    return _tables([table_traits(value.headline, *choices_table(value))])


def _tables(tables: list[dict[str, Any]]) -> PicturedBox:
    from lite_widgets import DataTable

    return _stack(*(DataTable(**traits) for traits in tables))


def _stack(*widgets: Widget) -> PicturedBox:
    from lite_widgets import PicturedBox

    box = PicturedBox(list(widgets))
    box.add_class("lite-step-body")
    return box


def _views() -> ModuleType:
    from . import views

    return views


_SHOWN = (
    ("lite_engine.profile.record", "Profile"),
    ("lite_engine.compare.comparison", "Comparison"),
    ("lite_engine.compare.many", "ComparisonOfInputs"),
    ("lite_engine.history.changes", "ProfileChange"),
    ("lite_engine.runtime.support", "ModelInfo"),
    ("lite_engine.pipeline.pipeline", "Pipeline"),
    ("lite_engine.pipeline.compare", "PipelineComparison"),
    ("lite_workbench.session", "Session"),
    ("lite_workbench.pipelines.session", "PipelineSession"),
    ("lite_workbench.pipelines.quantizing", "PipelineQuantization"),
    ("lite_engine.pipeline.profile", "PipelineProfile"),
    ("lite_workbench.quantizing", "Quantization"),
    ("lite_workbench.pruning", "Pruning"),
    ("lite_workbench.evaluate.evaluation", "Evaluation"),
    ("lite_workbench.sweep.result", "Sweep"),
    ("lite_workbench.recommend", "Recommendation"),
    ("lite_workbench.model_diff", "ModelDiff"),
    ("lite_workbench.looking", "Look"),
)
_VIEWS: dict[str, Callable[[Any], PicturedBox | Workbench | None]] = {
    "Profile": _profile, "Comparison": _comparison, "ComparisonOfInputs": _inputs,
    "ProfileChange": _change, "ModelInfo": _info,
    "Pipeline": _pipeline, "PipelineComparison": _pipeline_comparison,
    "PipelineSession": _session, "PipelineQuantization": _pipeline_quantization,
    "PipelineProfile": _pipeline_profile,
    "Session": _session, "Quantization": _quantization, "Pruning": _pruning,
    "Evaluation": _evaluation,
    "Sweep": _sweep, "Recommendation": _recommendation, "ModelDiff": _diff,
    "Look": _look,
}  # fmt: skip
