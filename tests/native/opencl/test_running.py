"""`.lite` files with OpenCL programs: the runner without Python gives what Python gives."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from lite_engine import Predictor, settings
from lite_engine.backends.cpu import native
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.model_file import Model
from lite_engine.model_file._container import read_container, write_container
from lite_engine.runtime.inputs import random_feeds

from tests.native.opencl.conftest import typical
from tests.native.opencl.running import answer, network, run, save
from tests.native.opencl.test_listing import ON_LOAD, shared_object
from tests.opencl.tiny import device
from tests.small_models import Builder

pytestmark = [pytest.mark.opencl, pytest.mark.cpu]


@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_the_runner_gives_pythons_bits(precision: str, tmp_path: Path) -> None:
    model = save(tmp_path / "m.lite", ["opencl", native.target()], precision)
    found, choice = answer(model, tmp_path, "--check")
    assert choice.startswith("opencl: ")
    (wanted,) = Predictor(model, "opencl", threads=2).run(random_feeds(network())).values()
    assert found.tobytes() == wanted.tobytes()
    with settings.override(LITE_OPENCL_EXECUTOR="native"):
        predictor = Predictor(model, "opencl", threads=2)
        (again,) = predictor.run(random_feeds(network())).values()
        times = [t for t in predictor.execution().times() if t.variant.endswith("__opencl")]
    assert again.tobytes() == wanted.tobytes()
    assert times and all(t.end_ns > t.start_ns for t in times)
    steps = json.loads((tmp_path / "profile.json").read_text())["steps"]
    timed = {s["variant"]: s["ns"] for s in steps}
    assert {v for v in timed if "CumSum" in v or "__opencl" not in v}, "one layer is the CPU's"
    assert all(ns > 0 for ns in timed.values())


def test_the_files_order_is_its_preference(tmp_path: Path) -> None:
    cpu = native.target()
    first = save(tmp_path / "a.lite", ["opencl", cpu])
    second = save(tmp_path / "b.lite", [cpu, "opencl"])
    assert answer(first, tmp_path)[1].startswith("opencl: ")
    assert answer(second, tmp_path)[1] == "cpu: the file names it first"
    assert answer(second, tmp_path, "--backend", "opencl")[1].startswith("opencl: ")
    assert answer(second, tmp_path, LITE_BACKEND="opencl")[1].startswith("opencl: ")
    assert answer(first, tmp_path, "--backend", "cpu")[1] == "cpu: asked for"


def test_what_is_missing_is_said(tmp_path: Path) -> None:
    plain = save(tmp_path / "plain.lite", [native.target()])
    refused = run(plain, "--backend", "opencl")
    assert refused.returncode == 1 and "convert it with --targets opencl" in refused.stderr
    assert answer(plain, tmp_path)[1] == "cpu: the file has no OpenCL program"
    assert run(plain, "--backend", "gpu").returncode == 2


def test_the_precision_asked_for_is_computed_in_or_refused(tmp_path: Path) -> None:
    model = save(tmp_path / "m.lite", ["opencl", native.target()], "fp16")
    assert answer(model, tmp_path, "--precision", "fp16")[1].startswith("opencl: ")
    found, choice = answer(model, tmp_path, "--precision", "fp32")
    assert choice.startswith("cpu: precision fp32: the file's OpenCL programs are in fp16")
    (wanted,) = Predictor(model, native.target(), precision="fp32").run(
        random_feeds(network())
    ).values()  # fmt: skip
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    for words, reason in (
        (["--backend", "opencl", "--precision", "fp32"], "--precision opencl=fp32"),
        (["--backend", "cpu", "--precision", "bf16"], "no program in it for this CPU"),
        (["--precision", "int4"], "is not one of fp32, fp16, bf16"),
    ):
        refused = run(model, *words)
        assert refused.returncode == 1 and reason in refused.stderr, words
        assert refused.stderr.count("\n") == 1


def test_the_variable_has_pythons_words(tmp_path: Path) -> None:
    """Where this runtime does not execute what it names, nothing else takes its place."""
    model = save(tmp_path / "m.lite", ["opencl", native.target()])
    assert answer(model, tmp_path, LITE_BACKEND=native.target())[1] == "cpu: asked for"
    assert answer(model, tmp_path, LITE_BACKEND="auto")[1].startswith("opencl: ")
    other = "arm" if native.target() == "x86" else "x86"
    for word in (other, "reference", "gpu"):
        refused = run(model, LITE_BACKEND=word)
        assert refused.returncode == 1 and f"LITE_BACKEND='{word}'" in refused.stderr
    assert answer(model, tmp_path, "--backend", "cpu", LITE_BACKEND=other)[1] == "cpu: asked for"


def test_without_a_library_the_cpu_runs(tmp_path: Path) -> None:
    model = save(tmp_path / "m.lite", ["opencl", native.target()])
    nowhere = str(tmp_path / "libnone.so")
    found, choice = answer(model, tmp_path, LITE_OPENCL_LIBRARY=nowhere)
    (wanted,) = Predictor(model, native.target()).run(random_feeds(network())).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert choice.startswith("cpu: ") and "libnone.so" in choice
    refused = run(model, "--backend", "opencl", LITE_OPENCL_LIBRARY=nowhere)
    assert refused.returncode == 1 and "libnone.so" in refused.stderr


def test_a_program_that_is_refused_is_told(tmp_path: Path) -> None:
    """The next one runs, and the choice says why it is not the best."""
    sections = read_container(save(tmp_path / "m.lite", ["opencl"]))
    own = typical(device().profile)
    best = f"OCL.{list(PROFILES.values()).index(own)}"
    parts: dict[str, list[bytes | memoryview]] = {tag: [sections[tag]] for tag in sections}
    wrong = re.sub(rb"#define TM \d\b", b"#define TM 0", bytes(sections[best]))
    assert wrong != sections[best]
    parts[best] = [wrong]
    _, choice = answer(write_container(tmp_path / "wrong.lite", parts), tmp_path)
    assert choice.startswith("opencl: ") and "; a better program is refused: OpenCL: " in choice


def test_opencl_runs_where_the_cpu_named_first_cannot(tmp_path: Path) -> None:
    cpu = native.target()
    sections = read_container(save(tmp_path / "m.lite", [cpu, "opencl"]))
    parts: dict[str, list[bytes | memoryview]] = {tag: [sections[tag]] for tag in sections}
    parts["NEEDS"] = [f"engine 0.0.0\n{cpu} quantum\n".encode()]
    model = write_container(tmp_path / "needs.lite", parts)
    found, choice = answer(model, tmp_path)
    assert choice.startswith("opencl: ") and "; cpu: the file needs a CPU with quantum" in choice
    (wanted,) = Predictor(tmp_path / "m.lite", "opencl").run(random_feeds(network())).values()
    assert found.tobytes() == wanted.tobytes()
    refused = run(model, "--backend", "cpu")
    assert refused.returncode == 1 and "quantum" in refused.stderr


@pytest.mark.parametrize("cpu_too", [False, True])
def test_where_nothing_runs_both_reasons_are_said(cpu_too: bool, tmp_path: Path) -> None:
    cpu = native.target()
    sections = read_container(save(tmp_path / "m.lite", ["opencl", *[cpu] * cpu_too]))
    parts: dict[str, list[bytes | memoryview]] = {tag: [sections[tag]] for tag in sections}
    if cpu_too:
        parts["NEEDS"] = [f"engine 0.0.0\n{cpu} quantum\n".encode()]
    model = write_container(tmp_path / "neither.lite", parts)
    refused = run(model, LITE_OPENCL_LIBRARY=str(tmp_path / "libnone.so"))
    why = "a CPU with quantum" if cpu_too else f"no program for '{cpu}'"
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1
    assert "libnone.so" in refused.stderr and why in refused.stderr


def test_every_value_can_be_seen(tmp_path: Path) -> None:
    """Values on the device and on the CPU between them, as they lie in memory."""
    model = save(tmp_path / "m.lite", ["opencl", native.target()])
    answer(model, tmp_path, "--dump", tmp_path / "all")
    predictor = Predictor(model, "opencl", threads=2)
    plan = predictor.plan()
    assert {s.backend for s in plan.steps} == {"opencl", "cpu"}
    names = [n.output.name for n in predictor.graph.nodes[:-1]]  # the last is the output
    values = predictor.run(random_feeds(network()), taps=names)
    for name in names:
        tensor = plan.tensors[plan.tensor_of[name]]
        found = np.load(tmp_path / "all" / f"{tensor.name.replace(':', '_')}.npy")
        assert found.tobytes() == tensor.to_physical(values[name]).tobytes(), name


def test_a_device_lost_in_the_middle_costs_nothing_but_time(
    failing_driver: str, tmp_path: Path
) -> None:
    model = save(tmp_path / "m.lite", ["opencl", native.target()])
    with_it = {"LITE_OPENCL_LIBRARY": failing_driver}
    wanted, choice = answer(model, tmp_path, **with_it)
    assert choice.startswith("opencl: "), "it works until it fails"
    found, choice = answer(model, tmp_path, "--runs", "3", LAUNCHES_BEFORE="9", **with_it)
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert choice.startswith("cpu: OpenCL: ") and "CL_INVALID_COMMAND_QUEUE" in choice
    steps = json.loads((tmp_path / "profile.json").read_text())["steps"]
    assert all(len(s["samples_ns"]) == 3 and "__opencl" not in s["variant"] for s in steps)
    refused = run(model, "--backend", "opencl", "--runs", 3, LAUNCHES_BEFORE="9", **with_it)
    assert refused.returncode == 1 and "CL_INVALID_COMMAND_QUEUE" in refused.stderr


@pytest.mark.parametrize(
    "fault, reason",
    [({"BUILDS_BEFORE": "1"}, "cannot build|does not run: no build log"),
     ({"BUFFERS_BEFORE": "6"}, "CL_MEM_OBJECT_ALLOCATION_FAILURE")],
)  # fmt: skip
def test_a_device_that_cannot_load_it_leaves_it_to_the_cpu(
    failing_driver: str, fault: dict[str, str], reason: str, tmp_path: Path
) -> None:
    model = save(tmp_path / "m.lite", ["opencl", native.target()])
    variables = {"LITE_OPENCL_LIBRARY": failing_driver, **fault}
    found, choice = answer(model, tmp_path, **variables)
    (wanted,) = Predictor(model, native.target()).run(random_feeds(network())).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    assert choice.startswith("cpu: ") and re.search(reason, choice)
    refused = run(model, "--backend", "opencl", **variables)
    assert refused.returncode == 1 and re.search(reason, refused.stderr)


def test_a_cache_that_cannot_be_written_costs_nothing(tmp_path: Path) -> None:
    """No folder: the path goes through a file. PoCL's own cache is off, so that ours is asked."""
    model = save(tmp_path / "m.lite", ["opencl", native.target()])
    wanted, _ = answer(model, tmp_path)
    (tmp_path / "file").write_text("")
    nowhere = {"LITE_CACHE_DIR": str(tmp_path / "file" / "cache"), "POCL_KERNEL_CACHE": "0"}
    found, choice = answer(model, tmp_path, **nowhere)
    assert choice.startswith("opencl: ") and found.tobytes() == wanted.tobytes()


@pytest.mark.parametrize(
    "what, state",
    [("abort();", "crash"), pytest.param("sleep(90);", "within 20 s", marks=pytest.mark.hours)],
)
def test_a_library_that_does_not_load_leaves_it_to_the_cpu(
    what: str, state: str, tmp_path: Path
) -> None:
    """It is opened in another process first, for 20 s at most; `hours` waits for them.
    test_listing.py has a library that hangs for a shorter limit."""
    model = save(tmp_path / "m.lite", ["opencl", native.target()])
    library = shared_object(tmp_path / "bad.so", f"{ON_LOAD} {{ {what} }}")
    variables = {"LITE_OPENCL_LIBRARY": str(library)}
    found, choice = answer(model, tmp_path, **variables)
    assert choice.startswith("cpu: ") and "bad.so" in choice and state in choice
    (wanted,) = Predictor(model, native.target()).run(random_feeds(network())).values()
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-6)
    refused = run(model, "--backend", "opencl", **variables)
    assert refused.returncode == 1 and refused.stderr.count("\n") == 1


def test_a_further_kind_of_device_costs_its_launches_only(tmp_path: Path) -> None:
    b = Builder((1, 128, 12, 12), "wide")
    y = b.conv(b.x, 128, 256, 3)
    graph = b.done(b.conv(y, 256, 512, 3))
    for name, targets in (("cpu", [native.target()]), ("both", [native.target(), "opencl"])):
        Model(graph, targets).save(tmp_path / f"{name}.lite")
    cpu, both = (read_container(tmp_path / f"{n}.lite") for n in ("cpu", "both"))
    programs = [tag for tag in both if tag.startswith("OCL.")]
    assert len(programs) == 9 and not any(tag.startswith("OCL.") for tag in cpu)
    whole = len(cpu["WEIGHTS"])
    assert all(len(both[tag]) < whole / 100 for tag in programs)
    # Biases of no element, and nothing else, are stored beside the weights.
    assert len(both["WEIGHTS"]) <= whole + 4096
