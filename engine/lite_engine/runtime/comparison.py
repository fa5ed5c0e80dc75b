"""The answer of a comparison: a row per layer, the first divergence, the verdict."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from . import strict_json


@dataclass
class LayerDifference:
    """One row of DESIGN's `compare` JSON. `isolated` holds the same numbers for the layer alone;
    `sources` are A's nodes, `sources_b` B's where they are others. `floor` is the
    |a−b| that is right whatever the relative error. `explained` is the error that rounding and
    clipping make, measured where it was asked for; `quantised` where sides hold other integers."""

    index: int
    name: str
    op: str
    sources: list[str]
    tolerance: float
    max_abs: float
    mean_abs: float
    rel_l2: float
    cosine: float
    sqnr_db: float | None
    nan_a: int
    nan_b: int
    range_a: tuple[float, float]
    range_b: tuple[float, float]
    worst: tuple[int, ...]
    worst_a: float
    worst_b: float
    isolated: dict[str, Any] | None
    within: bool
    kernel_b: str = ""
    value_a: str = ""
    value_b: str = ""
    sources_b: list[str] = field(default_factory=list)
    floor: float = 0.0
    explained: float | None = None
    quantised: bool = False
    detail: dict[str, Any] | None = None


@dataclass
class Comparison:
    """Answer of `lite compare`. `agrees` is False when a layer is wrong by itself or outputs
    differ or have no counterpart (`outputs_alone`, in words). `unaligned` counts layers of B that
    have no counterpart; `magnified` names the layer that makes a large difference of a small one,
    for outputs that differ for no other reason; `outputs_apart` are the outputs that differ by more
    than that and rounding explain. With `layers` or `until` no output is looked at."""

    a: str
    b: str
    tolerance: float | None
    first_divergence: dict[str, Any] | None
    layers: list[LayerDifference]
    agrees: bool
    verdict: str = ""
    outputs: dict[str, dict[str, Any]] = field(default_factory=dict)
    model: str = ""
    magnified: dict[str, str] = field(default_factory=dict)
    outputs_apart: list[str] = field(default_factory=list)
    outputs_alone: list[str] = field(default_factory=list)
    unaligned: int = 0
    runs: int = 0

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_json(self, **options: Any) -> str:
        return strict_json.dumps(self.to_dict(), **options)

    def to_dataframe(self) -> Any:
        """The layers as a pandas DataFrame (needs the `lab` extra)."""
        import pandas as pd

        return pd.DataFrame([asdict(x) for x in self.layers])
