"""Messages that no page sends: any synced trait of any widget of the workbench gets any value, any
button is clicked with any payload.

    python -m tests.workbench.hostile_messages COUNT [SEED]

A TraitError is a refusal, a notice on the screen an answer (of another kind where a payload lacks
what every page sends). Any other error that reaches the kernel, a job that does not end or a model
that cannot be run afterwards is a finding. Prints a JSON line with counts and findings.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import lite_workbench as lw
import numpy as np
import traitlets
from ipywidgets import Widget
from lite_engine.errors import LiteError
from lite_widgets._base import LiteWidget
from lite_workbench.steps._base import Step

from tests.fuzz.guided import damaged_json
from tests.workbench.sessions import opened

#: What a button's payload holds, by the sources of the steps.
_SOURCES = (p.read_text("utf-8") for p in sorted(Path(lw.__file__).parent.rglob("*.py")))
_KEYS = sorted({*re.findall(r'payload(?:\[|\.get\()"(\w+)"', "".join(_SOURCES))})
_ODD: tuple[Any, ...] = (None, True, -1, 0, 1, 2**40, -(2**70), 0.5, float("inf"), "", "x", "../x",
                         "\0", "é" * 300, "<img src=x onerror=alert(1)>", "/etc/passwd", [], [[]],
                         {}, {"": 0}, ["x", 1], [1e9] * 4, "=1+1", "x; rm -rf /")  # fmt: skip


def widgets_of(bench: lw.Workbench) -> list[LiteWidget]:
    """Every widget that hangs on the workbench or on a screen of it."""
    found: dict[int, Widget] = {}
    waiting: list[Any] = [bench, *(bench.step(name) for name in bench._names)]
    while waiting:
        widget = waiting.pop()
        if isinstance(widget, Widget) and id(widget) not in found:
            found[id(widget)] = widget
            waiting += vars(widget).values()
            for value in widget.trait_values().values():
                waiting += value if isinstance(value, (list, tuple)) else [value]
    return [w for w in found.values() if isinstance(w, LiteWidget)]


class Storm:
    def __init__(self, seed: int) -> None:
        self.rng, self.ends, self.bad = random.Random(seed), Counter[str](), dict[str, str]()
        self.ids: dict[type, set[str]] = {}

    def watched(self) -> None:
        """Which buttons somebody listens to."""
        original, ids = LiteWidget.on_action, self.ids

        def on_action(widget: LiteWidget, callback: Any, *names: str) -> None:
            ids.setdefault(type(widget), set()).update(names)
            original(widget, callback, *names)

        LiteWidget.on_action = on_action  # type: ignore[method-assign]
        told, ends = Step._job_failed, self.ends

        def failed(step: Step, error: BaseException) -> None:
            ends["notice" if isinstance(error, LiteError) else "notice of another kind"] += 1
            told(step, error)

        Step._job_failed = failed  # type: ignore[method-assign]

    def value(self, now: Any) -> Any:
        """Any value, or the present one with something wrong in it."""
        if self.rng.random() < 0.5:
            return self.rng.choice(_ODD)
        try:
            return damaged_json(json.loads(json.dumps(now)), self.rng)
        except (TypeError, ValueError):
            return self.rng.choice(_ODD)

    def message(self, widget: LiteWidget) -> dict[str, Any]:
        names = [name for name in widget.keys if not name.startswith("_")]
        ids = sorted(self.ids.get(type(widget), ()))
        if ids and self.rng.random() < 0.5:
            keys = self.rng.sample(_KEYS, self.rng.randrange(4))
            payload = {key: self.value(None) for key in keys}
            seq = self.rng.choice((0, 1, -1, "x", self.rng.randrange(1 << 30)))
            return {"action": {"id": self.rng.choice(ids), "seq": seq, **payload}}
        chosen = self.rng.sample(names, min(len(names), self.rng.choice((1, 1, 2))))
        return {name: self.value(getattr(widget, name, None)) for name in chosen}

    def send(self, widget: LiteWidget) -> None:
        state = self.message(widget)
        try:
            widget.set_state(state)  # what `_handle_msg` calls, which writes errors to a log
        except traitlets.TraitError:
            self.ends["refused"] += 1
        except Exception as error:  # noqa: BLE001 - whatever comes is the finding
            name = f"{type(widget).__name__}: {type(error).__name__}: {error}"[:200]
            self.bad.setdefault(name, repr(state)[:300])
            self.ends["bad"] += 1
        else:
            self.ends["taken"] += 1

    def finish(self, session: lw.Session) -> None:
        """Waits for what the clicks have started, without doing it all."""
        while jobs := [job for job in (*session.jobs, session.job) if job is not None]:
            for job in jobs:
                job.cancel()
                try:
                    job.wait(60)
                except TimeoutError as error:
                    self.bad.setdefault(str(error), "")
                except Exception as error:  # noqa: BLE001 - the screen shows it as a notice
                    self.ends[f"job: {type(error).__name__}"] += 1
            if all(job.ended for job in jobs):
                return


def storm(count: int, seed: int, each: int = 250) -> dict[str, Any]:
    """COUNT messages, each EACH of them to a workbench of its own."""
    made = Storm(seed)
    made.watched()
    kinds: set[str] = set()
    sent = 0
    while sent < count:
        session = opened("x86")
        image = np.zeros((1, 1, 32, 32), np.float32)
        session.set_input({session.model.graph.inputs[0].name: image})
        bench = lw.Workbench(session)
        found = widgets_of(bench)
        kinds |= {type(widget).__name__ for widget in found}
        for _ in range(min(each, count - sent)):
            made.send(made.rng.choice(found))
            sent += 1
        made.finish(session)
        try:
            session.run(backend="reference")
        except LiteError as error:  # an input that a click chose may not fit
            made.ends[type(error).__name__] += 1
        bench.close()
    return {"messages": sent, "widgets": len(kinds), "ends": dict(made.ends), "bad": made.bad}


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        os.environ["LITE_CACHE_DIR"] = f"{place}/cache"
        os.chdir(place)
        result = storm(int(sys.argv[1]), *map(int, sys.argv[2:3] or [1]))
    print(json.dumps(result))
    raise SystemExit(bool(result["bad"]))
