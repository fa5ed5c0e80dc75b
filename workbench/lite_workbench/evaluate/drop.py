"""How much a metric may lose, as a person says it: in the unit in which the metric is shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from lite_engine.errors import UsageError
from lite_messages import tr

from .results import unit_of

if TYPE_CHECKING:
    from .dataset import Dataset

#: The first metric of a task, where that is no share.
_FIRST = {"image": "PSNR"}


@dataclass(frozen=True)
class Drop:
    """0.5% are half a point of a share, 0.5dB are decibels; a number alone has the metric's unit,
    which is not known before the data set is; with `hundredths` it is divided by 100 where the
    metric has no unit (SSIM)."""

    number: float
    unit: str = ""
    hundredths: bool = False

    def __str__(self) -> str:
        return f"{self.number:g}{self.unit}"

    def of(self, data: Dataset | None) -> float:
        """The difference of the metric of this data set, or of a share where there is none. Raises
        UsageError for another unit than the metric's."""
        metric = "" if data is None else data.metric or _FIRST.get(data.task, "")
        unit = unit_of(metric.upper())
        if self.unit not in ("", unit):
            raise UsageError(
                tr("{drop} does not apply to {metric}, which has another unit",
                   metric=metric or tr("the metric"), drop=self),
                where=data.name if data is not None else "",
                fix=tr("give a number like {example}", example=f"0.5{unit}"),
            )  # fmt: skip
        small = unit == "%" or (self.hundredths and not unit)
        return self.number / 100 if small else self.number
