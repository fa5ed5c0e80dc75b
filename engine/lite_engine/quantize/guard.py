"""No quantised model is saved unseen: it is compared with its float parent first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from lite_messages import tr

from ..errors import CalibrationError
from ..ir import Graph
from ..ir.bfloat16 import widened
from ._run import Feeds, Run, reference_run
from .metrics import PERFECT_DB, Errors
from .select import integer_nodes

#: Mean SQNR of the outputs below which a model is refused.
THRESHOLD_DB = 6.0
WORST = 5
#: An input as good as 8 bits hold it: a layer is not ranked worse for a better one.
GOOD_DB = 50.0


@dataclass
class Verdict:
    """Outputs and layers of a quantised graph against its float parent."""

    outputs: dict[str, dict[str, float | None]]
    #: name, op, sqnr_db, drop_db (None where no error reaches the layer); in the graph's order
    layers: list[dict[str, Any]]
    sqnr_db: float
    threshold_db: float
    samples: int
    held_out: bool = True  # did calibration not see the samples?
    bits: int = 8  # of the weights

    @property
    def passed(self) -> bool:
        return self.sqnr_db >= self.threshold_db

    @property
    def worst(self) -> list[dict[str, Any]]:
        """Layers that lose most against what reaches them."""
        return sorted(self.layers, key=_lost, reverse=True)[:WORST]

    def to_dict(self) -> dict[str, Any]:
        return {
            "passed": self.passed,
            "sqnr_db": round(self.sqnr_db, 3),
            "threshold_db": self.threshold_db,
            "samples": self.samples,
            "held_out": self.held_out,
            "outputs": self.outputs,
            "layers": self.layers,
            "worst": [layer["name"] for layer in self.worst],
            "advice": self.advice(),
        }

    def advice(self) -> str:
        names = ",".join(layer["name"] for layer in self.worst[:3])
        if self.bits == 4:
            return tr(
                "keep {names} in float, use smaller or asymmetric groups, use more varied "
                "samples, or store weights in 8 bits",
                names=names,
            )
        return tr(
            "keep {names} in float, try another method (mse, minmax, kl), use "
            "more varied samples, or use learned rounding",
            names=names,
        )

    def require(self) -> None:
        """Raises CalibrationError when the quantised model is not good enough."""
        if not self.passed:
            worst = ", ".join(f"{w['name']} {w['sqnr_db']:.1f} dB" for w in self.worst[:3])
            raise CalibrationError(
                tr(
                    "the quantized model has an SQNR of {sqnr_db:.1f} dB against the "
                    "float model, below the threshold of {threshold_db:g} dB (SQNR of the "
                    "worst layers: {worst})",
                    sqnr_db=self.sqnr_db,
                    threshold_db=self.threshold_db,
                    worst=worst,
                ),
                fix=tr("{advice}, or --force", advice=self.advice()),
            )


def _lost(layer: Mapping[str, Any]) -> float:
    """What a layer loses against its input, or against a good one."""
    most: float = GOOD_DB - layer["sqnr_db"]
    return most if layer["drop_db"] is None else min(layer["drop_db"], most)


def judge(
    graph: Graph,
    quantised: Graph,
    feeds: Iterable[Feeds],
    *,
    run: Run = reference_run,
    threshold_db: float = THRESHOLD_DB,
    keep_float: frozenset[str] = frozenset(),
    held_out: bool = True,
    bits: int = 8,
) -> Verdict:
    """Runs both graphs on samples that calibration did not see; `held_out` says whether it did not,
    `bits` how many the weights have.

    `graph` is the prepared float graph, `quantised` its QDQ form: their values have the same names.
    """
    chosen, _ = integer_nodes(graph, keep_float)
    nodes = [n for n in graph.nodes if n.name in chosen]
    given = {v.name for v in graph.inputs}
    read = [v for n in nodes for v in n.inputs if v is not None and v.const is None]
    names = [v.name for n in nodes for v in n.outputs]
    names += [v.name for v in read if v.name not in given]
    names = list(dict.fromkeys(names))
    outputs = [v.name for v in graph.outputs]
    errors, count = Errors(), 0
    for feed in feeds:
        both = (widened(run(g, feed, names), g) for g in (graph, quantised))
        errors.add(*both)
        count += 1
    if not count:
        raise CalibrationError(tr("there is no sample to compare the quantized model with"))
    layers = []
    for node in nodes:
        if node.output.name not in errors:
            continue  # a fast runner may have fused the value away
        own = errors[node.output.name].sqnr_db
        reached = [
            errors[v.name].sqnr_db for v in node.inputs if v is not None and v.name in errors
        ]
        before = min(reached, default=PERFECT_DB)
        layers.append(
            {
                "name": node.name,
                "op": node.op,
                "sqnr_db": round(own, 3),
                "drop_db": None if before == PERFECT_DB else round(max(0.0, before - own), 3),
                "sources": list(node.sources),
            }
        )
    return Verdict(
        {n: errors[n].to_dict() for n in outputs if n in errors},
        layers,
        errors.sqnr_db(outputs),
        threshold_db,
        count,
        held_out,
        bits,
    )
