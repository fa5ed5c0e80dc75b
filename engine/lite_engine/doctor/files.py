"""A given file on this machine or on a device: what it needs, what is there, what fits."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from lite_messages import tr

from ..devices import Device, DeviceCheck, check_device
from ..errors import LiteError
from ..model_file import Model, read_model
from ..model_file.precision import told
from ..runtime.choice import choose, host_target, validity
from .checks import Check


def check_file(path: Path, backend: str = "auto", device: Device | None = None) -> list[Check]:
    """The decision first, then each target of the file, or the device and its features.

    Never raises for a file or device that does not fit: that is a bad first check.
    """
    try:
        model = read_model(path)
    except LiteError as error:
        return [_failed(str(path), error)]
    if device is not None:
        return _on_device(model, path, backend, device)
    checks = [_decision(model, tr("{path} here", path=path), backend)]
    for target in model.targets:
        state = validity(model, target)
        good = "good" if state.usable else "warning"
        note = model.notes.get(target, "")
        extra = f"; {note}" if note else ""
        if target == "arm" and state.usable and host_target() != "arm":
            extra += tr("; emulated, used only with --backend arm")
        summary = f"{model.display_precision(target)}: {state.reason}{extra}"
        checks.append(
            Check(tr("target {target}", target=target), good, summary, state.fix, state.command)
        )
    return checks


def device_check(device: Device) -> tuple[Check, DeviceCheck]:
    """The device's own test as a check, its stages as attempts."""
    tested = check_device(device, opencl=True)
    name = tr("device {name}", name=device.name)
    if tested.failure is not None:
        check = _failed(name, tested.failure)
    else:
        check = Check(
            name,
            "good",
            tr(
                "{target} with {features}", target=tested.target, features=" ".join(tested.features)
            ),
        )
    check.facts = tested.environment
    check.tried = [asdict(stage) for stage in tested.stages]
    if tested.opencl:
        check.tried += [{"opencl": line} for line in tested.opencl.lines()]
    return check, tested


def _failed(name: str, error: LiteError) -> Check:
    place = "" if error.where in name else f"{error.where}: "
    return Check(name, "bad", f"{place}{error.what}", error.fix, error.command)


def _on_device(model: Model, path: Path, backend: str, device: Device) -> list[Check]:
    reached, tested = device_check(device)
    name = tr("{path} on {device}", path=path, device=device.name)
    if tested.failure is not None:
        return [_failed(name, tested.failure), reached]
    missing = model.needs.missing(tested.target, tested.features)
    if missing:
        summary = tr(
            "the file needs the CPU features {missing}, but the device only has {features}",
            missing=", ".join(missing),
            features=", ".join(tested.features),
        )
        return [Check(name, "bad", summary, tr("convert the model again")), reached]
    note = model.notes.get(tested.target)
    decision = _decision(model, name, backend, device)
    if note and decision.state == "good":
        decision.state, decision.summary = "warning", f"{decision.summary}; {note}"
    return [decision, reached]


def _decision(model: Model, name: str, backend: str, device: Device | None = None) -> Check:
    try:
        decision = choose(model, backend, device=device)
    except LiteError as error:
        return _failed(name, error)
    precision = told(model.graph_in(decision.precision), decision.precision)
    return Check(name, "good", decision.text(precision))
