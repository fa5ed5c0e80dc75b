"""One look for light and dark pages, safe for colour-blind readers."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from lite_messages import tr

from ..errors import LiteError, UsageError
from ._images import figure_class

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

#: Okabe and Ito's colours (Color Universal Design, 2008) without black and yellow.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00", "#868e96")
BACKENDS = {"x86": "#0072b2", "arm": "#cc79a7", "wasm": "#009e73", "cpu": "#0072b2",
            "opencl": "#e69f00", "reference": "#868e96"}  # fmt: skip
BAD, FINE = "#d55e00", "#868e96"
#: Readable on white and on near black (4.5:1 and 4.6:1).
_INK, _GRID = "#767676", "rgba(128,128,128,0.25)"


def plotly() -> Any:
    """plotly.graph_objects. Raises LiteError where it is not installed."""
    try:
        import plotly.graph_objects as go
    except ImportError:
        raise LiteError(
            tr("figures need plotly"), command="pip install 'lite-workbench[lab]'"
        ) from None
    return go


def template() -> Any:
    """The plotly `layout.Template` of all figures. Raises LiteError without plotly."""
    axis = {"gridcolor": _GRID, "zerolinecolor": _GRID, "linecolor": _GRID, "automargin": True}
    return plotly().layout.Template(
        layout={
            "colorway": list(COLOURS), "font": {"color": _INK, "size": 12},
            "paper_bgcolor": "rgba(0,0,0,0)", "plot_bgcolor": "rgba(0,0,0,0)",
            "xaxis": axis, "yaxis": axis, "hovermode": "closest", "dragmode": "select",
            "margin": {"l": 60, "r": 20, "b": 50},
            "title": {"x": 0, "xanchor": "left", "xref": "container", "pad": {"l": 12, "t": 12},
                      "y": 1, "yanchor": "top", "font": {"size": 14}},
            "legend": {"orientation": "h", "y": 1.02, "yanchor": "bottom"},
        }
    )  # fmt: skip


def new_figure(traces: list[Any], title: str, x: str, y: str, **layout: Any) -> Figure:
    """A Figure in the common look; `x` and `y` are the axes' titles, with their units."""
    lines = textwrap.wrap(title, 90)
    figure: Figure = figure_class(plotly().Figure)(traces)
    figure.update_layout(
        template=template(), title_text="<br>".join(lines), xaxis_title=x, yaxis_title=y,
        margin_t=60 + 18 * len(lines), **layout,
    )  # fmt: skip
    return figure


def choose(kind: str, kinds: Mapping[str, Callable[..., Any]]) -> Callable[..., Any]:
    """The function that makes this kind of figure. Raises UsageError."""
    if kind not in kinds:
        raise UsageError(
            tr("there is no figure {kind!r}", kind=kind),
            fix=tr("choose from {kinds}", kinds=", ".join(kinds)),
        )
    return kinds[kind]
