"""Whether a plug-in works here, asked in another process: one that crashes or hangs says so itself.

`python -m lite_engine.backends.plugins.probe NAME` makes the plug-in, asks for its usability and
prints it as JSON behind a marker line.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict
from functools import cache

from lite_messages import tr

from ... import system
from ...documents import parse
from ...errors import LiteError
from ...extensions import BACKENDS, Extension, found
from .._usability import Usability
from .contract import CONTRACT, BackendPlugin

TIMEOUT_S = 60.0
_MARKER = "lite-plugin-usability "


def usability_of(name: str, timeout_s: float = TIMEOUT_S) -> Usability:
    """Of the plug-in of that name; one that is installed is asked in another process, once."""
    extension = found(BACKENDS).get(name)
    if extension is None:
        return missing(name)
    if not extension.value:  # of this process: whoever registered it has run its code here
        return ask(extension)
    return _probe(name, extension.value, extension.origin, timeout_s)


def missing(name: str) -> Usability:
    return Usability(
        False,
        tr("no package with a backend {name!r} is installed", name=name),
        command=f"pip install lite-backend-{name}",
    )


@cache
def _probe(name: str, value: str, origin: str, timeout_s: float) -> Usability:
    command = [sys.executable, "-c", _CODE, json.dumps(sys.path), name]
    fix = tr("reinstall or uninstall {origin}", origin=origin)
    try:
        done = subprocess.run(command, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        return Usability(
            False, tr("{origin} does not answer within {n:.0f} s", origin=origin, n=timeout_s), fix
        )
    except OSError as error:
        return Usability(False, tr("{origin} cannot be tried: {error}", origin=origin, error=error))
    lines = done.stdout.decode(errors="replace").splitlines()
    answer = next((line for line in lines if line.startswith(_MARKER)), "")
    if done.returncode or not answer:
        return Usability(False, _ending(origin, done), fix)
    try:
        told = parse(answer.removeprefix(_MARKER), name).into(Usability)
    except LiteError as error:
        return Usability(
            False, tr("{origin} gave no answer: {error}", origin=origin, error=error), fix
        )
    assert isinstance(told, Usability)
    return told


def _ending(origin: str, done: subprocess.CompletedProcess[bytes]) -> str:
    how = system.crash_name(done.returncode)
    if how:
        return tr("{origin} ends its process with {signal}", origin=origin, signal=how)
    said = done.stderr.decode(errors="replace").strip().splitlines()
    return tr(
        "{origin} fails while it is opened: {error}",
        origin=origin,
        error=said[-1][:300] if said else tr("exit status {status}", status=done.returncode),
    )


_CODE = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
from lite_engine.backends.plugins.probe import main
main(sys.argv[2])
"""


def main(name: str) -> None:
    answer = asdict(ask(found(BACKENDS)[name]))
    print(f"\n{_MARKER}{json.dumps(answer)}", flush=True)


def ask(extension: Extension) -> Usability:
    """In this process. What the plug-in raises is why it is not usable."""
    fix = tr("reinstall or uninstall {origin}", origin=extension.origin)
    try:
        plugin = made(extension)
        state = plugin.usability()
    except Exception as error:  # noqa: BLE001 - other people's code may raise anything
        return Usability(
            False, tr("{name} raised {error!r}", name=extension.name, error=error), fix
        )
    if plugin.contract != CONTRACT:
        return Usability(
            False,
            tr(
                "{origin} has contract {theirs!r}, this engine has {ours}",
                origin=extension.origin,
                theirs=plugin.contract,
                ours=CONTRACT,
            ),
            tr("install a version of it for this engine"),
        )
    if not isinstance(state, Usability):
        return Usability(
            False, tr("usability() of {name} did not return a Usability", name=extension.name), fix
        )
    return state


def made(extension: Extension) -> BackendPlugin:
    """The plug-in's object. Raises what its code raises, TypeError for one without the calls of
    the contract."""
    loaded = extension.load()
    plugin = loaded() if isinstance(loaded, type) else loaded
    if not isinstance(plugin, BackendPlugin):
        raise TypeError(f"{type(plugin).__name__} is not a BackendPlugin")
    return plugin
