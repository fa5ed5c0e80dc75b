"""Answers as Plotly figures, to restyle, combine and export. Each takes plain data.

`profile.figure("roofline")` and its like call these functions; plotly is imported when the first
figure is made. `template()` is one look for light and dark pages.
"""

from __future__ import annotations

from ._template import choose, new_figure, plotly, template

__all__ = ["choose", "new_figure", "plotly", "template"]
