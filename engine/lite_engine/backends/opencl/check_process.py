"""The check of a device in a process of its own: a driver that crashes or hangs costs the program
that it was at, which is remembered, and the check goes on with the next one.

    python -m lite_engine.backends.opencl.check_process [KERNEL…]

prints JSON, a line each: {"next": [kernel, done, total]}, {"at": [program, kernel, way]} before
each launch, and last {"rates": {…}, "rows": […]}, or {"lost": "why"}.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from lite_messages import tr

from ... import system
from ...errors import BackendUnavailableError, LiteError
from .check import KernelVerdict, Note, check_device, roofs_of
from .device import Device, choose, open_device
from .roofs import Roofs
from .verdicts import Failure

#: The longest that a compiler may take for one program.
SILENCE_S = 300.0
#: After so many the driver is not worth more time.
_MOST_CRASHES = 20
_RUN = """
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from lite_engine.backends.opencl.check_process import main
main(sys.argv[1:])
"""


def check_apart(
    device: Device, *, note: Note, kernels: Sequence[str] = (), code: str = _RUN
) -> tuple[Roofs, list[KernelVerdict]]:
    """The rates of this process's device and the verdicts on these kernels (all by default), which
    are in its table then. `code` is what the other process runs.

    Raises BackendUnavailableError when the device is lost or the driver crashes again and again.
    """
    for _ in range(_MOST_CRASHES):
        said, end = _once(code, kernels, note)
        device.verdicts.refresh()
        last = said[-1] if said else {}
        if "rows" in last:
            return Roofs(**last["rates"]), [KernelVerdict(**row) for row in last["rows"]]
        if "lost" in last:
            raise BackendUnavailableError(last["lost"])
        if "at" not in last:
            raise BackendUnavailableError(tr("the driver {end}", end=end), where=device.report.name)
        program, kernel, way = last["at"]
        device.verdicts.add(Failure(program, kernel, way, "crash", end))
    raise BackendUnavailableError(
        tr(
            "the driver crashed {most_crashes} times while its kernels were checked",
            most_crashes=_MOST_CRASHES,
        ),
        where=device.report.name,
        fix=tr("install another driver, or use another backend"),
    )


def _once(code: str, kernels: Sequence[str], note: Note) -> tuple[list[dict[str, Any]], str]:
    """What one process said, without what it noted, and how it ended."""
    command = [sys.executable or "python3", "-c", code, json.dumps(sys.path), *kernels]
    said: list[dict[str, Any]] = []
    hung = threading.Event()
    with (
        tempfile.TemporaryFile("w+", errors="replace") as errors,
        subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=errors, text=True, errors="replace"
        ) as process,
    ):

        def end() -> None:
            hung.set()
            process.kill()

        assert process.stdout is not None
        timer = _started(end)
        for line in process.stdout:
            timer.cancel()
            timer = _started(end)
            if not line.startswith('{"'):  # compilers talk, too
                continue
            part = json.loads(line)
            if "next" in part:
                note(*part["next"])
            else:
                said.append(part)
        status = process.wait()
        timer.cancel()
        errors.seek(0)
        trace = errors.read()
    if "Traceback (most recent call last)" in trace and status > 0:
        raise LiteError(
            tr("the check ended with an error of its own: {trace}", trace=trace.splitlines()[-1])
        )
    return said, tr("hung for {silence_s:.0f} s", silence_s=SILENCE_S) if hung.is_set() else _ended(
        status
    )


def _started(end: Any) -> threading.Timer:
    timer = threading.Timer(SILENCE_S, end)
    timer.daemon = True
    timer.start()
    return timer


def _ended(status: int) -> str:
    if crash := system.crash_name(status):
        return tr("crashed ({signals})", signals=crash)
    return tr("ended the process with status {status}", status=status)


def main(kernels: Sequence[str]) -> None:
    """What the other process does."""

    def say(**part: Any) -> None:
        print(json.dumps(part), flush=True)

    try:
        device = open_device(choose())
        rates = roofs_of(device)
        rows = check_device(
            device, rates, kernels=kernels,
            note=lambda *where: say(next=where), begin=lambda *what: say(at=what),
        )  # fmt: skip
        say(rates=asdict(rates), rows=[asdict(row) for row in rows])
    except BackendUnavailableError as error:
        say(lost=str(error))


if __name__ == "__main__":
    main(sys.argv[1:])
