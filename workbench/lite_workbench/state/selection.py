"""The selected layers of a session, as a table and as a model; edited files, and what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lite_engine.errors import UsageError
from lite_messages import tr

from ..names import with_ending
from . import lite_file
from .versions import model_of

if TYPE_CHECKING:
    import pandas as pd

    from ..editing import Edited
    from ..model_diff import ModelDiff
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


def extract(state: SessionState, path: Path, layers: Sequence[str]) -> Path:
    """See `Session.extract`. A layer of an optimised graph stands for the layers of the file that
    it came from. Raises UsageError, LiteError."""
    from lite_engine import write_onnx
    from lite_engine.edit import extract_layers

    names = list(layers or state.selected)
    if not names:
        raise UsageError(
            tr("no layer is selected"), fix=tr("select layers in the graph, or name them")
        )
    source, known = state.graph, model_of(state).graph
    sources = {n.name: n.sources for n in known.nodes}
    wanted = {s for name in names for s in (name, *sources.get(name, ()))}
    found = [n.name for n in source.nodes if n.name in wanted or wanted & set(n.sources)]
    made = write_onnx(extract_layers(source, found or names), with_ending(path, ".onnx"))
    more = f", {list(layers)!r}" if layers else f", {names!r}"
    state.remember(f"session.extract({str(path)!r}{more})")
    return made


def edit(state: SessionState, path: Path, opset: int | None, changes: Mapping[str, Any]) -> Edited:
    """See `Session.edit`. Raises UsageError for a change that there is not."""
    from ..editing import Edits, write_edited

    known = [f.name for f in fields(Edits)]
    wrong = next((name for name in changes if name not in known), None)
    if wrong:
        raise UsageError(
            tr("there is no change {name!r}", name=wrong),
            fix=tr("use {names}", names=", ".join(known)),
        )
    like = lite_file.to_ship(state, []) if state.targets else None
    made = write_edited(state.graph, path, Edits(**changes), opset=opset, like=like)
    given = "".join(f", {name}={value!r}" for name, value in changes.items())
    state.remember(f"session.edit({str(path)!r}{given})")
    return made


def diff(state: SessionState, baseline: Path, optimized: bool) -> ModelDiff:
    """See `Session.diff`."""
    from ..model_diff import compare_graphs, read_graph

    mine = model_of(state).graph if optimized else state.graph
    made = compare_graphs(read_graph(baseline, optimized), mine, (str(baseline), str(state.path)))
    state.remember(f"session.diff({str(baseline)!r}{', optimized=True' if optimized else ''})")
    return made
