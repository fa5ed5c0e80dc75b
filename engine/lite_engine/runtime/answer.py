"""What the answers about a model have in common: the JSON that `--json` prints and the layers as a
table."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from ..display import Displayed
from . import strict_json

if TYPE_CHECKING:
    import pandas as pd


class Answer(Displayed):
    """A dataclass with `layers`, one dataclass each."""

    layers: list[Any]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)  # type: ignore[call-overload]

    def to_json(self, **options: Any) -> str:
        return strict_json.dumps(self.to_dict(), **options)

    def to_dataframe(self) -> pd.DataFrame:
        """The layers as a pandas DataFrame (needs the `lab` extra)."""
        import pandas as pd

        return pd.DataFrame([asdict(x) for x in self.layers])
