"""Which weights of a matrix (outputs, inputs) are kept: anywhere, in blocks, or some of each few.

unstructured   any weight
1xN            N neighboring outputs keep or lose an input together (Lin 2021)
Nx1            an output keeps or loses N neighboring inputs together
N:M            of each M neighboring inputs of an output N are kept (Mishra 2021, "2:4")
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from lite_messages import tr

from ..errors import UsageError

#: Largest N and M of the patterns in blocks.
LARGEST = 32


@dataclass(frozen=True)
class Pattern:
    """Blocks of `block` outputs and `run` inputs, one of which is 1; `kept` of each `of` inputs,
    where `of` is not 0."""

    block: int = 1
    run: int = 1
    kept: int = 0
    of: int = 0

    @staticmethod
    def parse(text: str) -> Pattern:
        """unstructured, 1x4, 4x1, 2:4 → Pattern. Raises UsageError."""
        if text == "unstructured":
            return Pattern()
        blocks, parts = (
            re.fullmatch(rf"(\d{{1,2}}){mark}(\d{{1,2}})", text) for mark in ("x", ":")
        )
        if blocks:
            inputs, outputs = int(blocks[1]), int(blocks[2])
            if min(inputs, outputs) == 1 and 2 <= max(inputs, outputs) <= LARGEST:
                return Pattern(block=outputs, run=inputs)
        if parts and 1 <= int(parts[1]) < int(parts[2]) <= LARGEST:
            return Pattern(kept=int(parts[1]), of=int(parts[2]))
        raise UsageError(
            tr(
                "pattern {text!r} is not unstructured, 1xN (like 1x4), Nx1 (like 4x1) or N:M "
                "(like 2:4)",
                text=text,
            )
        )

    @property
    def share(self) -> float | None:
        """Share of zeros that the pattern itself fixes, or None."""
        return 1 - self.kept / self.of if self.of else None

    def __str__(self) -> str:
        if self.of:
            return f"{self.kept}:{self.of}"
        blocks = max(self.block, self.run) > 1
        return f"{self.run}x{self.block}" if blocks else "unstructured"


def keep(score: np.ndarray, share: float, pattern: Pattern) -> np.ndarray:
    """bool of the shape of `score` (outputs, inputs): the weights to keep when a `share` is to
    become 0, those of largest score. The last block or group may be smaller."""
    if pattern.of:
        return _of_each(score, pattern)
    rows, columns = score.shape
    block, run = pattern.block, pattern.run
    padded = np.zeros((-(-rows // block) * block, -(-columns // run) * run))
    padded[:rows, :columns] = score
    sums = padded.reshape(len(padded) // block, block, -1, run).sum(axis=(1, 3))
    kept = np.repeat(_largest(sums, share), block, axis=0)
    return np.repeat(kept, run, axis=1)[:rows, :columns]


def _largest(score: np.ndarray, share: float) -> np.ndarray:
    count = round(share * score.size)
    kept = np.ones(score.size, bool)
    kept[np.argpartition(score.ravel(), count - 1)[:count] if count else []] = False
    return kept.reshape(score.shape)


def _of_each(score: np.ndarray, pattern: Pattern) -> np.ndarray:
    rows, columns = score.shape
    padded = np.full((rows, -(-columns // pattern.of) * pattern.of), -1.0)
    padded[:, :columns] = score
    groups = padded.reshape(rows, -1, pattern.of)
    rank = np.argsort(np.argsort(-groups, axis=2, kind="stable"), axis=2, kind="stable")
    return (rank < pattern.kept).reshape(rows, -1)[:, :columns]
