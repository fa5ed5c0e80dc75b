"""The regions of a session's network as rows: what was measured of their layers, added up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lite_engine.ir import Node

from ..structure import find_regions
from ._state import SessionState

if TYPE_CHECKING:
    import pandas as pd


def table(state: SessionState) -> pd.DataFrame:
    """`rows` as a DataFrame."""
    import pandas as pd

    return pd.DataFrame(rows(state))


def rows(state: SessionState) -> list[dict[str, Any]]:
    """Per region of the chosen version (before convert: of the file) "region", "blocks", "layers",
    "operators" (of the file), "weights_bytes", "ms_BACKEND" of each last profile (copies belong to
    no region), "error_A_B" (the largest isolated relative L2 error) of each comparison, and
    "evidence". None where nothing was measured."""
    model = state.versions.get(state.version)
    out = []
    for region in find_regions(model.graph if model else state.graph):
        nodes = region.nodes
        names = {node.name for node in nodes}
        out.append(
            {"region": region.name, "blocks": len(region.blocks), "layers": len(nodes),
             "operators": len({source for node in nodes for source in node.sources}),
             "weights_bytes": _bytes(nodes)} | _measured(state, names)
            | {"evidence": region.evidence}
        )  # fmt: skip
    return out


def _bytes(nodes: list[Node]) -> int:
    constants = {id(v): v.const.nbytes for node in nodes for v in node.inputs
                 if v is not None and v.const is not None}  # fmt: skip
    return sum(constants.values())


def _measured(state: SessionState, names: set[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for backend, profile in state.profiles.items():
        if profile.times_meaningful:
            times = [r.median_ms for r in profile.layers if r.name in names and not r.overhead]
            found[f"ms_{backend}"] = sum(times) if times else None
    for (a, b), comparison in state.comparisons.items():
        errors = [row.isolated["rel_l2"] for row in comparison.layers
                  if row.name in names and row.isolated]  # fmt: skip
        found[f"error_{a}_{b}"] = max(errors) if errors else None
    return found
