"""Stepper: the walk from Model to Deploy, any step at any time."""

from __future__ import annotations

import html
from typing import Any

import traitlets as t
from lite_messages import tr

from .._base import LiteWidget, PlainList
from .._svg import ACCENT, BAD, FONT

STEPS = ("Model", "Check", "Target", "Convert", "Quantize", "Run", "Evaluate", "Profile", "Compare",
         "Deploy")  # fmt: skip
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
                raise t.TraitError(
                    tr(
                        "step {name}: state must be one of {states}",
                        name=step["name"],
                        states=", ".join(STATES),
                    )
                )
        return steps

    def set_step(self, name: str, state: str, result: str = "") -> None:
        """Change state and result of one step. Raises KeyError for an unknown name."""
        if name not in {step["name"] for step in self.steps}:
            raise KeyError(name)
        changed = {"name": name, "state": state, "result": result}
        self.steps = [changed if step["name"] == name else step for step in self.steps]

    def static_html(self) -> str:
        """Return the steps as one line of tabs, each with its mark, state and result. A step
        whose work was under way is still to do: no work goes on in a saved notebook."""
        box = f"{FONT};font-size:12px;padding:4px 0"
        return f'<div style="{box}">{"".join(map(self._static_step, self.steps))}</div>'

    def _static_step(self, step: dict[str, Any]) -> str:
        state, result = step["state"], step.get("result")
        if state == "running":
            state, result = "todo", ""
        mark, colour, word = {
            "todo": ("\N{WHITE CIRCLE}", "inherit", tr("to do")),
            "done": ("\N{CHECK MARK}", ACCENT, tr("done")),
            "attention": ("\N{BLACK UP-POINTING TRIANGLE}", BAD, tr("needs attention")),
        }[state]
        name, result = html.escape(step["name"]), html.escape(result or word)
        bold = f"<b>{name}</b>" if step["name"] == self.current else name
        return (
            f'<span style="display:inline-block;margin:0 16px 4px 0" title="{word}">'
            f'<span style="color:{colour}">{mark}</span> {bold} <small>{result}</small></span> '
        )
