"""A layer that the device does not run goes to the CPU alone, with copies in the profile."""

from __future__ import annotations

import json
import struct
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.backends.cpu import native
from lite_engine.ir import Graph
from lite_engine.model_file._container import read_container, write_container
from lite_engine.runtime.inputs import random_feeds

from tests.native.opencl.mutation import Fields
from tests.native.opencl.running import given, launches, run
from tests.opencl import tiny
from tests.small_models import Builder

pytestmark = [pytest.mark.opencl, pytest.mark.cpu]
#: The kernel that a device of NVIDIA is tried with before its matrix units count.
TRIED_FIRST = "conv_mma"


def network() -> Graph:
    """Layers that write into a Concat's rows, that read a constant beside weights, and a Reshape
    that is a view."""
    b = Builder((1, 3, 16, 16), "layers")
    y = b.conv(b.x, 3, 16, 3, name="stem", activation="Relu")
    left = b.conv(y, 16, 8, 1, name="left")
    right = b.conv(y, 16, 24, 3, name="right")
    y = b.add("Concat", left, right, name="join", axis=1)
    y = b.add("Mul", y, b.weights(1, 32, 1, 1), name="scale")
    y = b.conv(y, 32, 32, 3, name="dw", group=32)
    y = b.add("MaxPool", y, name="pool", kernel_shape=[2, 2], strides=[2, 2])
    y = b.add("Reshape", y, b.ints(1, 32, 64), name="flat")
    y = b.add("Softmax", y, name="soft", axis=2)
    return b.done(y)


def save(path: Path, precision: str) -> Path:
    precisions = {"opencl": precision}
    optimize(network(), targets=["opencl", native.target()], precision=precisions).save(path)
    return path


def steps(folder: Path) -> list[dict[str, str]]:
    return list(json.loads((folder / "profile.json").read_text())["steps"])


@pytest.mark.parametrize("precision", ["fp32", pytest.param("fp16", marks=pytest.mark.hours)])
def test_each_kernel(precision: str, failing_driver: str, tmp_path: Path) -> None:
    """The layers of that kernel give what Python gives when told to run them on the CPU."""
    model = save(tmp_path / "m.lite", precision)
    by_layer = launches(Predictor(model, "opencl").plan())
    tried = 0
    for kernel in sorted({one.kernel for rows in by_layer.values() for one in rows}):
        gone = [n for n, rows in by_layer.items() if any(one.kernel == kernel for one in rows)]
        layers = [n for n in gone if not n.startswith(("Cast ", "Relayout "))]
        variables = {"LITE_OPENCL_LIBRARY": failing_driver, "KERNEL_FAILS": kernel}
        found, said = given(model, tmp_path, random_feeds(network()), **variables)
        tried += 1
        if kernel == TRIED_FIRST:  # without it another of the file's programs is the best
            assert not said and all(
                "__opencl" in s["variant"] for s in steps(tmp_path) if s["name"] in gone
            )
            continue
        assert said.count("\n") == 1 and f"'{gone[0]}'" in said, said
        assert said.startswith("warning: opencl: ") and "on the CPU: OpenCL: " in said
        ran = {s["name"]: s["variant"] for s in steps(tmp_path)}
        assert all("__opencl" not in ran[n] for n in gone)
        assert any("__opencl" in ran[n] for n in by_layer), "the others stay"
        copies = Counter(s["op"] for s in steps(tmp_path))["Copy"]
        assert copies >= 2 + 2 * len(gone)
        predictor = Predictor(model, "opencl", overrides=dict.fromkeys(layers, "cpu"), threads=2)
        (wanted,) = predictor.run(random_feeds(network())).values()
        if precision == "fp32":
            assert found.tobytes() == wanted.tobytes(), kernel
        else:  # Python does not round what one layer of the CPU hands to the next one
            np.testing.assert_allclose(found, wanted, rtol=4e-3)
    assert tried >= 5


def test_a_layer_that_needs_more_local_memory(failing_driver: str, tmp_path: Path) -> None:
    """It goes to the CPU alone, with Python's numbers; a layer without local memory stays: a
    convolution on devices whose convolutions have no tiles in it."""
    b = Builder((1, 3, 16, 16), "rows")
    y = b.add("Reshape", b.conv(b.x, 3, 16, 3, name="stem"), b.ints(1, 4096), name="flat")
    graph = b.done(b.add("Softmax", y, name="soft"))
    model = optimize(graph, targets=["opencl"]).save(tmp_path / "m.lite")
    (row,) = launches(Predictor(model, "opencl").plan())["soft"]
    assert row.kernel == "softmax_row"
    variables = {"LITE_OPENCL_LIBRARY": failing_driver, "LOCAL_MEMORY": "16"}
    found, said = given(model, tmp_path, random_feeds(graph), **variables)
    gone = ["stem", "soft"] if tiny.device().profile.local_tiles else ["soft"]
    assert f"'{gone[0]}' " in said and " on the CPU: " in said, said
    assert " bytes of local memory, the device has 16" in said, said
    ran = {s["name"]: s["variant"] for s in steps(tmp_path)}
    assert [n for n in ("stem", "soft") if "__opencl" not in ran[n]] == gone
    predictor = Predictor(model, "opencl", overrides=dict.fromkeys(gone, "cpu"), threads=2)
    (wanted,) = predictor.run(random_feeds(graph)).values()
    assert found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(("layer", "precision"), [("left", "fp32"), ("dw", "fp16")])
def test_the_check_moves_wrong_layers_to_the_cpu(
    layer: str, precision: str, failing_driver: str, tmp_path: Path
) -> None:
    """Of a driver that leaves one layer's kernel out; layers behind it are wrong, too."""
    model = save(tmp_path / "m.lite", precision)
    by_layer = launches(Predictor(model, "opencl").plan())
    kernel = by_layer[layer][-1].kernel
    gone = [n for n, rows in by_layer.items() if any(x.kernel == kernel for x in rows)]
    feeds = random_feeds(network())
    with_it = {"LITE_OPENCL_LIBRARY": failing_driver, "LAUNCH_FORGOTTEN": kernel}
    right, said = given(model, tmp_path, feeds, "--check", LITE_OPENCL_LIBRARY=failing_driver)
    assert not said
    variants = {s["name"]: s["variant"] for s in steps(tmp_path)}
    found, said = given(model, tmp_path, feeds, "--check", **with_it)
    assert f"'{gone[0]}'" in said and "on the CPU: " in said and "is wrong on this device" in said
    np.testing.assert_allclose(found, right, rtol=1e-5 if precision == "fp32" else 4e-3)
    ran = {s["name"]: s["variant"] for s in steps(tmp_path)}
    moved = [n for n in by_layer if "__opencl" not in ran[n]]
    # A second layer that is wrong takes all of its variant along, whatever their kernels.
    same = [n for n in variants if variants[n] == variants[layer]] if len(gone) > 1 else gone
    assert set(gone) <= set(moved) <= {*gone, *same}
    wrong, _ = given(model, tmp_path, feeds, **with_it)
    assert not np.allclose(wrong, right, atol=1e-3)


def test_the_check_names_the_first_wrong_layer(failing_driver: str, tmp_path: Path) -> None:
    model = save(tmp_path / "m.lite", "fp32")
    (*_, row) = launches(Predictor(model, "opencl").plan())["dw"]
    np.save(tmp_path / "x.npy", *random_feeds(network()).values())
    asked = (model, "--input", f"x={tmp_path / 'x.npy'}", "--check")
    done = run(*asked, LITE_OPENCL_LIBRARY=failing_driver, LAUNCH_FORGOTTEN=row.kernel)
    assert done.returncode == 0 and done.stderr.count("\n") == 1, done.stderr
    lines = done.stdout.splitlines()
    assert "layer 'dw' (" in lines[1] and " instead of " in lines[1]
    assert "agree with the CPU" in lines[-1]


def test_the_check_sees_layers_without_biases(failing_driver: str, tmp_path: Path) -> None:
    """Of zeros they make zeros, right or wrong: inputs that are not given are none."""
    b = Builder((1, 4, 8, 8), "even")
    graph = b.done(b.add("Conv", b.x, b.weights(4, 1, 3, 3), name="dw", group=4))
    model = optimize(graph, targets=["opencl", native.target()]).save(tmp_path / "m.lite")
    (*_, row) = launches(Predictor(model, "opencl").plan())["dw"]
    done = run(model, "--check", LITE_OPENCL_LIBRARY=failing_driver, LAUNCH_FORGOTTEN=row.kernel)
    assert "layer 'dw' (" in done.stdout and "'dw' on the CPU: " in done.stderr
    again = [run(model, "--check").stdout for _ in range(2)]
    assert again[0] == again[1] and "agree with the CPU to" in again[0]


def test_values_can_be_seen_where_a_launch_fails(failing_driver: str, tmp_path: Path) -> None:
    """The program that takes over in the middle of a run has the values that were asked for."""
    model = save(tmp_path / "m.lite", "fp32")
    predictor = Predictor(model, "opencl", threads=2)
    plan = predictor.plan()
    (row, *_) = launches(plan)["soft"]
    variables = {"LITE_OPENCL_LIBRARY": failing_driver, "LAUNCH_FAILS": row.kernel}
    asked = ("--backend", "opencl", "--dump", tmp_path / "all", "--runs", 3)
    found, said = given(model, tmp_path, random_feeds(network()), *asked, **variables)
    assert said.startswith("warning: opencl: ") and "CL_INVALID_WORK_GROUP_SIZE" in said
    assert "'soft' on the CPU" in said and said.count("\n") == 1
    ran = {s["name"]: s for s in steps(tmp_path)}
    assert len(ran["soft"]["samples_ns"]) == 3 and "__opencl" not in ran["soft"]["variant"]
    overridden = Predictor(model, "opencl", overrides={"soft": "cpu"}, threads=2)
    (wanted,) = overridden.run(random_feeds(network())).values()
    assert found.tobytes() == wanted.tobytes()
    tensor = plan.tensors[plan.tensor_of[predictor.graph.nodes[0].output.name]]
    values = predictor.run(random_feeds(network()), taps=[tensor.name])
    seen = np.load(tmp_path / "all" / f"{tensor.name.replace(':', '_')}.npy")
    assert seen.tobytes() == tensor.to_physical(values[tensor.name]).tobytes()


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """A file whose programs lack the kernels of the CPU."""
    sections = read_container(save(tmp_path / "m.lite", "fp32"))
    parts: dict[str, list[bytes | memoryview]] = {tag: [sections[tag]] for tag in sections}
    for tag in sections:
        if tag.startswith("OCL."):
            parts[tag] = [first_version(bytes(sections[tag]))]
    return write_container(tmp_path / "old.lite", parts)


def test_a_file_of_the_first_version_runs(old: Path, failing_driver: str, tmp_path: Path) -> None:
    """A step that fails takes the whole model to the CPU."""
    model = tmp_path / "m.lite"
    wanted, _ = given(model, tmp_path, random_feeds(network()))
    found, said = given(old, tmp_path, random_feeds(network()))
    assert found.tobytes() == wanted.tobytes() and not said
    (row, *_) = launches(Predictor(model, "opencl").plan())["soft"]
    fault = {"LITE_OPENCL_LIBRARY": failing_driver, "KERNEL_FAILS": row.kernel}
    found, _ = given(old, tmp_path, random_feeds(network()), **fault)
    choice = json.loads((tmp_path / "profile.json").read_text())["choice"]
    assert choice.startswith("cpu: ") and "CL_OUT_OF_RESOURCES" in choice
    (wanted,) = Predictor(model, native.target()).run(random_feeds(network())).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)


def first_version(part: bytes) -> bytes:
    places = Fields.of(part).words["steps"]
    first, end = places[0], places[-1] + 4
    rows = b"".join(part[at : at + 16] for at in range(first, end, 24))
    return part[:4] + struct.pack("<I", 1) + part[8:first] + rows + part[end:]
