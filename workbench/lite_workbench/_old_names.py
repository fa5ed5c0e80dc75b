"""Names that the Session had in earlier versions: they still work, and warn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lite_engine._deprecated import warn_renamed

from .state import SessionState, comparisons, versions

if TYPE_CHECKING:
    from lite_engine.model_file import Model
    from lite_engine.runtime import Predictor

    from .state._state import Overrides, Pair


class OldNames(SessionState):
    """Deprecated attributes and methods of a Session."""

    @property
    def by_hand(self) -> Overrides:
        """Deprecated: use `overrides`."""
        warn_renamed("session.by_hand", "session.overrides")
        return self.overrides

    def sides(self, pair: Pair) -> dict[str, Predictor]:
        """Deprecated: use `lite_workbench.state.comparisons.sides_of`."""
        warn_renamed("session.sides", "lite_workbench.state.comparisons.sides_of")
        return comparisons.sides_of(self, pair)

    def side_precisions(self, pair: Pair) -> tuple[str, str]:
        """Deprecated: use `lite_workbench.state.comparisons.precisions_of_sides`."""
        warn_renamed(
            "session.side_precisions", "lite_workbench.state.comparisons.precisions_of_sides"
        )
        return comparisons.precisions_of_sides(self, pair)

    def set_version(self, name: str, model: Model) -> None:
        """Deprecated: use `lite_workbench.state.versions.keep`."""
        warn_renamed("session.set_version", "lite_workbench.state.versions.keep")
        versions.keep(self, name, model)

    def drop_version(self, name: str, instead: str) -> None:
        """Deprecated: use `lite_workbench.state.versions.drop`."""
        warn_renamed("session.drop_version", "lite_workbench.state.versions.drop")
        versions.drop(self, name, instead)
