"""What a session holds, and what is done with it.

`SessionState` is the data; the modules here are functions that read and change it: `versions`,
`int8_version`, `overrides` and `layer_changes`; `feeds`, `predictors`, `measuring`, `comparisons`,
`evaluations`; `selection`, `boards`; `exports` and `lite_file`; `undo` and `project`.
`lite_workbench.session` puts them together.
"""

from ._state import Overrides, SessionState, UsedBoard

__all__ = ["Overrides", "SessionState", "UsedBoard"]
