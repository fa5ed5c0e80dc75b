"""The precision of a model that was made for no target in particular."""

from __future__ import annotations

from pathlib import Path

import pytest
from lite_engine import Predictor, optimize
from lite_engine.errors import UsageError
from lite_engine.model_file import retarget

from tests.small_models import classifier, image


@pytest.mark.opencl
def test_a_precision_of_no_target_is_of_every_one(tmp_path: Path) -> None:
    """It was forgotten: the model ran in fp32."""
    model = optimize(classifier(), precision="fp16")
    path = model.save(tmp_path / "m.lite")
    for one in (model, path):
        predictor = Predictor(one, "opencl")
        assert predictor.precision == "fp16"
        exact = Predictor(classifier(), "reference").run(image(classifier()))["prob"]
        found = predictor.run(image(classifier()))["prob"]
        assert 0 < abs(found - exact).max() < 0.01  # those of halves
    assert Predictor(retarget(model, precision="fp32"), "opencl").precision == "fp32"


def test_a_word_that_is_no_precision() -> None:
    with pytest.raises(UsageError, match=r"^precision 'fp8' is not one of fp32, fp16, bf16, int8"):
        optimize(classifier(), precision="fp8")
    with pytest.raises(UsageError, match=r"^int8 for x86, arm, wasm, opencl needs ranges"):
        optimize(classifier(), precision="int8")
