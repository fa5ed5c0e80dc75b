"""TfIdfVectorizer over integer tokens."""

from __future__ import annotations

from typing import Any

import numpy as np
from lite_messages import tr

from ..errors import ShapeError
from ..ir import DType, TypeInfo
from ._core import REQUIRED, define_op

tf_idf = define_op(
    "TfIdfVectorizer",
    inputs="x",
    attrs={
        "max_gram_length": REQUIRED,
        "max_skip_count": REQUIRED,
        "min_gram_length": REQUIRED,
        "mode": REQUIRED,
        "ngram_counts": REQUIRED,
        "ngram_indexes": REQUIRED,
        "pool_int64s": [],
        "pool_strings": [],
        "weights": [],
    },
    source="ONNX TfIdfVectorizer-9, integer tokens",
)


@tf_idf.infer
def _(x: TypeInfo, *, ngram_indexes: list[int], **_: Any) -> TypeInfo:
    return TypeInfo(DType.F32, (*x.dims[:-1], max(ngram_indexes, default=-1) + 1))


def _pool(tokens: list[int], counts: list[int]) -> dict[tuple[int, ...], int]:
    """n-gram → its number; `counts[n−1]` is where the n-grams of length n start in the pool."""
    grams: dict[tuple[int, ...], int] = {}
    for n, (begin, end) in enumerate(zip(counts, [*counts[1:], len(tokens)]), start=1):
        if not 0 <= begin <= end <= len(tokens):
            raise ShapeError(
                tr(
                    "ngram_counts {counts} do not fit a pool of {count} tokens",
                    counts=counts,
                    count=len(tokens),
                )
            )
        for at in range(begin, end - n + 1, n):
            grams[tuple(tokens[at : at + n])] = len(grams)
    return grams


@tf_idf.reference
def _(
    x: np.ndarray,
    *,
    max_gram_length: int,
    max_skip_count: int,
    min_gram_length: int,
    mode: str,
    ngram_counts: list[int],
    ngram_indexes: list[int],
    pool_int64s: list[int],
    pool_strings: list[str],
    weights: list[float],
) -> np.ndarray:
    """How often each n-gram of the pool occurs in a row, tokens up to max_skip_count apart"""
    if pool_strings:
        raise ShapeError(tr("string tokens are not supported"))
    grams = _pool(pool_int64s, ngram_counts)
    rows = x.reshape(-1, x.shape[-1]) if x.ndim else x.reshape(1, 1)
    counts = np.zeros((len(rows), max(ngram_indexes, default=-1) + 1), np.float32)
    scale = np.ones(counts.shape[1], np.float32)
    for number, column in enumerate(ngram_indexes):
        scale[column] = weights[number] if weights else 1
    for i, row in enumerate(rows):
        for n in range(min_gram_length, max_gram_length + 1):
            for step in range(1, (max_skip_count if n > 1 else 0) + 2):
                for at in range(len(row) - (n - 1) * step):
                    gram = tuple(int(t) for t in row[at : at + (n - 1) * step + 1 : step])
                    if gram in grams:
                        counts[i, ngram_indexes[grams[gram]]] += 1
    if mode == "IDF":
        counts = (counts > 0).astype(np.float32) * scale
    elif mode == "TFIDF":
        counts = counts * scale
    return counts.reshape(*x.shape[:-1], -1)
