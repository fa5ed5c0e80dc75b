"""What the exported projects carry."""

from __future__ import annotations

from pathlib import Path

import pytest
from lite_engine import optimize

from tests.small_models import classifier


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    """A file whose name and labels are no plain ASCII words."""
    made = optimize(classifier(), targets=["opencl", "arm", "x86"])
    made.metadata |= {"preprocess": {"mean": [127.5], "std": [127.5]}, "labels": [*"äöü猫😀fghij"]}
    return made.save(tmp_path_factory.mktemp("model") / "it's <a> $model.lite")
