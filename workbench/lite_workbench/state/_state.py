"""The data of a session."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from lite_engine import settings

from .._working import Working

if TYPE_CHECKING:
    from lite_engine.compare.comparison import Comparison
    from lite_engine.devices import Device
    from lite_engine.export import Exported
    from lite_engine.ir import Graph
    from lite_engine.model_file import Model
    from lite_engine.passes import Optimized
    from lite_engine.profile import Profile
    from lite_engine.profile.advice import Advice
    from lite_engine.quantize import Verdict
    from lite_engine.runtime import Predictor
    from lite_engine.runtime.support import ModelInfo

    from ..answers import Run
    from ..evaluate import Evaluation
    from ..quantizing import Quantization
    from ..recommend import Recommendation
    from ..sweep import Sweep

#: The two names of a comparison: baseline and candidate.
Pair = tuple[str, str]


@dataclass
class Overrides:
    """Layers that were set by hand, under the names that they have in the float version.

    backends    {layer: backend, or "fp32" in a half-precision version}
    precisions  {layer: precision} of the version "custom"
    base        the version that "custom" was made from
    verdict     how far the outputs of "custom" are from the float version's; None without one
    """

    backends: dict[str, str] = field(default_factory=dict)
    precisions: dict[str, str] = field(default_factory=dict)
    base: str = ""
    verdict: Verdict | None = None


@dataclass
class UsedBoard:
    """The board that runs the steps of its CPU target, "arm" or "x86", and of "opencl" where it has
    a usable device."""

    name: str
    target: str
    device: Device
    opencl: bool = False

    @property
    def backends(self) -> tuple[str, ...]:
        """What runs there."""
        return (self.target, "opencl") if self.opencl else (self.target,)


@dataclass(eq=False, repr=False)
class SessionState(Working):
    """One model and everything that was done with it.

    path, shapes   the file, and the input shapes that were fixed when it was read
    graph, info    the file's graph, and what `lite info` says about it
    base           the version that a conversion makes: "float", or "as in the file" where it
                   holds integers
    versions       name → Model: `base`; "int8" or "mixed" after quantizing; "custom" after the
                   precision of a layer was set by hand
    version        the chosen one
    targets, precision   what was converted for
    int8_targets   those that are int8 in an exported file while the others take the chosen version
    pixels_known   does the file itself say how pixels become numbers?
    feeds, image   the input: arrays by name, and the PNG bytes of the image that it was made of
    input_name     what it is, in a few words
    runs, profiles (by backend), comparisons (by pair), advice (by backend)   the last of each
    profiled       backend → the version and the Predictor that its profile is of
    as_in_file     runs the file's graph as it is; made when somebody looks inside it
    compared       pair → the Predictors that its comparison is of, by side
    compared_of    pair → the version that was chosen then, and the name of the input
    compared_on    pair → that input
    evaluations, sweeps, recommendations   every one, oldest first
    history        every profile, oldest first
    measured_at    (what, of which backend or pair) → the time of the last result
    faults         {backend: {layer: kind}}, planted for lessons
    optimized      what the passes made of the graph; the first conversion takes it
    threads        CPU threads; None for the default
    board          the board in use
    notes          what its owner wrote about it, kept in a project
    code           the session so far, one line of Python each
    """

    path: Path
    graph: Graph
    info: ModelInfo
    base: str
    pixels_known: bool
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    versions: dict[str, Model] = field(default_factory=dict)
    version: str = ""
    targets: list[str] = field(default_factory=list)
    precision: dict[str, str] = field(default_factory=dict)
    overrides: Overrides = field(default_factory=Overrides)
    int8_targets: list[str] = field(default_factory=list)
    feeds: dict[str, np.ndarray] | None = None
    image: bytes = b""
    input_name: str = ""
    runs: dict[str, Run] = field(default_factory=dict)
    profiles: dict[str, Profile] = field(default_factory=dict)
    profiled: dict[str, tuple[str, Predictor]] = field(default_factory=dict)
    advice: dict[str, list[Advice]] = field(default_factory=dict)
    comparisons: dict[Pair, Comparison] = field(default_factory=dict)
    compared: dict[Pair, dict[str, Predictor]] = field(default_factory=dict)
    compared_of: dict[Pair, tuple[str, str]] = field(default_factory=dict)
    compared_on: dict[Pair, dict[str, np.ndarray]] = field(default_factory=dict)
    as_in_file: Predictor | None = None
    evaluations: list[Evaluation] = field(default_factory=list)
    sweeps: list[Sweep] = field(default_factory=list)
    recommendations: list[Recommendation] = field(default_factory=list)
    quantization: Quantization | None = None
    exported: Path | Exported | None = None
    history: list[Profile] = field(default_factory=list)
    measured_at: dict[tuple[str, Any], float] = field(default_factory=dict)
    faults: dict[str, dict[str, str]] = field(default_factory=dict)
    optimized: Optimized | None = None
    threads: int | None = None
    board: UsedBoard | None = None
    notes: str = ""
    code: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__()
        self.version = self.version or self.base
        #: held by whoever changes or runs a version
        self.busy = threading.RLock()
        #: Predictors that were made, by what they were made of
        self.predictors: dict[Any, Predictor] = {}
        self._selected: list[str] = []
        #: What `undo` takes back, oldest first; a change is under way
        self.undoable: list[Any] = []
        self.recording = False

    def __setattr__(self, name: str, value: Any) -> None:
        """A number of threads that no run could use is refused where it is given. Raises
        UsageError."""
        if name == "threads" and value is not None:
            value = settings.threads(value)
        super().__setattr__(name, value)

    @property
    def is_base(self) -> bool:
        """Is the chosen version the file's, neither quantized nor set by hand here?"""
        return self.version == self.base

    @property
    def metadata(self) -> dict[str, Any]:
        """What travels with the model: how images are prepared, labels."""
        return self.versions.get(self.base, self.graph).metadata

    def measured(self, what: str, of: Any) -> None:
        """Notes that a result was made now."""
        self.measured_at[what, of] = time.time()

    def clock(self, what: str, of: Any) -> str:
        """When the last result of this kind was made, as 14:32:05; empty when there is none."""
        at = self.measured_at.get((what, of))
        return "" if at is None else time.strftime("%H:%M:%S", time.localtime(at))

    # ---- selection

    @property
    def selected(self) -> list[str]:
        """Names of the selected layers."""
        return list(self._selected)

    @selected.setter
    def selected(self, layers: str | Sequence[str]) -> None:
        names = [layers] if isinstance(layers, str) else list(layers)
        if names != self._selected:
            self._selected = names
            self.notify("selected", names)
