"""Networks made by the paddlepaddle package agree with its own output, in both saved forms.

Needs LITE_TEST_PADDLE=python of an environment with paddlepaddle 3 (PIR), and for the older form
LITE_TEST_PADDLE2=python of one with 2.6; the package is too heavy for our own environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine.backends.reference import run_graph
from lite_engine.importers import load

from tests.importers.golden_runs import relative_error

MAKER = Path(__file__).with_name("make_paddle_zoo.py")
OWN = ["lenet", "sequence", "attention", "upsampling", "pieces", "activations", "yolo", "anchored"]
#: paddle.vision.models, whole
VISION = [
    "alexnet", "densenet121", "densenet161", "densenet169", "densenet201", "densenet264",
    "googlenet", "inception_v3", "mobilenet_v1", "mobilenet_v2", "mobilenet_v3_large",
    "mobilenet_v3_small", "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
    "resnext50_32x4d", "resnext50_64x4d", "resnext101_32x4d", "resnext101_64x4d",
    "resnext152_32x4d", "resnext152_64x4d", "shufflenet_v2_swish", "shufflenet_v2_x0_25",
    "shufflenet_v2_x0_33", "shufflenet_v2_x0_5", "shufflenet_v2_x1_0", "shufflenet_v2_x1_5",
    "shufflenet_v2_x2_0", "squeezenet1_0", "squeezenet1_1", "vgg11", "vgg13", "vgg16", "vgg19",
    "wide_resnet50_2", "wide_resnet101_2",
]  # fmt: skip
FORMS = {"pir": "LITE_TEST_PADDLE", "program": "LITE_TEST_PADDLE2"}


def python_of(form: str) -> str:
    python = os.environ.get(FORMS[form])
    if not python:
        pytest.skip(f"{FORMS[form]} is not set to a python with paddlepaddle")
    return python


@pytest.fixture(scope="session", params=FORMS)
def saved(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory):
    """Answers the folder of a network, saved on first use."""
    form = request.param
    python, out = python_of(form), tmp_path_factory.mktemp(form)

    def folder(name: str) -> Path:
        command = [python, str(MAKER), str(out), form, name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=1200)
        assert done.returncode == 0, done.stderr[-2000:]
        return out / name

    return folder


def check(folder: Path) -> None:
    case = np.load(folder / "case.npz")
    graph = load(folder)
    feeds = [case[f"in{i}"] for i in range(len(graph.inputs))]
    errors = [relative_error(y, case[f"out{i}"]) for i, y in enumerate(run_graph(graph, feeds))]
    print(f"{folder.parent.name} {folder.name}: {max(errors):.1e} of the output's range")
    assert max(errors) <= 1e-4


@pytest.mark.slow
@pytest.mark.parametrize("name", OWN + VISION)
def test_agrees_with_paddle(saved, name: str) -> None:
    folder = saved(name)
    check(folder)
    shutil.rmtree(folder)  # up to half a gigabyte each


@pytest.mark.slow
def test_control_flow(saved) -> None:
    folder = saved("control")
    check(folder)
    assert {n.op for n in load(folder).nodes} >= {"Loop", "If"}
