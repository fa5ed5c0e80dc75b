"""Pipelines: models and the steps between them, from a photo to an answer.

    pipeline = Pipeline.open("plates.yaml")
    pipeline.run("photo.jpg")           # {"pipeline": …, "answers": {…}}
    pipeline.save("plates.lite")        # each model once, for `lite_run plates.lite --image …`

Every step but the models has one implementation, in C++ (native/src/app): Python, `lite_run` and an
exported application run the same code, and the models where they are told to.
"""

from .bundle import is_bundle, is_pipeline
from .compare import PipelineComparison, answer_changes, compare
from .drawing import drawn
from .families import FAMILIES
from .frames import Frames, feed
from .guess import Guess, guess
from .pipeline import Pipeline
from .profile import PipelineProfile, StageProfile, profile
from .stream import Frame, Rates, Stream

__all__ = [
    "FAMILIES",
    "Frame",
    "Frames",
    "Guess",
    "Pipeline",
    "PipelineComparison",
    "PipelineProfile",
    "Rates",
    "StageProfile",
    "Stream",
    "answer_changes",
    "compare",
    "drawn",
    "feed",
    "guess",
    "is_bundle",
    "is_pipeline",
    "profile",
]
