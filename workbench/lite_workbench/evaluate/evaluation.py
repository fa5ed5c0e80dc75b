"""Evaluation: metrics of each side with intervals, differences between sides, a row per sample."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from lite_engine.runtime import strict_json
from lite_messages import trn

from .display import page
from .results import Change, SampleRow, SideResult

if TYPE_CHECKING:
    import pandas as pd

    from .judge import Judge


@dataclass
class Evaluation:
    """What `lite evaluate` found. `rows` are sorted by disagreement; `unreadable` are (sample,
    error) of samples that were left out."""

    model: str
    dataset: str
    task: str
    samples: int
    sides: list[SideResult]
    changes: list[Change]
    rows: list[SampleRow]
    unreadable: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        #: side → what it predicted for each sample, as `lite evaluate --predictions` writes it
        self.predictions: dict[str, list[dict[str, Any]]] = {}
        #: sample → what was evaluated, and how answers were read: for a look at one sample
        self.sources: dict[str, Any] = {}
        self.judge: Judge | None = None

    def __getitem__(self, side: str) -> SideResult:
        """Raises KeyError."""
        found = next((s for s in self.sides if s.name == side), None)
        if found is None:
            raise KeyError(side)
        return found

    @property
    def disagreements(self) -> list[SampleRow]:
        """Samples that not all sides answer alike."""
        return [row for row in self.rows if row.disagrees]

    @property
    def errors(self) -> list[SampleRow]:
        """Samples that a side has wrong, or not wholly right."""
        return [
            row for row in self.rows
            if any(s.right is False or s.value < 1 for s in row.sides.values())
        ]  # fmt: skip

    @property
    def sentences(self) -> list[str]:
        """One line for each change."""
        return [change.sentence for change in self.changes]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def to_json(self, **options: Any) -> str:
        return strict_json.dumps(self.to_dict(), **options)

    def to_dataframe(self) -> pd.DataFrame:
        """A row per sample, with columns like ("int8", "prediction")."""
        import pandas as pd

        rows = {
            row.name: {
                ("", "label"): row.label,
                **{(n, k): v for n, s in row.sides.items() for k, v in asdict(s).items()},
            }
            for row in self.rows
        }
        return pd.DataFrame.from_dict(rows, orient="index")

    def _repr_html_(self) -> str:
        title = trn(
            "{model} on {dataset}, {n} sample",
            "{model} on {dataset}, {n} samples",
            self.samples,
            model=self.model,
            dataset=self.dataset,
        )
        errors = [error for _, error in self.unreadable]
        shown = self.disagreements if len(self.sides) > 1 else self.rows
        return page(title, self.sides, self.changes, shown, self.notes, errors)

    def __repr__(self) -> str:
        first = self.sides[0]
        return (
            f"<Evaluation of {self.model} on {self.dataset}, {self.samples} samples: "
            f"{first.name} {first.main}>"
        )
