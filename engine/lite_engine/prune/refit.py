"""Weights that make up for those that became 0.

    W′ = argmin tr((W − W′)·H·(W − W′)ᵀ),  W′ = 0 where a weight is not kept;  H = cov(x)

Which weights are kept follows from what each alone would cost, w²/(H⁻¹)_kk (Hassibi 1993, OBS), a
part at a time with a solution in between. All rows are solved at once by conjugate gradients on
their kept columns, preconditioned with the diagonal of H.
"""

from __future__ import annotations

import numpy as np

from .patterns import Pattern, keep

#: Shares of the zeros that are chosen before the weights are solved again.
STAGES = (0.5, 0.8, 1.0)
#: Steps of a solution, and the error, relative to that before the first, at which it ends.
STEPS = 30
ENOUGH = 1e-6


def prune_rows(w: np.ndarray, h: np.ndarray, share: float, pattern: Pattern) -> np.ndarray:
    """w (outputs, inputs) with a share of zeros; h (inputs, inputs) positive definite."""
    saliency = 1 / np.diag(np.linalg.inv(h))
    now, kept = w, np.ones(w.shape, bool)
    for stage in STAGES if pattern.share is None else (1.0,):
        score = np.where(kept, now * now * saliency, 0.0)
        kept = kept & keep(score, share * stage, pattern)
        now = refit(w, kept, h, start=now)
    return now


def refit(
    w: np.ndarray, kept: np.ndarray, h: np.ndarray, start: np.ndarray | None = None
) -> np.ndarray:
    """The weights (outputs, inputs) of least error that are 0 where `kept` is False, from `start`
    (default: w) on."""
    now = np.where(kept, w if start is None else start, 0.0)
    scale = 1 / np.diag(h)
    left = np.where(kept, (w - now) @ h, 0.0)
    step = left * scale
    energy = np.einsum("nk,nk->n", left, step)
    least = ENOUGH * np.maximum(energy, 1e-300)
    for _ in range(STEPS):
        if (energy <= least).all():
            break
        moved = np.where(kept, step @ h, 0.0)
        length = energy / np.maximum(np.einsum("nk,nk->n", step, moved), 1e-300)
        now += length[:, None] * step
        left -= length[:, None] * moved
        scaled = left * scale
        before, energy = energy, np.einsum("nk,nk->n", left, scaled)
        step = scaled + (energy / np.maximum(before, 1e-300))[:, None] * step
    return now
