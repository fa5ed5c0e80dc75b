"""Convolutions through image2d, which some GPUs prefer, on any device that has images."""

from __future__ import annotations

import dataclasses
import re

import lite_engine.backends.opencl as opencl
import numpy as np
import pytest
from lite_engine import Predictor
from lite_engine.backends.opencl import programs
from lite_engine.backends.opencl.cases.graphs import conv, residual
from lite_engine.backends.opencl.cases.integers import integers
from lite_engine.backends.opencl.image_convolutions import suits
from lite_engine.backends.opencl.launch import Scratch
from lite_engine.backends.opencl.problem import Convolution
from lite_engine.backends.opencl.steps import launches_of
from lite_engine.ir import Graph
from lite_engine.plan import make_plan
from lite_engine.runtime.execute import Execution
from lite_engine.runtime.inputs import random_feeds

from tests.opencl import tiny
from tests.opencl.test_native import native_program
from tests.opencl.tiny import check, device

pytestmark = [
    pytest.mark.opencl,
    pytest.mark.usefixtures("unoptimized"),
    pytest.mark.filterwarnings("error::lite_engine.errors.LiteWarning"),  # no other way instead
]


@pytest.fixture(autouse=True)
def with_images():
    if not device().report.image2d:
        pytest.skip("this device has no images")


# Channels and pixels below, at and above the four of a texel and of an item.
CASES = {
    "1x1": lambda: conv((1, 8, 3, 4), 8, 1, activation="Relu"),
    "1x1, odd": lambda: conv((2, 5, 3, 5), 7, 1),
    "3x3": lambda: conv((1, 3, 5, 7), 9, 3, activation="HardSwish"),
    "strides and dilations": lambda: conv((2, 6, 9, 6), 4, 3, strides=[2, 1], dilations=[2, 1]),
    "5x5, uneven pads": lambda: conv((1, 4, 6, 6), 3, 5, pads=[0, 1, 2, 3]),
    "one axis": lambda: conv((1, 3, 9), 5, 3),
    "residual": lambda: residual(8, side=5, activation="HardSwish"),
    "depthwise": lambda: conv((2, 8, 5, 6), 8, 3, 8, activation="Relu"),
    "depthwise, odd": lambda: conv((1, 9, 6, 7), 9, 5, 9, strides=[2, 2], dilations=[1, 2]),
}


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
@pytest.mark.parametrize("case", CASES)
def test_through_images(case: str, precision: str) -> None:
    done = check(CASES[case](), images=True, precision=precision)
    plan, own = done.plan, device(images=True)
    convs = [s for s in plan.steps if s.op == "Conv"]
    files = {launch.file for s in convs for launch in launches_of(s, plan, own.target)}
    assert files == {"conv_image"}


#: Channels below, at and above the 16 of a texel and the four of an item; weights with zero points
#: have whole texels only.
INTEGERS = [g for k in ("i8_conv2d", "i8_gemm", "i8_conv2d_depthwise") for g in integers()[k]]


@pytest.mark.parametrize("graph", INTEGERS, ids=lambda g: g.node("layer").op)
def test_integers_through_images(graph: Graph) -> None:
    """Bit-equal to the reference."""
    plan = check(graph, images=True, tolerance=0).plan
    (step,) = (s for s in plan.steps if s.name == "layer")
    files = {launch.file for launch in launches_of(step, plan, device(images=True).target)}
    weight = plan.tensors[step.inputs[3]].data
    assert weight is not None
    shifted = np.ravel(step.attrs.get("w_zero_point", step.attrs.get("b_zero_point"))).any()
    unsigned = weight.dtype == np.uint8 and not shifted
    channels = plan.tensors[step.inputs[0]].dims[-1]
    whole = channels % 16 == 0 and step.kernel != "i8_conv2d_depthwise"
    assert not unsigned
    assert (files == {"i8_image"}) is (not shifted or whole)


@pytest.mark.cpu
@pytest.mark.parametrize("graph", INTEGERS[1::4], ids=lambda g: g.node("layer").op)
def test_integers_through_images_without_python(graph: Graph) -> None:
    """The native executor packs the same texels."""
    target = device(images=True).target
    plan, program = native_program(graph, "fp32", target)
    feeds = list(random_feeds(graph).values())
    (wanted,) = Execution(make_plan(graph, "reference"), threads=1).run(feeds)
    (found,) = program.run([plan.tensors[plan.inputs[0]].to_physical(feeds[0])])
    assert found.tobytes() == plan.tensors[plan.outputs[0]].to_physical(wanted).tobytes()


#: Functions of extensions that are not here, with their types and signs.
EXTENSIONS = {
    "khr": """int dot_4x8packed_ss_int(uint a, uint b) {
      return products(as_char4(a), as_char4(b));
    }""",
    "arm": "int arm_dot(char4 a, char4 b) { return products(a, b); }",
    "arm_add": "int arm_dot_acc(char4 a, char4 b, int s) { return s + products(a, b); }",
    "qcom": """int qcom_dot8_acc(uint a, uint b, int s) {
      const char4 w = as_char4(a);
      const uchar4 x = as_uchar4(b);
      return s + (int)w.x * x.x + (int)w.y * x.y + (int)w.z * x.z + (int)w.w * x.w;
    }""",
}
PRODUCTS = """static inline int products(char4 a, char4 b) {
  return (int)a.x * (int)b.x + (int)a.y * (int)b.y + (int)a.z * (int)b.z + (int)a.w * (int)b.w;
}
static inline """


@pytest.mark.parametrize("images", [False, True])
@pytest.mark.parametrize("dot", EXTENSIONS)
def test_dot_products_of_extensions(dot: str, images: bool, monkeypatch) -> None:
    """Bit-equal to the reference, with a function in place of the device's instruction."""
    text, own = programs.program_text, device(tiles=True, images=images)
    function, built = PRODUCTS + EXTENSIONS[dot], set()
    name = re.findall(r"int (\w+)\(", EXTENSIONS[dot])[0]

    def with_function(file: str, defines: str = "") -> str:
        built.update(defines.splitlines())
        # Compilers that know the name, as Oclgrind's does, must not see it.
        return f"#define {name} {name}_here\n{function}\n{text(file, defines)}"

    monkeypatch.setattr(programs, "program_text", with_function)
    profile = dataclasses.replace(own.profile, dot=dot)
    monkeypatch.setattr(tiny, "device", lambda *_: dataclasses.replace(own, profile=profile))
    for graph in INTEGERS[:5] if dot == "qcom" else INTEGERS[1:2]:
        check(graph, tolerance=0)
    assert f"#define DOT_{dot.upper()}" in built


def test_too_wide_for_an_image_takes_buffers() -> None:
    sizes, window, none = [64, 8, 8, 32, 8, 8, 16], [3, 3, 1, 1, 1, 1, 1, 1], np.zeros(0)
    layer = Convolution(Scratch(0), Scratch(0), sizes, window, none, none)
    own = device(images=True).profile
    assert suits(own, layer)
    assert not suits(dataclasses.replace(own, images=(0, 0)), layer)
    assert not suits(dataclasses.replace(own, images=(287, 4096)), layer)  # 3·3·32 deep
    assert suits(dataclasses.replace(own, images=(288, 8)), layer)


def test_without_images_a_network_runs_on_buffers(monkeypatch) -> None:
    own = device(images=True)
    none = dataclasses.replace(own, profile=dataclasses.replace(own.profile, images=(0, 0)))
    monkeypatch.setattr(opencl, "open_device", lambda report: none)
    graph = conv((1, 8, 5, 6), 8, 3, 8)
    feeds = random_feeds(graph)
    found, exact = (Predictor(graph, b).run(feeds) for b in ("opencl", "reference"))
    assert all(np.allclose(found[n], exact[n], atol=1e-5) for n in exact)
