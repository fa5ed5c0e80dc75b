"""What an inspector says of one layer's advice, and the override that it proposes."""

from __future__ import annotations

import ast
from typing import Any

from lite_engine.profile.advice import Advice
from lite_messages import tr


def override_of(code: str) -> tuple[str, str] | None:
    """(layer, backend) of a line of advice that is one override, else None."""
    try:
        call = ast.parse(code, mode="eval").body
    except SyntaxError:
        return None
    if not isinstance(call, ast.Call) or ast.unparse(call.func) != "session.override":
        return None
    layer, backend = (ast.literal_eval(a) for a in call.args)
    return layer, backend


def advice_for(advice: list[Advice], row: dict[str, Any]) -> dict[str, Any] | None:
    """The advice that gains most for a layer, as the Inspector shows it."""
    found = next((a for a in advice if row["name"] in a.layers), None)
    if found is None:
        return None
    gain = (
        tr(" (saves up to {gain_ms:.0f} µs)", gain_ms=1000.0 * found.gain_ms)
        if found.gain_ms
        else ""
    )
    text = f"{found.evidence}; {found.advice}{gain}: `{found.command}`"
    tried = tr("Try it") if override_of(found.code) else ""
    return {"text": text, "button": tried, "code": found.code}
