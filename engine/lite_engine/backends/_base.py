"""What a backend promises to the runtime: `Backend` and `Executable`, and what only some can do.

`Tunable`, `Offload`, `Probed` and `Joint` are a backend's own choice, `Repeats`, `Recovering`,
`Threaded` and `Compiling` an executable's: a caller asks with isinstance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from ..errors import BackendUnavailableError

if TYPE_CHECKING:
    from ..plan import Segment
    from ._usability import Usability


#: How the variant of a step ends whose time is its share of a sub-graph's by an estimate.
SHARED = "(share)"


class StepTime(NamedTuple):
    """Start and end of one step in nanoseconds from the start of its segment's run, and the full
    name of the kernel that ran.

    `threads_ns` is what each thread computed of it (the rest it waited), `launches_ns` when each of
    its launches and copies was put into a device's queue, started and ended. Empty: not known.
    """

    start_ns: int
    end_ns: int
    variant: str
    threads_ns: tuple[int, ...] = ()
    launches_ns: tuple[tuple[int, int, int], ...] = ()

    def later(self, ns: int) -> StepTime:
        """The same, seen from a start that lies `ns` earlier."""
        launches = tuple([(q + ns, a + ns, b + ns) for q, a, b in self.launches_ns])
        start, end = self.start_ns + ns, self.end_ns + ns
        return StepTime(start, end, self.variant, self.threads_ns, launches)


class Samples(NamedTuple):
    """Repeated runs of a segment: steps_ns (runs, steps), total_ns (runs,), the first run's time,
    and what is known of the machine that ran them. `instructions` are counted under emulation:
    "steps" (one number each), "run" and "first_result" (from the start of the process)."""

    steps_ns: np.ndarray
    total_ns: np.ndarray
    first_ns: int
    environment: dict[str, Any]
    warnings: list[str]
    instructions: dict[str, Any] | None = None


class Measured(NamedTuple):
    """One layer's ways, measured: `before` is the one that it took until then, `way` the fastest;
    `seconds` has all that were tried, infinite for one that failed. Layers of one `size` share
    their way; the first one's name stands here."""

    layer: str
    size: str
    before: str
    way: str
    seconds: dict[str, float]


class LayersRefused(BackendUnavailableError):
    """A backend has no way left to run these layers of a segment, but can run others. `layers`
    maps names to reasons."""

    def __init__(self, layers: Mapping[str, str]) -> None:
        self.layers = dict(layers)
        name, reason = next(iter(self.layers.items()))
        super().__init__(reason, where=name)


class Executable(Protocol):
    """A segment that is ready to run. Not for two threads at once.

    `compile` and `run` raise LayersRefused for layers that have to run on another backend.
    `run` takes the segment's inputs and returns its outputs in the order of `plan.inputs` and
    `plan.outputs`: arrays in physical order for host tensors, the backend's own objects for others.
    """

    def run(self, inputs: Sequence[Any]) -> list[Any]: ...

    def times(self) -> list[StepTime]:
        """One per step, of the last run."""
        ...

    def tap(self, tensors: Sequence[int]) -> None:
        """Tensors (of the segment's plan, each written by one of its steps) to keep in the next
        runs."""
        ...

    def tapped(self, tensor: int) -> np.ndarray:
        """A tapped tensor of the last run, in physical order."""
        ...

    def memory(self) -> dict[str, int]:
        """Bytes by purpose: arena, packed weights, scratch."""
        ...


@runtime_checkable
class Repeats(Protocol):
    """An executable that can repeat its work by itself, where a call costs more than a run.
    `repeat(0, 0)` ends the measuring: one run per call again."""

    def repeat(self, runs: int, warmup: int) -> None: ...

    def samples(self) -> Samples: ...


@runtime_checkable
class Joint(Protocol):
    """A backend that `runs` the steps of several others, neighbours as one segment."""

    runs: tuple[str, ...]


@runtime_checkable
class Recovering(Protocol):
    """An executable that computes a step in another way where the first one fails."""

    def refusals(self) -> Mapping[int, str]:
        """Step of the segment (by index) → why its preferred way is not the one that runs."""
        ...


@runtime_checkable
class Threaded(Protocol):
    """An executable whose threads can note what each of them computes."""

    def note_threads(self, on: bool) -> None: ...


@runtime_checkable
class Compiling(Protocol):
    """An executable that compiles kernels when it is made."""

    def compiled(self) -> Sequence[tuple[str, float, float]]:
        """(step's name, start, end) of what was compiled for it, in ms from the first one."""
        ...


class Backend(Protocol):
    """Makes executables of segments."""

    name: str

    def usability(self) -> Usability: ...

    def compile(self, segment: Segment, *, threads: int) -> Executable: ...


@runtime_checkable
class Tunable(Protocol):
    """A backend that has several ways to compute a layer and measures which one is the fastest."""

    def measuring(self, effort: str) -> AbstractContextManager[list[Measured]]:
        """Segments compiled in this block measure the ways that are not known yet, and note them in
        the list. `effort` is none, rapid, normal or exhaustive. Raises UsageError for another
        one."""
        ...

    def learn(self, tuning: Mapping[str, Mapping[str, str]], beside: Path | None = None) -> None:
        """A model's measured ways (its `tuning`: target or device → layer or size → way), then
        those of a table that lies `beside` the model, in that folder."""
        ...

    def learned(self) -> dict[str, dict[str, str]]:
        """Measured ways of the layers compiled so far, as a model's `tuning` holds them."""
        ...


@runtime_checkable
class Offload(Protocol):
    """A backend whose values lie in a device's own memory, where copies bring them."""

    def device_kind(self) -> str:
        """ "GPU", "CPU" or "other"."""
        ...

    def copy_cost(self) -> tuple[float, float]:
        """ms of a copy between host and device, as (each, for every byte)."""
        ...


class Tried(NamedTuple):
    """A row of `lite doctor`: a library or a device, and what came of it."""

    what: str
    found_by: str
    result: str


@runtime_checkable
class Probed(Protocol):
    """A backend that has to be looked for, and may be there in part."""

    def attempts(self) -> list[Tried]:
        """Everything that was tried, in order."""
        ...

    def failed(self) -> list[Tried]:
        """What does not work on the device that was found: other ways take its place."""
        ...
