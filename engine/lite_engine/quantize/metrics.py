"""How far quantised numbers are from the float ones."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

#: A perfect match, in dB; keeps every figure finite and fit for JSON.
PERFECT_DB = 150.0


class Error:
    """Running error of one tensor over samples: signal, noise, products; nothing grows."""

    def __init__(self) -> None:
        self.signal = self.noise = self.product = self.other = self.largest = 0.0
        self.agreeing = self.rows = 0
        self.real = True  # not labels or counts, whose distance means nothing

    def add(self, want: np.ndarray, got: np.ndarray) -> None:
        self.real = np.asarray(want).dtype.kind == "f"
        a, b = (np.asarray(v, np.float64).ravel() for v in (want, got))
        difference = a - b
        self.signal += float(a @ a)
        self.other += float(b @ b)
        self.noise += float(difference @ difference)
        self.product += float(a @ b)
        self.largest = max(self.largest, float(np.abs(difference).max(initial=0.0)))
        rows = _scores(np.asarray(want))
        if rows is not None:
            self.rows += len(rows)
            self.agreeing += int(np.sum(rows.argmax(1) == _rows(np.asarray(got)).argmax(1)))

    @property
    def sqnr_db(self) -> float:
        """10·log₁₀(Σ want² / Σ (want − got)²)"""
        if self.noise == 0:
            return PERFECT_DB
        if self.signal == 0 or not np.isfinite(self.noise):
            return 0.0
        return float(np.clip(10 * np.log10(self.signal / self.noise), -PERFECT_DB, PERFECT_DB))

    @property
    def cosine(self) -> float:
        size = np.sqrt(self.signal * self.other)
        return float(self.product / size) if size > 0 else float(self.noise == 0)

    @property
    def top1(self) -> float | None:
        """Share of rows whose largest entry is the same; None when the tensor has no scores."""
        return self.agreeing / self.rows if self.rows else None

    def to_dict(self) -> dict[str, float | None]:
        return {
            "sqnr_db": round(self.sqnr_db, 3),
            "cosine": round(self.cosine, 6),
            "max_abs": self.largest,
            "top1_agreement": self.top1,
        }


def _rows(x: np.ndarray) -> np.ndarray:
    return x.reshape(-1, x.shape[-1])


def _scores(x: np.ndarray) -> np.ndarray | None:
    """(rows, classes) of a tensor that looks like class scores: rank 2 after dropping ones."""
    squeezed = x.squeeze()
    if x.dtype.kind == "f" and squeezed.ndim == 1 and squeezed.size > 2 and x.shape[-1] > 1:
        return _rows(x)
    return None


class Errors(dict[str, Error]):
    """An Error for each name."""

    def add(self, want: Mapping[str, np.ndarray], got: Mapping[str, np.ndarray]) -> None:
        for name in want:
            if name in got:
                self.setdefault(name, Error()).add(want[name], got[name])

    def sqnr_db(self, names: list[str]) -> float:
        """That of the worst of the named tensors: no good one makes up for it. Integers, like
        labels, count only where there is nothing else."""
        found = [self[n] for n in names if n in self]
        judged = [e for e in found if e.real] or found
        return min((e.sqnr_db for e in judged), default=PERFECT_DB)
