"""The sides of a Session's comparisons: what their names mean, who ran them, what a layer gave."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine.errors import UsageError

from .by_hand import layer_of
from .names import BACKENDS

if TYPE_CHECKING:
    from .session import Session


class Sides:
    """A side is named "opencl" (a backend), "int8" (a version) or "int8@opencl" (both)."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._compared: dict[tuple[str, str], dict[str, Any]] = {}

    def meant(self, name: str) -> tuple[str, str | None]:
        """A side's backend and version (None: the chosen one). Raises UsageError."""
        versions = self._session.versions
        version, _, backend = name.rpartition("@") if "@" in name else ("", "", name)
        if backend in versions:
            version, backend = backend, "auto"
        if backend not in (*BACKENDS, "auto") or (version and version not in versions):
            sides = ", ".join([*BACKENDS, *versions])
            raise UsageError(
                f"cannot compare {name!r}", fix=f"sides are {sides}, or VERSION@BACKEND"
            )
        return backend, version or None

    def made(self, pair: tuple[str, str]) -> dict[str, Any]:
        """Side → Predictor, of the versions and changes of now. Raises UsageError."""
        return {name: self._session.predictor(*self.meant(name)) for name in pair}

    def keep(self, pair: tuple[str, str], used: dict[str, Any]) -> None:
        """Remembers who made the comparison of `pair`."""
        self._compared[pair] = used

    def used(self, pair: tuple[str, str]) -> dict[str, Any]:
        """Side → Predictor of the pair's comparison, though the version is another by now."""
        return self._compared.get(pair) or self.made(pair)

    def precisions(self, pair: tuple[str, str]) -> tuple[str, str]:
        """What each side computes in: "int8" for a quantised version, else its storage."""
        used = self.used(pair)
        # By the name and not by `meant`: the version may be gone by now.
        plain = (*BACKENDS, "auto", self._session.base)
        a, b = (
            used[name].precision if name.partition("@")[0] in plain else "int8" for name in pair
        )
        return a, b

    def values(
        self,
        layer: str,
        side: str,
        alone_after: str | None,
        pair: tuple[str, str] | None,
        feeds: Mapping[str, np.ndarray],
        outputs: Collection[str] = (),
    ) -> np.ndarray:
        """See `Session.values`. Raises UsageError."""
        from lite_engine.compare import Side

        used = self.used(pair or (side, alone_after or side))
        own = Side(used[side]).at(feeds)
        node = layer_of(own.graph, layer)
        name = next((v.name for v in node.outputs if v.name in outputs), node.outputs[0].name)
        if alone_after is None:
            return used[side].run(feeds, taps=[name])[name]
        reads = [v.name for v in node.inputs if v is not None and v.const is None]
        inner = [r for r in reads if r not in feeds]
        source = used[alone_after].run(feeds, taps=inner)
        return own.isolated([node], {**feeds, **source})[name]
