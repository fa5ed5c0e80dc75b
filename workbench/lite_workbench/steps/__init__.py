"""The steps of the walk; each is a widget that also works alone: ``ProfileStep(session)``."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ._base import Step

#: Step of the stepper → (module, class).
STEPS = {
    "Model": ("model", "ModelStep"),
    "Check": ("check", "CheckStep"),
    "Target": ("target", "TargetStep"),
    "Convert": ("convert", "ConvertStep"),
    "Quantize": ("quantize", "QuantizeStep"),
    "Run": ("run", "RunStep"),
    "Evaluate": ("evaluate", "EvaluateStep"),
    "Profile": ("profile", "ProfileStep"),
    "Compare": ("compare", "CompareStep"),
    "Deploy": ("deploy", "DeployStep"),
}
_HOMES = {cls: module for module, cls in STEPS.values()}
__all__ = ["STEPS", *_HOMES]


def step_class(name: str) -> type[Step]:
    """The class of a step by its name in the stepper. Raises KeyError."""
    module, cls = STEPS[name]
    found: type[Step] = getattr(import_module(f".{module}", __name__), cls)
    return found


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'lite_workbench.steps' has no attribute {name!r}")
    return getattr(import_module(f".{_HOMES[name]}", __name__), name)
