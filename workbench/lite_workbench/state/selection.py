"""The selected layers of a session, as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .versions import model_of

if TYPE_CHECKING:
    import pandas as pd

    from ._state import SessionState


def selected_rows(state: SessionState) -> pd.DataFrame:
    """See `Session.selection`."""
    import pandas as pd
    from lite_engine.runtime.support import model_info

    profile = next(reversed(state.profiles.values()), None)
    if profile is not None:
        rows = profile.to_dataframe()
    else:
        layers = model_info(model_of(state).graph, state.path.name).layers
        rows = pd.DataFrame([vars(layer) for layer in layers])
    return rows[rows["name"].isin(state.selected)].reset_index(drop=True)
