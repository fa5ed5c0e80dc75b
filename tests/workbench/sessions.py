"""Sessions with the shipped digits model, and a person who clicks, drops and waits."""

from __future__ import annotations

from typing import Any

import lite_workbench as lw


def opened(*targets: str) -> lw.Session:
    """A session with the digits model, converted for these targets."""
    made = lw.open(lw.shipped("digits.onnx"))
    made.convert(targets=list(targets))
    return made


def click(widget: Any, action: str, **payload: Any) -> None:
    seq = (widget.action or {}).get("seq", 0) + 1
    widget.action = {"id": action, "seq": seq, **payload}


def send(zone: Any, name: str, data: bytes) -> None:
    """Drops a file on a DropZone."""
    zone.set_trait("data", memoryview(data))
    zone.piece = {"name": name, "size": len(data), "offset": 0,
                  "seq": (zone.piece or {}).get("seq", 0) + 1}  # fmt: skip


def settle(session: lw.Session) -> None:
    """Waits until no job runs or waits."""
    while session.jobs:
        session.jobs[-1].wait(60)
    if session.job is not None:
        session.job.wait(60)
