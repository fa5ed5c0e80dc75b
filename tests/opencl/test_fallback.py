"""What a failing kernel costs: its variant, then its layer, and the model only with the device."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import lite_engine.backends.opencl as opencl
import numpy as np
import pytest
from lite_engine import Predictor, settings
from lite_engine.backends.opencl import executable, kernels, persistent
from lite_engine.backends.opencl.cases.examples import examples
from lite_engine.backends.opencl.cases.graphs import single
from lite_engine.backends.opencl.device import Device
from lite_engine.backends.opencl.executable import OpenCLExecutable
from lite_engine.backends.opencl.faults import Fault, planted
from lite_engine.backends.opencl.selfcheck import disagreement
from lite_engine.backends.opencl.tuning import Tuning
from lite_engine.backends.opencl.verdicts import Failure, Verdicts
from lite_engine.doctor import examine
from lite_engine.errors import BackendUnavailableError
from lite_engine.ir import Graph
from lite_engine.model_file import Model
from lite_engine.plan import Plan
from lite_engine.profile import profile
from lite_engine.runtime import host_target
from lite_engine.runtime.inputs import random_feeds
from lite_workbench.views import profile_data

from tests.opencl.tiny import device
from tests.small_models import Builder, classifier

pytestmark = pytest.mark.opencl

GRAPH = classifier()
FEEDS = random_feeds(GRAPH)
Start = Callable[[], Device]


@pytest.fixture(scope="module")
def wanted() -> dict[str, np.ndarray]:
    return Predictor(GRAPH, "reference").run(FEEDS)


@pytest.fixture
def start(monkeypatch, tmp_path: Path) -> Start:
    """What a new process does: the device, with GPUs' kernels, and what was remembered of it."""

    def started() -> Device:
        report = device(tiles=True).report
        own = dataclasses.replace(
            device(tiles=True), tuning=Tuning.load(tmp_path / "tuning.json"),
            verdicts=Verdicts.load(tmp_path / "verdicts.json", report.name, report.driver),
        )  # fmt: skip
        monkeypatch.setattr(opencl, "open_device", lambda report: own)
        return own

    started()
    return started


def close(found: dict[str, np.ndarray], exact: dict[str, np.ndarray]) -> bool:
    return all(np.allclose(found[n], exact[n], rtol=1e-4, atol=1e-5) for n in exact)


def why(plan: Plan, name: str) -> str:
    (step,) = [s for s in plan.steps if s.name == name]
    return f"{step.backend}: {step.why}"


@pytest.mark.parametrize("kind, what", [
    ("build", "does not build: "), ("launch", "does not run with these sizes: "),
    ("numbers", "gives different results than the reference: "),
])  # fmt: skip
def test_a_broken_variant_costs_that_variant(start, wanted, kind: str, what: str) -> None:
    predictor = Predictor(GRAPH, "opencl")
    with planted(Fault(kind, "conv2d", "smallest tile")), settings.override(LITE_CHECK="1"):
        with pytest.warns(UserWarning, match=r"conv2d \(smallest tile\) .* runs instead") as told:
            assert close(predictor.run(FEEDS), wanted)
    assert len([w for w in told if "conv2d" in str(w.message)]) == 1
    assert why(predictor.plan(), "pw").startswith(f"opencl: conv2d (smallest tile) {what}")
    assert not predictor.refused


def test_the_last_variant_leaves_the_layer_to_the_cpu(start, wanted) -> None:
    with planted(Fault("build", "softmax")):
        predictor = Predictor(GRAPH, "opencl")
        with pytest.warns(UserWarning, match="softmax does not build: .*the CPU runs the layer"):
            assert close(predictor.run(FEEDS), wanted)
        result = profile(predictor, FEEDS, runs=1, roof=False)
        made = result.to_dict()
    layer = {x["name"]: x for x in made["layers"]}
    assert layer["prob"]["backend"] == "cpu" and layer["fc"]["backend"] == "opencl"
    assert layer["prob"]["why"].startswith("softmax does not build: ")
    assert any(x["op"] == "Copy" and x["index"] < layer["prob"]["index"] for x in made["layers"])
    assert any("softmax does not build" in w and "prob" in w for w in made["warnings"])
    shown = {row["name"]: row for row in profile_data(result)["layers"]}  # what the widgets get
    assert (shown["prob"]["why"], shown["prob"]["backend"]) == (layer["prob"]["why"], host_target())
    assert "layer prob: not on opencl: softmax does not build" in predictor.explain()


@pytest.mark.parametrize("kind", ["build", "launch"])
def test_another_process_does_not_try_again(start, wanted, monkeypatch, kind: str) -> None:
    faults = Fault(kind, "conv2d", "smallest tile"), Fault(kind, "softmax")
    with planted(*faults), pytest.warns(UserWarning):
        first = Predictor(GRAPH, "opencl")
        first.run(FEEDS)
    start()
    made: list[str] = []
    build = Device.program

    def noted(self, file: str, defines: str = ""):
        made.append(f"{file} {defines}")
        return build(self, file, defines)

    monkeypatch.setattr(Device, "program", noted)
    with planted(*faults), pytest.warns(UserWarning, match="softmax does not"):
        second = Predictor(GRAPH, "opencl")
        assert close(second.run(FEEDS), wanted)
    assert made and not any("softmax" in m or "planted failure" in m for m in made)
    assert why(second.plan(), "prob") == why(first.plan(), "prob")


def test_a_broken_change_of_layout_leaves_its_neighbours_to_the_cpu(start, wanted) -> None:
    predictor = Predictor(GRAPH, "opencl")
    with planted(Fault("build", "copy_relayout")), pytest.warns(UserWarning, match="copy_relayout"):
        assert close(predictor.run(FEEDS), wanted)
    steps = predictor.plan().steps
    assert not [s for s in steps if (s.kernel, s.backend) == ("copy_relayout", "opencl")]
    assert {s.name for s in steps if s.backend == "opencl"} & {"dw", "pw", "wide"}


def test_a_failure_that_shows_when_the_queue_ends(start, wanted, monkeypatch) -> None:
    """The driver takes the call and tells later."""
    own, failed = start(), []

    made = kernels.prepared

    def late(cl, queue, kernel, grid, group):
        call = made(cl, queue, kernel, grid, group)
        return (lambda: failed.append(1) or 0) if "softmax" in kernel.function_name else call

    def finish(self) -> None:
        own.queue.finish()
        if failed:
            failed.clear()
            own.cl.Buffer(own.context, own.cl.mem_flags.READ_WRITE, 0)  # any error of a driver

    monkeypatch.setattr(kernels, "prepared", late)
    monkeypatch.setattr(OpenCLExecutable, "finish", finish)
    predictor = Predictor(GRAPH, "opencl")
    with pytest.warns(UserWarning, match="softmax does not run: .*INVALID_BUFFER_SIZE"):
        assert close(predictor.run(FEEDS), wanted)


def test_a_device_that_fails_later(start, wanted, monkeypatch) -> None:
    """In a run after many that went well, with separate launches."""
    monkeypatch.setattr(persistent, "possible", lambda device: False)
    broken: list[int] = []
    made = kernels.prepared

    def prepared(cl, queue, kernel, grid, group):
        call = made(cl, queue, kernel, grid, group)
        breaks = "softmax" in kernel.function_name
        return (lambda: -5 if broken else call()) if breaks else call

    monkeypatch.setattr(kernels, "prepared", prepared)
    predictor = Predictor(GRAPH, "opencl")
    assert close(predictor.run(FEEDS), wanted) and close(predictor.run(FEEDS), wanted)
    broken.append(1)
    with pytest.warns(UserWarning, match="softmax does not run: OUT_OF_RESOURCES"):
        assert close(predictor.run(FEEDS), wanted)
    assert "prob" in predictor.refused


def test_everything_fails_but_the_device_answers(start, wanted, monkeypatch) -> None:
    monkeypatch.setattr(kernels, "prepared", lambda *_: lambda: -5)
    predictor = Predictor(GRAPH, "opencl")
    with pytest.warns(UserWarning, match="does not run: OUT_OF_RESOURCES"):
        assert close(predictor.run(FEEDS), wanted)
    layers = [s for s in predictor.plan().steps if s.node is not None]
    assert {s.backend for s in layers} == {"cpu"}


def test_a_lost_device_costs_the_model(start, wanted, monkeypatch) -> None:
    own = start()
    monkeypatch.setattr(kernels, "prepared", lambda *_: lambda: -2)
    with pytest.raises(BackendUnavailableError, match="is lost: DEVICE_NOT_AVAILABLE"):
        Predictor(GRAPH, "opencl").run(FEEDS)
    predictor = Predictor(Model(GRAPH, targets=["opencl", host_target()]))
    with pytest.warns(UserWarning, match="runs the model instead"):
        made = profile(predictor, FEEDS, runs=1, roof=False)
    assert made.backend == predictor.backend == host_target()
    assert close(predictor.run(FEEDS), wanted)
    assert "failed while running" in predictor.explain() and not own.verdicts.failures


def test_no_memory_at_all_costs_the_model(start, wanted, monkeypatch) -> None:
    def refuse(self, nbytes, data=None):
        raise BackendUnavailableError(f"{nbytes} bytes could not be allocated")

    monkeypatch.setattr(Device, "buffer", refuse)
    predictor = Predictor(Model(GRAPH, targets=["opencl", host_target()]))
    with pytest.warns(UserWarning, match="runs the model instead"):
        assert close(predictor.run(FEEDS), wanted)


def test_the_doctor_lists_what_failed(start) -> None:
    with planted(Fault("build", "softmax")), pytest.warns(UserWarning):
        Predictor(GRAPH, "opencl").run(FEEDS)
    (check,) = [c for c in examine().checks if c.name == "OpenCL"]
    assert check.state == "warning" and "1 kernel fails with this driver" in check.summary
    assert check.tried[-1]["what"] == "kernel softmax"
    assert check.tried[-1]["result"].startswith("does not build: ")


@pytest.fixture
def compared(monkeypatch) -> list[str]:
    """The steps whose numbers are compared with the reference's from here on."""
    steps: list[str] = []

    def noted(step, *more):
        steps.append(step.name)
        return disagreement(step, *more)

    monkeypatch.setattr(executable, "disagreement", noted)
    return steps


def checked_run(graph: Graph) -> None:
    with settings.override(LITE_CHECK="1"):
        Predictor(graph, "opencl").run(random_feeds(graph))


def test_a_start_checks_what_no_start_has_checked(start, compared: list[str]) -> None:
    """Once for each program and class of sizes; another driver is checked anew."""
    checked_run(GRAPH)
    assert {"stem", "dw", "pw", "wide", "prob"} <= set(compared)
    compared.clear()
    start()
    checked_run(GRAPH)
    assert not compared
    for shape, news in ([5, 60], 1), ([7, 60], 0), ([7, 600], 1):
        checked_run(single("Softsign", shape))
        assert compared == ["layer"] * news
        compared.clear()
    own = start()
    own.verdicts = Verdicts.load(own.verdicts.path, own.report.name, "another driver")
    compared.clear()
    checked_run(GRAPH)
    assert {"stem", "dw", "pw", "wide", "prob"} <= set(compared)


def test_inputs_that_became_attributes_are_checked_too(start, compared: list[str]) -> None:
    for graph in examples()["reduce"] + examples()["copy_slice"]:
        checked_run(graph)
    assert compared.count("layer") > 5


def test_what_gave_wrong_numbers_does_not_pass(start, compared: list[str]) -> None:
    fault = Fault("numbers", "conv2d", "smallest tile")
    with planted(fault), pytest.warns(UserWarning, match="gives different results"):
        checked_run(GRAPH)
    own = start()
    assert {f.name for f in own.verdicts.failures.values()} == {"conv2d (smallest tile)"}
    wrong = {s.name for s in Predictor(GRAPH, "opencl").plan().steps if s.kernel == "conv2d"}
    own.verdicts.forget(list(own.verdicts.failures))
    compared.clear()
    checked_run(GRAPH)
    assert compared and set(compared) <= wrong


FAILURE = Failure("ab", "conv2d", "matrix units", "build", "error: no such instruction")


def written(path: Path, **changes: object) -> dict[str, object]:
    table = Verdicts(path, "board", "1.0")
    table.add(FAILURE)
    return {**json.loads(path.read_text()), **changes}


def test_the_table_of_failures_is_read_again(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.json"
    written(path)
    assert Verdicts.load(path, "board", "1.0").failures == {"ab": FAILURE}
    assert not Verdicts.load(path, "board", "1.1").failures  # another driver may do it
    own = Verdicts.load(path, "board", "1.0")
    own.add(FAILURE._replace(program="cd", kind="memory"))
    assert "cd" not in Verdicts.load(path, "board", "1.0").failures
    own.approve(["one", "two"])
    own.forget(["ab"])
    own.save()
    assert list(Verdicts.load(path, "board", "1.0").passed) == ["one", "two"]
    assert not Verdicts.load(path, "board", "1.0").failures


ROW = FAILURE._asdict()


@pytest.mark.parametrize("damage", [*({"failures": f} for f in [
    None, {}, [1], [{}], [{**ROW, "kind": "x"}], [{**ROW, "kind": 1}], [{**ROW, "detail": None}],
]), {"passed": None}, {"passed": [1]}, {"passed": {}}])  # fmt: skip
def test_a_damaged_table_is_an_empty_one(tmp_path: Path, damage: dict[str, object]) -> None:
    path = tmp_path / "verdicts.json"
    document = json.dumps(written(path, **damage))
    for text in (document, document[:-3], "\0", "[" * 100_000):
        path.write_text(text)
        assert not Verdicts.load(path, "board", "1.0").failures


def test_what_a_table_says_reaches_no_terminal_raw(tmp_path: Path) -> None:
    path = tmp_path / "verdicts.json"
    rows = [{**ROW, "kernel": "\x1b[2Jconv", "detail": "x" * 10_000}]
    path.write_text(json.dumps(written(path, failures=rows)))
    (failure,) = Verdicts.load(path, "board", "1.0").failures.values()
    assert str(failure).isprintable() and len(str(failure)) < 400


@pytest.mark.parametrize("tiles", [True, False])
def test_what_is_left_when_nothing_else_works(start, monkeypatch, tiles: bool) -> None:
    """All that needs local memory, barriers, images or other bits of a convolution is broken."""
    own = start()
    monkeypatch.setattr(own, "profile", device(tiles=tiles).profile)
    families = ("Winograd", "tile", "smallest tile", "image")
    faults = [Fault("build", kernel, f) for kernel in ("conv2d", "matmul") for f in families]
    b = Builder((1, 16, 12, 12))
    y = b.conv(b.conv(b.x, 16, 16, 3, name="conv"), 16, 8, 1, name="one")
    y = b.add("MatMul", y, b.add("Relu", y, name="relu"), name="product")
    graph = b.done(y)
    predictor, feeds = Predictor(graph, "opencl"), random_feeds(graph)
    with planted(*faults), pytest.warns(UserWarning, match="direct runs instead"):
        found = predictor.run(feeds)
    assert close(found, Predictor(graph, "reference").run(feeds)) and not predictor.refused
    assert "conv2d (Winograd) does not build" in why(predictor.plan(), "conv")


@pytest.mark.parametrize("tiles", [True, False])
@pytest.mark.parametrize("precision", ["fp32", "fp16"])
def test_few_rows_and_wide_strides_have_a_second_way(
    start, monkeypatch, tiles: bool, precision: str
) -> None:
    own = start()
    monkeypatch.setattr(own, "profile", dataclasses.replace(own.profile, local_tiles=tiles))
    b = Builder((1, 8, 5, 6))
    y = b.add(
        "ConvTranspose", b.x, b.weights(8, 12, 2, 2), b.weights(12), name="up", strides=[2, 2]
    )
    y = b.add("Flatten", b.add("GlobalAveragePool", y, name="pool"))
    graph = b.done(b.add("Gemm", y, b.weights(7, 12), b.weights(7), name="fc", transB=1))
    ways = ("tile", "smallest tile") if tiles else ("scattered",)
    faults = [Fault("build", "deconv2d", way) for way in ways]
    faults += [Fault("build", "gemm", "few rows")] if tiles else []
    predictor, feeds = Predictor(graph, "opencl", precision=precision), random_feeds(graph)
    with planted(*faults), pytest.warns(UserWarning, match="direct runs instead"):
        found = predictor.run(feeds)
    wanted = Predictor(graph, "reference").run(feeds)
    near = 1e-4 if precision == "fp32" else 1e-2
    assert all(np.allclose(found[n], wanted[n], rtol=near, atol=near) for n in wanted)
    assert not predictor.refused
    last = "smallest tile" if tiles else "scattered"
    assert f"deconv2d ({last}) does not build" in why(predictor.plan(), "up")
    assert not tiles or "gemm (few rows) does not build" in why(predictor.plan(), "fc")


def test_layers_without_a_failure_say_nothing(start, wanted) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # Not ours: a driver's build log, ignored by `import_pyopencl` until here.
        warnings.filterwarnings("ignore", "Non-empty compiler output")
        predictor = Predictor(GRAPH, "opencl")
        assert close(predictor.run(FEEDS), wanted)
    assert not predictor.execution().refusals and not predictor.refused


def test_images_give_way_to_buffers(start, monkeypatch) -> None:
    own = start()
    profiled = dataclasses.replace(own.profile, prefers_images=True)
    monkeypatch.setattr(own, "profile", profiled)
    b = Builder((1, 8, 9, 9))
    graph = b.done(b.conv(b.conv(b.x, 8, 8, 3, name="conv"), 8, 8, 3, name="dw", group=8))
    predictor, feeds = Predictor(graph, "opencl"), random_feeds(graph)
    faults = Fault("build", "conv2d", "image"), Fault("build", "conv2d_depthwise", "image")
    with planted(*faults), pytest.warns(UserWarning, match="buffer runs instead"):
        found = predictor.run(feeds)
    assert close(found, Predictor(graph, "reference").run(feeds))
    for name in ("conv", "dw"):
        assert "(image) does not build" in why(predictor.plan(), name)
