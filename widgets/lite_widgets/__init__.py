"""Widgets that draw plain data: profiles, comparisons and graphs of small inference engines.

Each widget takes dicts (see `lite_widgets.data`) and gives a selection back; none knows the
engine. Names are loaded when they are first used, so that the Jupyter server, which imports this
package only for its netron handlers, does not pay for all of them.
"""

from importlib import import_module
from typing import Any

_HOMES = {
    "BundleList": "bundle_list",
    "CodeDrawer": "code_drawer",
    "CopiesTable": "copies_table",
    "DataTable": "data_table",
    "DifferencePane": "error_strip",
    "DoctorCards": "doctor_cards",
    "DropZone": "drop_zone",
    "ErrorStrip": "error_strip",
    "FactsCard": "facts_card",
    "Form": "form",
    "GraphView": "graph_view",
    "Inspector": "inspector",
    "LatencyChart": "latency_chart",
    "LayerTable": "layer_table",
    "MemoryMap": "memory_map",
    "NetronView": "netron_view",
    "Notice": "notice",
    "OverviewStrip": "overview_strip",
    "PicturedBox": "workbench_view",
    "RangePlot": "range_plot",
    "ResultCard": "result_card",
    "Roofline": "roofline",
    "Running": "running",
    "SensitivityList": "sensitivity_list",
    "SourceCode": "source_code",
    "Stages": "stages",
    "StepHeader": "step_header",
    "Stepper": "stepper",
    "SweepChart": "sweep_chart",
    "TabBar": "tab_bar",
    "Tabbed": "workbench_view",
    "TensorView": "tensor_view",
    "Timeline": "timeline",
    "TimingLine": "timing_line",
    "TopBar": "top_bar",
    "TradeOff": "trade_off",
    "TransitionMatrix": "transition_matrix",
    "TypeSummary": "type_summary",
    "Waterfall": "waterfall",
    "WorkbenchView": "workbench_view",
    "columns": "workbench_view",
    "difference_detail": "error_strip",
    "tensor_views": "tensor_view",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lite_widgets' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)


def __dir__() -> list[str]:
    return sorted(_HOMES)
