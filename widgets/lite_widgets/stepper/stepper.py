"""Stepper: Model → Check → Target → Convert → Quantize → Run → Profile → Compare → Deploy."""

from __future__ import annotations

from typing import Any

import traitlets as t

from .._base import LiteWidget, PlainList
from .._svg import table

STEPS = ("Model", "Check", "Target", "Convert", "Quantize", "Run", "Profile", "Compare", "Deploy")
STATES = ("todo", "running", "done", "attention")


class Stepper(LiteWidget):
    """Every step with its state and its result in three words; any step opens at any time.

    steps    [{"name", "state": "todo" | "running" | "done" | "attention", "result"}]
    current  name of the open step; set by clicks and arrow keys.

    `set_step(name, state, result)` changes one step.
    """

    steps = PlainList(need=("name", "state"))
    current = t.Unicode("Model")

    @t.default("steps")
    def _all(self) -> list[dict[str, Any]]:
        return [{"name": name, "state": "todo", "result": ""} for name in STEPS]

    @t.validate("steps")
    def _known_states(self, proposal: dict[str, Any]) -> list[dict[str, Any]]:
        steps: list[dict[str, Any]] = proposal["value"]
        for step in steps:
            if step["state"] not in STATES:
                raise t.TraitError(f"step {step['name']}: state must be one of {', '.join(STATES)}")
        return steps

    def set_step(self, name: str, state: str, result: str = "") -> None:
        """Change state and result of one step. Raises KeyError for an unknown name."""
        if name not in {step["name"] for step in self.steps}:
            raise KeyError(name)
        changed = {"name": name, "state": state, "result": result}
        self.steps = [changed if step["name"] == name else step for step in self.steps]

    def static_html(self) -> str:
        """Return the steps as a table."""
        rows = [[s["name"], s["state"], s.get("result", "")] for s in self.steps]
        return table(["Step", "State", "Result"], rows)
