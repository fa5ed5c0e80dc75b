"""Evaluate: a model + labeled data → metrics with intervals, and a row per sample.

`Dataset` (samples with labels, streamed) → `Outcome` of each sample on each side → `Evaluation`.
Outcomes of a sample depend on nothing but the sample, so shards of a data set are joined exactly.
"""

from .dataset import Dataset, Sample
from .drop import Drop
from .evaluation import Evaluation
from .formats import read_dataset
from .pipeline_side import PipelineSide
from .run import evaluate
from .side import Side

__all__ = [
    "Dataset",
    "Drop",
    "Evaluation",
    "PipelineSide",
    "Sample",
    "Side",
    "evaluate",
    "read_dataset",
]
