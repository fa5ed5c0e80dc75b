"""The trade-off of a pruned model: what each share of zeros, or of channels, costs and gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.errors import UsageError
from lite_engine.prune import Pruned
from lite_engine.runtime import host_target
from lite_messages import tr, trn

from .quantizing import Measured, measured, same_answers, weight_bytes

if TYPE_CHECKING:
    from lite_engine.model_file import Model
    from lite_engine.quantize.samples import Feed

    from .budget import WithinBudget

METHOD = "pruned"


@dataclass
class Version:
    """A pruned model of the trade-off, and its share of zeros or of channels that went."""

    share: float
    made: Pruned
    model: Model

    @property
    def label(self) -> str:
        share = f"{100 * self.share:.3g}"
        if self.made.options.sparsity is None and self.made.channels:
            return trn(
                "{share} % fewer channels in {n} group", "{share} % fewer channels in {n} groups",
                len(self.made.channels), share=share,
            )  # fmt: skip
        return trn(
            "{share} % zeros in {n} layer", "{share} % zeros in {n} layers",
            len(self.made.layers), share=share,
        )  # fmt: skip


@dataclass
class TradeOff:
    """`points` by share, as `lite_widgets.TradeOff` draws them, and the `dense` model's. Their
    accuracy, in percent, is `metric` on `samples`. `skipped` says of a share without a version
    why there is none."""

    points: list[dict[str, Any]]
    dense: dict[str, Any]
    metric: str
    samples: int
    skipped: dict[str, str] = field(default_factory=dict)
    method: str = METHOD

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def table(self) -> tuple[list[str], list[list[Any]]]:
        """The dense model, then each version."""
        heads = [tr("version"), f"{self.metric}, %", "ms", tr("bytes")]
        rows = [{**self.dense, "label": tr("dense")}, *self.points]
        return heads, [[r["label"], r["accuracy"], r["latency_ms"], r["bytes"]] for r in rows]


def trade_off(
    parent: Model,
    versions: Sequence[Version],
    feeds: Sequence[Feed],
    times: Sequence[Measured],
    within: WithinBudget | None,
    skipped: dict[str, str],
) -> TradeOff:
    """Of the dense `parent` and its versions, `times` are what `measured` says on `feeds`. Raises
    UsageError where the metric of the labeled data is not a percentage."""
    metric, accuracies, samples = _accuracies(parent, versions, feeds, times, within)
    points: list[dict[str, Any]] = [
        {"method": METHOD, "label": v.label, "share": v.share, "accuracy": accuracy,
         "sqnr_db": v.made.sqnr_db, "latency_ms": own.latency_ms, "latency_ci_ms": own.interval_ms,
         "bytes": weight_bytes(v.model)}
        for v, accuracy, own in zip(versions, accuracies[1:], times[1:], strict=True)
    ]  # fmt: skip
    points.sort(key=lambda point: point["share"])
    dense = {
        "accuracy": accuracies[0], "latency_ms": times[0].latency_ms,
        "bytes": weight_bytes(parent),
    }  # fmt: skip
    return TradeOff(points, dense, metric, samples, skipped)


def timed(parent: Model, versions: Sequence[Version], feeds: Sequence[Feed]) -> list[Measured]:
    """The dense model and its versions in turns on this machine's CPU."""
    return measured([parent, *(v.model for v in versions)], feeds, None, host_target())


def _accuracies(
    parent: Model,
    versions: Sequence[Version],
    feeds: Sequence[Feed],
    times: Sequence[Measured],
    within: WithinBudget | None,
) -> tuple[str, list[float], int]:
    """(what accuracy is, percent of the dense model and of each version, samples)."""
    if within is not None:
        sides = [within.evaluate(v.model).sides for v in versions]
        mains = [sides[0][0].main, *(side.main for _, side in sides)]
        if not mains[0].higher_is_better or not mains[0].short.endswith("%"):
            raise UsageError(
                tr("the metric {metric} is not a percentage where higher is better",
                   metric=mains[0].name),
                fix=tr("leave out --also, or choose another --metric"),
            )  # fmt: skip
        return mains[0].name, [100 * main.value for main in mains], len(within.judging)
    if same_answers([parent], feeds[:1]) is None:  # plain values: no two of them say the same
        left = [100 * max(0.0, 1 - 10 ** (-v.made.sqnr_db / 20)) for v in versions]
        return tr("100 % − relative error of the outputs"), [100.0, *left], len(feeds)
    same = [
        100 * float(np.mean([a == b for a, b in zip(times[0].said, own.said, strict=True)]))
        for own in times
    ]
    return tr("same result as float"), same, len(feeds)
