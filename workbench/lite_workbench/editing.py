"""What `lite edit` did."""

from __future__ import annotations

from dataclasses import dataclass, field

from lite_engine.edit.sizes import Refusal


@dataclass
class Edited:
    """A written file and what was done; nothing is written where layers refused."""

    file: str
    bytes: int
    layers: dict[str, int]
    inputs: dict[str, str]
    outputs: dict[str, str]
    done: list[str] = field(default_factory=list)
    refused: list[Refusal] = field(default_factory=list)
