"""What a session holds, and what is done with it.

`SessionState` is the data; the modules here are functions that read and change it (versions,
overrides, predictors, comparisons, the `.lite` file). `lite_workbench.session` puts them together.
"""

from ._state import Overrides, SessionState, UsedBoard

__all__ = ["Overrides", "SessionState", "UsedBoard"]
