"""The Predictors of a Session: its versions as they run, with what was changed by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .by_hand import PRECISIONS

if TYPE_CHECKING:
    from .session import Session


class Predictors:
    """Made when first asked for and kept until a version or a board changes."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._kept: dict[Any, Any] = {}

    def get(self, backend: str, version: str | None = None, *, planted: bool = True) -> Any:
        """See `Session.predictor`."""
        from lite_engine.runtime import Predictor, host_target

        session = self._session
        model = session.model if version is None else session.versions[version]
        moved = {k: b for k, b in session.by_hand.moved(version).items() if b != backend}
        spoilt = session.faults.get(backend, {}) if planted else {}
        faults = {k: v for k, v in spoilt.items() if moved.get(k, "fp32") in PRECISIONS}
        changes = (tuple(moved.items()), tuple(faults.items()))
        key = (version or session.version, backend, session.threads, *changes)
        if key not in self._kept:
            here = host_target()
            plan_names = {k: "cpu" if b == here else b for k, b in moved.items()}
            device = session.boards.device if backend == session.boards.target else None
            self._kept[key] = Predictor(
                model, backend, threads=session.threads, overrides=plan_names, faults=faults,
                device=device,
            )  # fmt: skip
        return self._kept[key]

    def forget(self) -> None:
        """What runs next is planned again."""
        self._kept.clear()
