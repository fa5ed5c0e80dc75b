"""How to quantize: plain choices."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from lite_messages import tr

from ..documents import Part
from ..errors import check_choice
from .guard import THRESHOLD_DB
from .observers import METHODS
from .scheme import Scheme

ROUNDINGS = ("auto", "nearest", "sums", "adaptive", "learned")


@dataclass(frozen=True)
class Options:
    """Plain choices; `to_dict` is enough to repeat a quantisation."""

    method: str = "auto"
    scheme: Scheme = field(default_factory=Scheme)
    equalize: bool = True
    bias_correction: bool = True
    rounding: str = "auto"  # with the method "auto": "learned" where it wins, else "sums"
    threshold_db: float = THRESHOLD_DB
    target_db: float | None = None
    target_top1: float | None = None  # share of samples whose largest output is the parent's
    max_bytes: int | None = None  # of the weights
    float_budget: float = 0.15  # extra cost that floats may make, as a share of the integers' own
    limit: int | None = None
    #: Backend on which the cost of a version is measured; "" estimates it.
    measure: str = ""

    def __post_init__(self) -> None:
        check_choice(tr("method"), self.method, ("auto", *METHODS))
        check_choice(tr("rounding"), self.rounding, ROUNDINGS)

    @property
    def searches(self) -> bool:
        return any(v is not None for v in (self.target_db, self.target_top1, self.max_bytes))

    def to_dict(self) -> dict[str, Any]:
        own = {f.name: getattr(self, f.name) for f in fields(self)}
        return {**own, "scheme": self.scheme.to_dict()}

    @staticmethod
    def from_dict(data: dict[str, Any]) -> Options:
        """Raises ModelFormatError for what `to_dict` did not make, UsageError."""
        made = Part(data, "options").into(Options)
        return made
