"""Pipelines: models and the steps between them, from a photo to an answer.

    pipeline = Pipeline.open("plates.yaml")
    pipeline.run("photo.jpg")           # {"pipeline": …, "answers": {…}}
    pipeline.save("plates.lite")        # each model once, for `lite_run plates.lite --image …`

Every step but the models has one implementation, in C++ (native/src/app): Python, `lite_run` and an
exported application run the same code, and the models where they are told to.
"""

from .bundle import is_bundle
from .families import FAMILIES
from .pipeline import Pipeline

__all__ = ["FAMILIES", "Pipeline", "is_bundle"]
