"""One piece of advice, and the profile, plan and model that advice is about."""

from __future__ import annotations

import re
import shlex
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

from lite_messages import tr

from .. import settings
from ..backends import Offload, get_backend
from ..ir import Journal
from ..plan import Plan
from ..runtime.choice import host_target, is_plugin, usability
from .record import Profile

#: A layer is worth a word from this share of the time on.
WORTH_SHARE = 0.03


@dataclass
class Advice:
    """One proposal. `gain_ms` is an upper estimate; `command` tries it, `code` does in Python."""

    rule: str
    layers: list[str]
    evidence: str
    advice: str
    gain_ms: float
    command: str
    code: str = ""

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        gain = (
            tr("up to {gain_ms:.3f} ms", gain_ms=self.gain_ms)
            if self.gain_ms
            else tr("gain not known")
        )
        return f"{self.evidence}; {self.advice} ({gain}): {self.command}"


@dataclass
class Case:
    """What the rules look at."""

    profile: Profile
    plan: Plan
    journal: Journal
    model: str
    reading: str
    running: str
    made: str

    @property
    def whole_ms(self) -> float:
        return self.profile.sum_ms or 1.0

    @property
    def on_device(self) -> bool:
        """The OpenCL device runs it, and what it has no kernel for goes to the CPU."""
        return self.profile.backend == "opencl"

    @cached_property
    def has_gpu(self) -> bool:
        """An OpenCL device that is not this CPU."""
        if self.profile.device != "local" or not usability("opencl").usable:
            return False
        backend = get_backend("opencl")
        return isinstance(backend, Offload) and backend.device_kind() != "CPU"

    @cached_property
    def plugins(self) -> list[str]:
        """Backends of other packages that work here."""
        return [n for n in settings.backends() if is_plugin(n) and usability(n).usable]

    def verb(self, name: str, options: str) -> str:
        """A `lite` command on this model."""
        words = ("lite", name, shlex.quote(self.model), self.reading, options)
        return " ".join(word for word in words if word)

    def profile_with(self, options: str, backend: str = "") -> str:
        """`lite profile` as it was called, with other options; on another backend, if one is
        named, in that backend's own precision."""
        given = self.running
        if "--threads" in options:
            given = re.sub(r"--threads \S+", "", given)
        here = " ".join([*given.split(" "), f"--backend {self.profile.backend}"])
        asked = f"--backend {backend}" if backend else f"{here} {options}"
        return self.verb("profile", asked.replace("  ", " ").strip())

    def alternative(self) -> tuple[str, str, str] | None:
        """(what to do, the command, the backend for `session.override` or ""): another way of
        running layers that this one runs badly. None when there is no other."""
        cores = self.profile.environment.get("cores")
        if self.on_device:
            command = self.profile_with("--tune normal")
            return tr("measure which layers the CPU runs faster"), command, host_target()
        if self.has_gpu:
            return tr("measure it on OpenCL"), self.profile_with("", "opencl"), "opencl"
        if self.profile.threads > 1:
            return tr("measure with one thread"), self.profile_with("--threads 1"), ""
        if isinstance(cores, int) and cores > 1:
            return (
                tr("measure with {cores} threads", cores=cores),
                self.profile_with(f"--threads {cores}"),
                "",
            )
        return None
