"""The ways to compute one step, in their order: the first that has not failed on this device runs.

A way that cannot be built or launched, or that differs from the reference, costs that
way alone: the next one takes its place, and when none is left the runtime plans the layer on
another backend (LayersRefused). What failed is remembered (verdicts.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

from lite_messages import tr

from ...errors import BackendUnavailableError
from ...plan import Plan, Step
from .. import LayersRefused
from . import faults
from .device import Device, runs_trivially
from .kernels import Kernel, KernelFailed, KernelMaker
from .launch import Launch
from .programs import program_text
from .registry import Way
from .steps import launches_of
from .tuning import Tuning
from .variants import Variant
from .verdicts import Failure, case_key, detail_of, launch_key

#: Of a kernel that has one way only.
_ONLY = ""


class NoWayLeft(Exception):
    """Every way to compute a step has failed."""


@dataclass
class Choice:
    """The choice among a step's ways: `pick` answers its builder, with `forced` if that is among
    them, else from the table of what was measured. `size` and `offered` are those it was asked for,
    `variant` the one it took."""

    tuning: Tuning
    excluded: set[str] = field(default_factory=set)
    forced: str = ""
    size: str = ""
    offered: list[Any] = field(default_factory=list)
    variant: str = _ONLY

    def pick(self, size: str, ways: Sequence[Way], /) -> Way:
        """Raises NoWayLeft."""
        left = [way for way in ways if family_of(way) not in self.excluded]
        if not left:
            raise NoWayLeft
        self.size, self.offered = size, left
        measured = self.tuning.pick(size, left)
        way = next((way for way in left if str(way) == self.forced), measured)
        self.variant = family_of(way)
        return way


def family_of(way: object) -> str:
    """What a way has in common with those that fail with it."""
    return way.family if isinstance(way, Variant) else str(way)


@dataclass
class Ways:
    """One step of a segment with the kernels that compute it now, and the `failures` of the ways
    given up."""

    step: Step
    plan: Plan
    device: Device
    maker: KernelMaker
    kernels: list[Kernel] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    #: of the preferred way, where they are known before `build`
    launches_known: list[Launch] | None = None

    def __post_init__(self) -> None:
        self.choice = Choice(self.device.tuning)

    def build(self) -> None:
        """Makes the kernels of the first way that has not failed.

        Raises LayersRefused when there is none, BackendUnavailableError when the device is lost.
        """
        while True:
            try:
                launches = self.launches_known or self.launches(self.choice)
            except NoWayLeft:
                self._tell(tr("the CPU runs the layer instead"))
                names = layers_of(self.step, self.plan)
                raise LayersRefused(dict.fromkeys(names, self.reason)) from None
            self.launches_known = None  # another way is next where this one fails
            keys = map(program_key, launches)
            known = next(filter(None, map(self.device.verdicts.failures.get, keys)), None)
            if known is not None:
                self._exclude(known)
                continue
            try:
                self.kernels = self.maker.make(launches)
            except KernelFailed as error:
                self.give_up(error)
                continue
            self._tell(tr("{variant} runs instead", variant=self.choice.variant))
            return

    def launches(self, choice: Choice) -> list[Launch]:
        """Of the way that a choice takes. Raises NoWayLeft."""
        if _ONLY in choice.excluded:
            raise NoWayLeft
        choice.variant = _ONLY
        made = launches_of(self.step, self.plan, replace(self.device.target, pick=choice.pick))
        return faults.spoilt(made, self.step.kernel, choice.variant)

    def give_up(self, error: KernelFailed) -> None:
        """Takes the way that runs now out of the choice, and remembers it.

        Raises BackendUnavailableError when the device is lost rather than the way wrong.
        """
        variant = self.step.kernel, self.choice.variant
        failure = Failure(program_key(error.launch), *variant, error.kind, detail_of(error))
        self.device.verdicts.add(failure)
        lost = runs_trivially(self.device.cl, self.device.context, self.device.queue)
        if lost:
            raise BackendUnavailableError(
                tr("{failure}, and then {lost}", failure=failure, lost=lost),
                where=self.device.report.name,
            )
        self._exclude(failure)

    def _exclude(self, failure: Failure) -> None:
        self.failures.append(failure)
        self.choice.excluded.add(self.choice.variant)

    def _tell(self, instead: str) -> None:
        for failure in self.failures:
            self.device.verdicts.tell(failure, instead)

    @property
    def parts(self) -> Sequence[Step | Kernel]:
        """What a run enqueues: the kernels, or a copy."""
        return [self.step] if self.step.op == "Copy" else self.kernels

    @property
    def checked(self) -> bool:
        """Whether these kernels had the reference's numbers in a run like this one."""
        return self.cases <= self.device.verdicts.passed.keys()

    @property
    def cases(self) -> set[str]:
        """`verdicts.case_key` of the launches that run now."""
        launches = [kernel.launch for kernel in self.kernels]
        return {case_key(program_key(x), x) for x in launches}

    @property
    def reason(self) -> str:
        """Why the preferred way is not the one that runs; empty where it is."""
        return "; ".join(map(str, self.failures))


def program_key(launch: Launch) -> str:
    """`verdicts.launch_key` of a launch."""
    return _key(launch.file, launch.options, launch.kernel, launch.local_size)


@lru_cache(4096)  # a plan has each kernel many times
def _key(file: str, options: str, kernel: str, group: tuple[int, ...] | None) -> str:
    return launch_key(program_text(file, options), kernel, group)


def layers_of(step: Step, plan: Plan) -> list[str]:
    """The layers that cannot run on the device when a step cannot: its own, or, of a copy or a
    change of layout or type, those around it.

    Raises BackendUnavailableError where there are none.
    """
    names = [step.name] if step.node is not None else [*_around(step, plan)]
    if not names:
        raise BackendUnavailableError(
            tr("{step}: {kernel} does not run on the device", step=step.name, kernel=step.kernel)
        )
    return list(dict.fromkeys(names))


def _around(step: Step, plan: Plan) -> Iterator[str]:
    """Layers that write what the step reads and read what it writes, past others like it."""
    yield from _along(step, plan, forward=False)
    yield from _along(step, plan, forward=True)


def _along(step: Step, plan: Plan, forward: bool) -> Iterator[str]:
    own = {plan.root(i).index for i in (step.outputs if forward else step.inputs) if i >= 0}
    for other in plan.steps:
        ports = other.inputs if forward else other.outputs
        if other is step or not own & {plan.root(i).index for i in ports if i >= 0}:
            continue
        if other.node is not None:
            yield other.name
        else:
            yield from _along(other, plan, forward)
