"""Launches of a segment as one kernel that stays on the device until all are done.

At batch 1 most kernels of a network take less time than the host needs to launch them. One kernel
whose groups all are on the device at once does them in turn: a launch that needs what an earlier
one wrote waits until every group has come to that point. It is used where a trial with the
inputs at hand gave the same bits in less time. All of this needs a device that keeps as many
groups as it has compute units at once; if it does not, groups give up waiting, and launches of
their own take over.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
from lite_messages import tr

from ... import system
from ...errors import BackendUnavailableError
from ...plan import Step
from ...progress import tell
from . import joined_rows, persistent_text, reach
from .device import Device
from .enqueue import Refused, bound, prepared
from .kernels import Kernel, KernelFailed
from .launch import Launch
from .persistent_text import HEAD, LEAST_POLLED_S, ROW, Text
from .verdicts import Failure, detail_of, launch_key

#: A copy, or a launch.
Part = Step | Kernel

#: Work-items of a compute unit: so many may have all of its registers. Two groups of half of them
#: have twice the local memory of one; launches of larger groups then stay alone, which one in so
#: many may.
_ITEMS, _ONE_IN = 256, 16
#: Of a segment that is worth a program of its own.
_FEWEST = 8
#: A run that spends less of its time in calls of launches is not tried: it is bound by its kernels.
_CALLS_SHARE = 0.6
#: Time of a run beside that of launches of their own, above which these stay: what takes as long
#: leaves the host free.
_ENOUGH = 1.0
_ROUNDS = 5


@dataclass
class Persistent:
    """What runs instead of a segment's launches. `places` groups of `items` work-items are on the
    device at once."""

    device: Device
    places: int
    items: int
    parts: list[Part] = field(default_factory=list)
    key: str = ""  # verdicts.launch_key of its program

    def __post_init__(self) -> None:
        self._state = self.device.buffer(12, np.zeros(3, np.uint32))
        self._addresses: dict[int, int] = {}

    def make(self, parts: Sequence[Part]) -> bool:
        """False where no launches can be put together, or their program has failed on this device.
        Raises BackendUnavailableError when it does not build."""
        local, alone = self.device.profile.local_memory, self.places == 1
        text = Text(self.items, self.places, local, alone)

        def joins(part: Part) -> bool:
            return isinstance(part, Kernel) and persistent_text.fits(
                part.launch, self.items, local, side_by_side=not alone
            )

        runs = [(joined, list(run)) for joined, run in groupby(parts, joins)]
        runs = [(joined and len(run) > 1, run) for joined, run in runs]
        runs = [(joined, joined_rows.joined(run) if joined else run) for joined, run in runs]
        kernels = [k for joined, run in runs if joined for k in run if isinstance(k, Kernel)]
        numbers = {id(k): text.number(k.launch) for k in kernels}
        source = text.whole()
        self.key = launch_key(source, "persistent", (self.items,))
        if not kernels or self.key in self.device.verdicts.failures:
            return False
        tell(tr("compiling kernels"), 0, 1)
        program = self.device.programs.build("persistent", source)
        tell(tr("compiling kernels"), 1, 1)
        self._learn(program, kernels)
        for joined, run in runs:
            self.parts += [self._one(program, run, numbers)] if joined else run
        return True

    def _one(self, program: Any, run: list[Any], numbers: dict[int, int]) -> Kernel:
        """The launch that does a run of launches."""
        cl, queue = self.device.cl, self.device.queue
        rows = self._rows(run, [numbers[id(k)] for k in run])
        args = [self.device.buffer(rows.nbytes, rows), self._state, np.int32(len(rows))]
        kernel = bound(cl, program, "persistent", args)
        grid, group = (self.places * self.items,), (self.items,)
        launch = Launch("persistent", "persistent", args, grid, "", group)
        call = prepared(cl, queue, kernel, grid, group)
        return Kernel(launch, kernel, grid, group, call, [*args, *run])

    def _rows(self, run: list[Kernel], numbers: list[int]) -> np.ndarray:
        """What the kernel reads of each launch (kernels/persistent_end.h). Launches that do not
        wait for each other begin at different places."""
        rows = np.zeros((len(run), ROW), np.int64)
        waits = waiting(run)
        busy = 0
        for i, kernel in enumerate(run):
            counts = [n // g for n, g in zip(kernel.grid, kernel.group or ())] + [1, 1]
            groups = int(np.prod(counts))
            busy = 0 if waits[i] else busy
            shape = [*(kernel.group or ()), 1][:2]
            meet = i + 1 < len(run) and waits[i + 1]
            rows[i, :HEAD] = numbers[i], meet, *counts[:2], groups, *shape, busy % self.places
            rows[i, HEAD : HEAD + len(kernel.args)] = [self._number(a) for a in kernel.args]
            busy += groups
        return rows

    def _number(self, arg: Any) -> int:
        if id(arg) in self._addresses:
            return self._addresses[id(arg)]
        return int(np.frombuffer(np.asarray(arg).tobytes().ljust(8, b"\0"), np.int64)[0])

    def _learn(self, program: Any, kernels: list[Kernel]) -> None:
        """Where the buffers of kernels lie. They stay there: the kernels keep them alive."""
        cl, queue = self.device.cl, self.device.queue
        buffers = {id(a): a for k in kernels for a in k.args if isinstance(a, cl.Buffer)}
        found = np.zeros(max(len(buffers), 1), np.int64)
        to = self.device.buffer(found.nbytes)
        kernel = cl.Kernel(program, "address")
        for i, buffer in enumerate(buffers.values()):
            kernel(queue, (1,), (1,), to, np.int32(i), buffer)
        cl.enqueue_copy(queue, found, to)
        self._addresses = dict(zip(buffers, map(int, found)))

    def gave_up(self, seconds: float) -> bool:
        """Whether a group waited in vain in a run that took so long."""
        if seconds < LEAST_POLLED_S / 2:
            return False  # it would have polled for longer
        state = np.zeros(3, np.uint32)
        self.device.cl.enqueue_copy(self.device.queue, state, self._state)
        return bool(state[2])


def waiting(run: Sequence[Kernel]) -> list[bool]:
    """Of each launch whether it has to wait for those before: it touches what one of them writes,
    or writes what one of them touches, since the last wait."""
    touched: list[tuple[int, int, int, bool]] = []
    waits = []
    for kernel in run:
        own = [
            (id(kernel.args[e.argument]), e.first * e.itemsize, e.end * e.itemsize, e.written)
            for e in reach.extents(kernel.launch)
        ]
        waits.append(any(_meet(a, b) for a in own for b in touched))
        touched = own if waits[-1] else touched + own
    return waits


def _meet(a: tuple[int, int, int, bool], b: tuple[int, int, int, bool]) -> bool:
    return a[0] == b[0] and (a[3] or b[3]) and a[1] < b[2] and b[1] < a[2]


def gathered(
    parts: Sequence[Part], buffer_of: Callable[[Step], Any], is_upload: Callable[[Step], bool]
) -> list[Part]:
    """The parts with copies to the device as early and others as late as the launches between leave
    their buffers alone."""
    rest, first = _moved(parts, buffer_of, is_upload)
    rest, last = _moved(rest[::-1], buffer_of, lambda copy: not is_upload(copy))
    return [*first, *rest[::-1], *last[::-1]]


def _moved(
    parts: Sequence[Part], buffer_of: Callable[[Step], Any], wanted: Callable[[Step], bool]
) -> tuple[list[Part], list[Part]]:
    """(those that stay, copies that may go before all of them)."""
    stay: list[Part] = []
    gone: list[Part] = []
    touched: set[int] = set()
    for part in parts:
        own = [buffer_of(part)] if isinstance(part, Step) else part.args
        if isinstance(part, Step) and wanted(part) and id(own[0]) not in touched:
            gone.append(part)
        else:
            stay.append(part)
            touched |= {id(x) for x in own}
    return stay, gone


def possible(device: Device) -> bool:
    """Whether a device is known to run as many groups at once as it has compute units, to have the
    instructions of the barrier (from Volta on), and to find buffers by their addresses alone, which
    Windows may move."""
    if device.profile.device_class != "nvidia" or not system.LINUX:
        return False
    return bool(device.device.compute_capability_major_nv >= 7)


def tried(
    device: Device, parts: list[Part], buffers: list[Any], run: Callable[[Sequence[Part]], None]
) -> Persistent | None:
    """What does the parts faster, with the same bits in `buffers`; None where nothing does. `run`
    does parts from the inputs at hand, whose results are there afterwards."""
    buffers = list({id(b): b for b in buffers}.values())
    launches = [p for p in parts if isinstance(p, Kernel)]
    if len(launches) < _FEWEST or _calls_share(device, launches) < _CALLS_SHARE:
        return None
    made = Persistent(device, *shape_for(launches, device.report.compute_units))
    failed = _failed(made, parts, buffers, run)
    if failed:
        device.verdicts.add(failed)
        run(parts)
    if failed or not made.parts:
        return None
    calls = [p for p in made.parts if isinstance(p, Kernel)]
    times = [[_seconds(device, some)[1] for some in (launches, calls)] for _ in range(_ROUNDS)]
    before, after = np.min(times, axis=0)
    return made if after < _ENOUGH * before else None


def shape_for(launches: Sequence[Kernel], units: int) -> tuple[int, int]:
    """Groups on the device, and work-items of one."""
    large = sum(persistent_text.items_of(k.launch) > _ITEMS // 2 for k in launches)
    return (units, _ITEMS) if large * _ONE_IN > len(launches) else (2 * units, _ITEMS // 2)


def _failed(
    made: Persistent, parts: list[Part], buffers: list[Any], run: Callable[[Sequence[Part]], None]
) -> Failure | None:
    """Makes and tries it: how it failed. An error of the device is remembered and goes on."""
    device, began = made.device, time.perf_counter()
    try:
        if not made.make(parts):
            return None
        wanted = _contents(device, buffers, lambda: run(parts))
        began = time.perf_counter()
        found = _contents(device, buffers, lambda: run(made.parts))
    except BackendUnavailableError as error:
        return Failure(made.key, "persistent", "", "build", detail_of(error))
    except (KernelFailed, Refused, device.cl.Error) as error:
        failure = Failure(made.key, "persistent", "", "launch", detail_of(error))
        if not isinstance(error, device.cl.Error):
            return failure
        device.verdicts.add(failure)
        raise
    if made.gave_up(time.perf_counter() - began):
        detail = tr("the device does not run all work-groups at once")
        return Failure(made.key, "persistent", "", "launch", detail)
    if found != wanted:
        detail = tr("its bits differ from those of single launches")
        return Failure(made.key, "persistent", "", "numbers", detail)
    return None


def _contents(device: Device, buffers: list[Any], run: Callable[[], None]) -> list[bytes]:
    """What a run leaves in buffers that held something else before."""
    cl, queue = device.cl, device.queue
    for buffer in buffers:
        cl.enqueue_fill_buffer(queue, buffer, np.uint8(0xFF), 0, buffer.size)
    run()
    queue.finish()
    found = []
    for buffer in buffers:
        found.append(np.empty(buffer.size, np.uint8))
        cl.enqueue_copy(queue, found[-1], buffer)
    return [x.tobytes() for x in found]


def _calls_share(device: Device, launches: Sequence[Kernel]) -> float:
    """The part of a run's time after which the last launch is called."""
    calls, whole = min((_seconds(device, launches) for _ in range(_ROUNDS)), key=lambda x: x[1])
    return calls / whole


def _seconds(device: Device, launches: Sequence[Kernel]) -> tuple[float, float]:
    """Until all launches are called, and until they have finished, on whatever buffers hold."""
    device.queue.finish()
    start = time.perf_counter()
    for kernel in launches:
        kernel.call()
    called = time.perf_counter()
    device.queue.finish()
    return called - start, time.perf_counter() - start
