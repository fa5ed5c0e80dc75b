"""Passes of a user's own, and of other packages: entry point group `lite_engine.passes`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lite_messages import tr

from ..errors import LiteError, UsageError
from ..extensions import PASSES, found
from ..ir import Graph, Journal
from ._core import Pass
from .pipeline import CLEAN, PIPELINE


@dataclass
class _Guarded:
    """A pass whose exceptions name it."""

    name: str
    inner: Pass

    def __call__(self, graph: Graph, journal: Journal) -> int:
        try:
            return self.inner(graph, journal)
        except LiteError:
            raise
        except Exception as error:
            raise LiteError(
                tr("the pass {name} raised {error!r}", name=self.name, error=error),
                fix=tr("leave it out, or report it to its author"),
            ) from error


def with_custom(passes: Sequence[Any]) -> list[Pass]:
    """The pipeline with these passes, objects or names of installed ones, after the graph is clean
    and before anything is fused. Raises UsageError for a name that is not installed and for what
    is not a pass."""
    own: list[Pass] = [_Guarded(made.name, made) for made in map(_pass, passes)]
    return [*CLEAN, *own, *PIPELINE] if own else PIPELINE


def _pass(given: Any) -> Pass:
    if not isinstance(given, str):
        made = given
    elif given in (known := found(PASSES)):
        try:
            made = known[given].load()
        except Exception as error:
            raise UsageError(
                tr("{origin} raised {error!r}", origin=known[given].origin, error=error)
            ) from error
    else:
        raise UsageError(
            tr("there is no pass {name!r}", name=given),
            fix=tr("installed: {names}", names=", ".join(known) or tr("none")),
        )
    if not callable(made) or not isinstance(getattr(made, "name", None), str):
        raise UsageError(
            tr("{given!r} is not a pass", given=given),
            fix=tr("make one with rule or graph_pass of lite_engine.passes"),
        )
    return made
