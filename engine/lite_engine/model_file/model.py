"""Model: what a `.lite` file holds, and saving it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lite_messages import tr

from .contents import Contents


class Model(Contents):
    """An optimised graph with its targets, as `optimize` makes it or a `.lite` file holds it."""

    def but(self, **changes: Any) -> Model:
        """The same model with other values of these attributes."""
        return Model(**{**vars(self), **changes})

    def save(
        self,
        path: str | Path,
        *,
        ship_kernels: bool = False,
        tunable: bool = False,
        backends: Sequence[str] = (),
        sizes: Sequence[Contents] = (),
    ) -> Path:
        """Writes a `.lite` file (to a temporary name, then renamed). Same model, same bytes.

        `ship_kernels` puts the C and OpenCL kernels of its custom operators into the file, for
        `lite_run --trust`; nothing loads them without being asked. `tunable` stores further OpenCL
        variants of each layer, of which `lite_run --tune` finds the fastest. `backends` names
        plug-ins whose sub-graphs `lite_run --library` runs, with the program for the CPU beside
        them. `sizes` is this model with each of the fixed input sizes that programs are for, where
        it leaves a size open.
        """
        from .writer import write_model

        return write_model(
            self,
            Path(path),
            ship_kernels=ship_kernels,
            tunable=tunable,
            backends=backends,
            sizes=sizes,
        )

    def __repr__(self) -> str:
        targets = ", ".join(f"{t} {self.display_precision(t)}" for t in self.targets) or tr(
            "any target"
        )
        return f"<Model {self.name}: {len(self.graph.nodes)} layers, {targets}>"
