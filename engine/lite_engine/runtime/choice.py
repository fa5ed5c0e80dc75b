"""Which backend runs a model on this machine (or a device), and why not the others.

A target of a file is valid where its library or device is there, the CPU has the features that the
file needs, and the backend can hold the file's precision; all of it is known before anything runs.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from lite_messages import tr

from .. import settings
from ..backends import Usability, get_backend, get_plugin
from ..errors import BackendUnavailableError, LiteError, TargetMismatchError, check_choice
from ..model_file import Model, computed
from ..model_file.precision import ANYWHERE, OR_FP32, PRECISIONS

if TYPE_CHECKING:
    from ..devices import Device

_ARM = ("aarch64", "arm64")


def host_target() -> str:
    """The CPU target of this machine: "x86" or "arm"."""
    return "arm" if platform.machine().lower() in _ARM else "x86"


#: A candidate, whether it can be used, and why.
Reason = tuple[str, bool, str]


class Decision:
    """The chosen backend and, for each candidate in order, its reason; layers that are computed
    otherwise than planned, with what was chosen for them; what is known of `placement`, layers on
    OpenCL or on the CPU; layers that the device `refused` to run, and why. Candidates behind the
    chosen one are `untried`: they are looked at when the reasons are asked for (finding OpenCL
    takes a while)."""

    def __init__(
        self,
        backend: str = "",
        precision: str = "fp32",
        tried: Sequence[Reason] = (),
        layers: Mapping[str, str] | None = None,
    ) -> None:
        self.backend = backend
        self.precision = precision
        self.tried = list(tried)
        self.layers = dict(layers or {})
        self.placement = ""
        self.refused: Mapping[str, str] = {}
        self.untried: list[Callable[[], Reason]] = []

    @property
    def reasons(self) -> list[Reason]:
        while self.untried:
            self.tried.append(self.untried.pop(0)())
        return self.tried

    def text(self, precision: str) -> str:
        """The choice and its reasons; `precision` as people read it."""
        lines = [tr("runs on {backend} ({precision})", backend=self.backend, precision=precision)]
        for name, good, reason in self.reasons:
            lines.append(f"  {'+' if good else '-'} {name}: {reason}")
        lines += [tr("  layers: {placement}", placement=self.placement)] if self.placement else []
        lines += [
            tr("  layer {name}: set to {word}", name=name, word=word)
            for name, word in self.layers.items()
        ]
        lines += [
            tr("  layer {name}: not on {backend}: {w}", name=name, backend=self.backend, w=w)
            for name, w in self.refused.items()
        ]
        return "\n".join(lines)


def is_plugin(backend: str) -> bool:
    """Whether a backend's word is that of another package."""
    return backend not in settings.BACKENDS


def usability(backend: str) -> Usability:
    """Whether "x86", "arm", "wasm", "opencl", "reference" or a backend of a package can be used."""
    if is_plugin(backend):
        return get_plugin(backend).usability()
    if backend == "reference":
        return get_backend("reference").usability()
    if backend == "opencl":
        return get_backend("opencl").usability()
    if backend == host_target():
        return get_backend("cpu").usability()
    if backend == "arm":
        from ..devices import emulator_usability

        return emulator_usability()
    if backend == "wasm":
        from ..devices import wasm_usability

        return wasm_usability()
    return Usability(
        False, tr("this machine is {machine}", machine=platform.machine()), tr("use --backend arm")
    )


def validity(model: Model, target: str) -> Usability:
    """Whether this machine can run the model's program for a target."""
    state = usability(target)
    if not state.usable:
        return state
    if target == host_target():
        from ..backends.cpu.native import cpu_features

        missing = model.needs.missing(target, cpu_features())
        if missing:
            return Usability(
                False,
                tr(
                    "the file needs CPU features {missing}, this CPU has {cpu_features}",
                    missing=", ".join(missing),
                    cpu_features=", ".join(cpu_features()),
                ),
                tr("run `lite convert` again with another --precision"),
            )
    return state


def choose(
    model: Model,
    backend: str = "auto",
    precision: str | None = None,
    device: Device | None = None,
) -> Decision:
    """Picks a backend for a model. Raises TargetMismatchError when the file fits nothing here,
    BackendUnavailableError when a forced backend cannot be used, UsageError for an unknown one,
    DeviceError when the device cannot be reached."""
    install = tr("choose one of these, or install the package that provides it")
    check_choice(tr("backend"), backend, settings.backends(), fix=install)
    check_choice(tr("precision"), precision, (None, *PRECISIONS))
    if device is not None:
        return _on_device(model, backend, precision, device)
    forced = backend if backend != "auto" else settings.get("LITE_BACKEND")
    if forced != "auto":
        return _forced(
            model, forced, precision, "LITE_BACKEND" if backend == "auto" else "requested"
        )
    decision = Decision()
    for target in model.targets or [host_target()]:
        if decision.backend:
            decision.untried.append(partial(_reason, model, target, precision))
            continue
        decision.tried.append(_reason(model, target, precision))
        if decision.tried[-1][1]:
            decision.backend = target
            decision.precision, _ = precision_on(model, target, precision)
    if not decision.backend:
        raise _mismatch(model, decision)
    return decision


def _reason(model: Model, target: str, precision: str | None) -> Reason:
    """Whether this machine can run a target of the file of itself, and why."""
    if target == "arm" and host_target() != "arm":
        return (
            target,
            False,
            tr("this machine is {machine} (emulate: --backend arm)", machine=platform.machine()),
        )
    if target == "wasm":
        return target, False, tr("for web pages (in Node.js: --backend wasm)")
    state = validity(model, target)
    if not state.usable:
        return target, False, str(state)
    return target, True, state.reason + precision_on(model, target, precision)[1]


def _forced(model: Model, backend: str, precision: str | None, by: str) -> Decision:
    anywhere = backend == "reference" or is_plugin(backend)
    if model.targets and not anywhere and backend not in model.targets:
        raise TargetMismatchError(
            tr(
                "{model} was converted for {targets}, {by}: {backend}",
                model=model.name,
                targets=", ".join(model.targets),
                by=by,
                backend=backend,
            ),
            command=_convert(model, backend),
        )
    state = validity(model, backend)
    if not state.usable:
        raise BackendUnavailableError(
            tr("backend {backend} cannot be used: {reason}", backend=backend, reason=state.reason),
            fix=state.fix,
            command=state.command,
        )
    held, note = precision_on(model, backend, precision)
    chosen = Decision(backend, held)
    chosen.reasons.append((backend, True, f"{by}; {state.reason}{note}"))
    return chosen


def _on_device(model: Model, backend: str, precision: str | None, device: Device) -> Decision:
    target = device.target()
    chosen = Decision()
    times = "" if device.times_meaningful else tr("; times are not meaningful")
    if backend == "opencl" or (backend == "auto" and model.targets[:1] == ["opencl"]):
        if backend == "opencl" and model.targets and "opencl" not in model.targets:
            raise _unfit(model, "opencl", device)
        try:
            found = _opencl_there(device)
        except BackendUnavailableError as error:
            if backend == "opencl" or target not in model.targets:
                raise
            chosen.reasons.append(("opencl", False, str(error)))
        else:
            chosen.backend = "opencl"
            chosen.precision, note = precision_on(model, "opencl", precision)
            chosen.reasons.append(("opencl", True, f"{device.name}: {found}{times}{note}"))
            return chosen
    if backend not in ("auto", target):
        raise BackendUnavailableError(
            tr(
                "backend {backend} cannot be used: {device} runs {target}",
                backend=backend,
                device=device.name,
                target=target,
            ),
            fix=tr("use --backend {target}, or leave it out", target=target),
        )
    if model.targets and target not in model.targets:
        raise _unfit(model, target, device)
    chosen.backend = target
    chosen.precision, note = precision_on(model, target, precision, device)
    chosen.reasons.append((target, True, tr("device {name}", name=device.name) + times + note))
    return chosen


def _opencl_there(device: Device) -> str:
    """The OpenCL of a device, as a line. Raises BackendUnavailableError."""
    from ..devices import usable_opencl

    return usable_opencl(device).text()


def _unfit(model: Model, target: str, device: Device) -> LiteError:
    return TargetMismatchError(
        tr(
            "{model} was converted for {targets}, {device} is {target}",
            model=model.name,
            targets=", ".join(model.targets),
            device=device.name,
            target=target,
        ),
        command=_convert(model, target),
    )


def precision_on(
    model: Model, target: str, asked: str | None, device: Device | None = None
) -> tuple[str, str]:
    """What it is computed in, and a note when that is not what the caller or the file asks for."""
    if is_plugin(target):
        wanted = asked or "fp32"
        held = wanted if wanted in get_plugin(target).precisions else "fp32"
        note = tr("; {wanted} {why}, so {held} is used", wanted=wanted, held=held,
                  why=tr("is not offered by this backend"))  # fmt: skip
        return held, note if held != wanted else ""
    return held_on(target, asked or model.precision(target), bool(asked), device)


def held_on(target: str, wanted: str, forced: bool, device: Device | None) -> tuple[str, str]:
    """The same for one word; `forced` when the caller asks for it."""
    needed = OR_FP32.get((target, wanted))
    depends = needed and not (forced and (target, wanted) in ANYWHERE)
    held = computed(target, wanted, _features(target, device) if depends else None)
    if held == wanted:
        return held, ""
    why = (
        tr("needs a CPU with {needed}", needed=needed)
        if needed
        else tr("has no kernels on this target")
    )
    return held, tr("; {wanted} {why}, so {held} is used", wanted=wanted, why=why, held=held)


def _features(target: str, device: Device | None) -> Sequence[str] | None:
    """CPU features of a device or of this machine; None for the emulator, which has them all.
    Raises DeviceError when the device cannot be reached."""
    if device is not None:
        from ..devices import device_features

        return device_features(device)
    if target != host_target():
        return None
    from ..backends.cpu.native import cpu_features

    return cpu_features()


def _convert(model: Model, *more: str) -> str:
    """The command that makes a fitting file."""
    from shlex import quote

    targets = ",".join(dict.fromkeys([*model.targets, *more]))
    file = str(model.path or model.name)
    out = file if file.endswith(".lite") else f"{model.name}.lite"
    return f"lite convert {quote(file)} -o {quote(out)} --targets {targets}"


def _mismatch(model: Model, decision: Decision) -> LiteError:
    needs = ", ".join(model.targets)
    why = "; ".join(f"{name}: {reason}" for name, _, reason in decision.reasons)
    if host_target() in model.targets:  # it says what is missing, and how to get it
        return TargetMismatchError(
            tr("{model} cannot run on this machine ({why})", model=model.name, why=why)
        )
    return TargetMismatchError(
        tr(
            "{model} was converted for {needs}, but this machine is {machine} ({why})",
            model=model.name,
            needs=needs,
            machine=platform.machine(),
            why=why,
        ),
        command=_convert(model, host_target()),
    )
