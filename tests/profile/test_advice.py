"""Advice: each rule speaks where it should, with evidence and a command, and not elsewhere."""

from __future__ import annotations

import shlex

import pytest
from lite_engine import Predictor, write_onnx
from lite_engine.ir import Journal
from lite_engine.plan import Plan
from lite_engine.profile import advice as module
from lite_engine.profile import profile
from lite_engine.profile.advice import advise, shape_options
from lite_engine.profile.advice_case import Advice
from lite_engine.runtime import host_target
from lite_workbench.cli import main

from tests.profile.profiles import layer, made_up, of_layers
from tests.small_models import classifier, image


def rules(profile_, plan=None) -> set[str]:
    return {a.rule for a in advise(profile_, plan or Plan("cpu"), model="m.onnx")}


def parsed(command: str) -> list:
    """What the `lite` command itself makes of a line of advice; fails where it would refuse it."""
    from lite_workbench.commands import get_command, parser_for

    lines = [shlex.split(part) for part in command.split(" && ")]
    assert all(words[0] == "lite" for words in lines)
    return [parser_for(get_command(words[1])).parse_args(words[2:]) for words in lines]


@pytest.fixture
def gpu(monkeypatch) -> None:
    monkeypatch.setattr(module.Case, "has_gpu", True)


@pytest.fixture
def no_gpu(monkeypatch) -> None:
    monkeypatch.setattr(module.Case, "has_gpu", False)


def test_a_layer_far_below_its_roof(gpu) -> None:
    slow = layer(0, 5.0, roofline_fraction=0.1, bound_by="compute")
    found = advise(
        of_layers([slow, layer(1, 5.0, roofline_fraction=0.8)]), Plan("cpu"), model="m.onnx"
    )
    assert [a.layers for a in found] == [["conv0"]]
    assert found[0].gain_ms == pytest.approx(5.0 * (1 - 0.1 / 0.5))
    assert "10 % of its compute roof" in found[0].evidence
    assert found[0].command == "lite profile m.onnx --backend opencl"
    assert found[0].code == "session.override('conv0', 'opencl')"


def test_without_a_gpu_other_threads_are_tried(no_gpu) -> None:
    slow = layer(0, 5.0, roofline_fraction=0.1, bound_by="memory")
    found = advise(of_layers([slow]), Plan("cpu"), model="my model.onnx",
                   reading=shape_options({"x": (1, 3, 8, 8)}),
                   running="--threads 2 --precision fp32")  # fmt: skip
    (command,) = parsed(found[0].command)
    assert (command.model, command.threads, command.backend) == ("my model.onnx", 1, "x86")
    assert command.shape == [("x", (1, 3, 8, 8))] and command.precision == "fp32"
    assert not found[0].code  # no layer goes elsewhere
    alone = of_layers([slow], threads=1, environment={"cpu": "paper", "cores": 1})
    assert advise(alone, Plan("cpu")) == []  # nothing else to try


def test_a_layer_that_was_fast_once_is_not_slow(no_gpu) -> None:
    """The roofs are of fastest runs: a median that other programs made says nothing."""
    disturbed = layer(0, 5.0, roofline_fraction=0.1, bound_by="memory", min_ms=1.0)
    assert rules(of_layers([disturbed])) == set()
    assert rules(of_layers([layer(0, 5.0, roofline_fraction=0.1)], runs=5)) == set()


def test_a_layer_that_is_only_noise_gets_no_advice() -> None:
    noisy = layer(0, 5.0, roofline_fraction=0.1, ci_ms=4.0)
    assert rules(of_layers([noisy])) == set()


def test_a_fallback_between_device_layers() -> None:
    rows = [
        layer(0, 1.0, backend="opencl"),
        layer(1, 0.3, name="Copy a", op="Copy", sources=[], overhead=True, backend="opencl"),
        layer(2, 0.1, name="nms", op="NonMaxSuppression", why="no kernel"),
        layer(3, 0.3, name="Copy b", op="Copy", sources=[], overhead=True, backend="opencl"),
        layer(4, 1.0, backend="opencl"),
    ]
    found = advise(of_layers(rows, backend="opencl"), Plan("opencl"))
    fallback = next(a for a in found if a.rule == "fallback")
    assert fallback.layers == ["nms"]
    assert fallback.evidence.startswith("nms runs on the CPU between layers of the device (no ker")
    assert fallback.gain_ms == pytest.approx(0.6)
    (command,) = parsed(fallback.command)
    assert (command.backend, command.tune) == ("opencl", "normal")


def test_layers_that_another_packages_backend_leaves_to_the_cpu() -> None:
    rows = [
        layer(0, 1.0, backend="acme"),
        layer(1, 0.1, name="soft", op="Softmax", why="acme has no Softmax"),
        layer(2, 1.0, backend="acme"),
    ]
    found = advise(of_layers(rows, backend="acme"), Plan("cpu"))
    fallback = next(a for a in found if a.rule == "fallback")
    assert fallback.layers == ["soft"] and "acme has no Softmax" in fallback.evidence
    (command,) = parsed(fallback.command)
    assert command.plugins == "acme"


def test_channels_that_do_not_fill_a_vector() -> None:
    """A tile of 16 is two vectors of 8: 17 channels take three of them, 24 all of three."""
    row = layer(0, 1.0, output_shapes=[[1, 17, 8, 8]])
    found = advise(of_layers([row]), Plan("cpu"))
    assert found[0].rule == "channels-and-tile" and "17 output channels" in found[0].evidence
    assert "24 channels would take the same time" in found[0].advice
    assert parsed(found[0].command)[0].layers
    for full in (8, 24, 32):
        assert rules(of_layers([layer(0, 1.0, output_shapes=[[1, full, 8, 8]])])) == set()


def test_the_first_layer_on_a_gpu() -> None:
    first = layer(0, 1.0, backend="opencl", input_shapes=[[1, 3, 8, 8]])
    rest = layer(1, 1.0, backend="opencl")
    found = advise(of_layers([first, rest], backend="opencl"), Plan("opencl"), model="m.onnx")
    made, measured = parsed(next(a for a in found if a.rule == "first-layer").command)
    assert made.layer == ["opencl:conv0=cpu"] and made.output == measured.model == "tried.lite"
    assert measured.backend == "opencl"


def island(*dtypes: str) -> set[str]:
    """Layers of these types; "q" and "d" are conversions to and from integers."""
    edges = {"q": ("QuantizeLinear", "i8"), "d": ("DequantizeLinear", "f32")}
    rows = []
    for i, word in enumerate(dtypes):
        op, dtype = edges.get(word, ("Conv", word))
        rows.append(layer(i, 0.5, op=op, dtype=dtype, kernel="k"))
    made = "lite quantize f.onnx --calibration text --keep-float conv3 --target-db 20"
    found = [a for a in advise(of_layers(rows), Plan("cpu"), made=made) if a.rule == "int8-island"]
    for a in found:
        again, measured = parsed(a.command)
        assert (again.model, again.calibration, again.target_db) == ("f.onnx", "text", 20)
        assert again.keep_float == "" and again.float_budget == 0
        assert again.output == measured.model
        assert "conv3" in a.evidence
    return {name for a in found for name in a.layers}


def test_an_island_of_floats() -> None:
    """What the model's inputs and outputs need is no island."""
    assert island("q", "i8", "d", "f32", "q", "i8", "d") == {"conv2", "conv4"}
    assert island("q", "i8", "i8", "d", "f32") == set()


def test_conversions_around_what_has_no_integer_form_are_needed() -> None:
    """A transformer's LayerNorm: no way of quantizing would keep it in integers."""
    rows = [layer(i, 0.5, op=op, dtype=dtype) for i, (op, dtype) in enumerate([
        ("Conv", "i8"), ("DequantizeLinear", "f32"), ("LayerNormalization", "f32"),
        ("QuantizeLinear", "i8"), ("Conv", "i8"),
    ])]  # fmt: skip
    made = "lite quantize f.onnx --calibration text"
    found = advise(of_layers(rows), Plan("cpu"), made=made)
    assert "int8-island" not in {a.rule for a in found}


def test_an_island_in_a_file_quantized_elsewhere() -> None:
    """Nobody here knows the float model: the passes say what kept the layers in float."""
    rows = [layer(i, 0.5, op=op, dtype=dtype) for i, (op, dtype) in enumerate([
        ("Conv", "i8"), ("DequantizeLinear", "f32"), ("Conv", "f32"), ("QuantizeLinear", "i8"),
        ("Conv", "i8"),
    ])]  # fmt: skip
    found = advise(of_layers(rows), Plan("cpu"), model="qdq.onnx")
    (command,) = parsed(next(a for a in found if a.rule == "int8-island").command)
    assert command.model == "qdq.onnx" and command.journal


def test_moves_that_add_up(gpu) -> None:
    moved = {"source": "row-major", "target": "channels-last", "fix": "MaxPool reads it so",
             "gain_ms": 1.0}  # fmt: skip
    rows = [layer(0, 1.0, op="Relayout", overhead=True, copy=moved), layer(1, 1.0)]
    found = next(a for a in advise(of_layers(rows), Plan("cpu")) if a.rule == "moves")
    assert "MaxPool reads it so" in found.evidence and found.gain_ms == 1.0
    assert parsed(found.command)[0].backend == "opencl"


def test_many_steps_too_short_for_threads() -> None:
    found = advise(made_up([0.001] * 9), Plan("cpu"))
    assert [a.rule for a in found] == ["tiny-steps"]
    assert parsed(found[0].command)[0].threads == 1


def test_emulated_times_give_no_advice() -> None:
    assert advise(made_up([1.0], times_meaningful=False), Plan("cpu")) == []


@pytest.mark.cpu
def test_an_activation_that_was_not_fused_says_why() -> None:
    """`classifier` as it is: HardSwish after a convolution, no pass has run."""
    graph = classifier()
    predictor = Predictor(_raw(graph), host_target(), threads=1)
    made = profile(predictor, image(graph), runs=7, roof=False)
    for row in made.layers:
        row.share = 0.5
    journal = Journal()
    journal.refused("fuse-activation", ("dw",), "another layer reads the convolution")
    found = [a for a in advise(made, predictor.plan(), journal) if a.rule == "unfused-activation"]
    assert found[0].layers == ["swish"]
    assert "another layer reads the convolution" in found[0].evidence
    assert parsed(found[0].command)[0].journal


def test_the_command_lists_what_gains_most(monkeypatch, tmp_path, capsys) -> None:
    model = str(write_onnx(classifier(), tmp_path / "m.onnx"))
    many = [Advice("rule", [], f"seen {i}", "do", 9.0 - i, "lite info m") for i in range(5)]
    monkeypatch.setattr(module, "advise", lambda *args, **options: many)
    words = ["profile", model, "--backend", "reference", "--runs", "1", "--no-history"]
    listed = []
    for more in ([], ["--all-advice"]):
        assert main([*words, *more]) == 0
        listed.append([x for x in capsys.readouterr().out.splitlines() if "advice" in x])
    assert [x[:14] for x in listed[0][:3]] == [f"advice: seen {i}" for i in range(3)]
    assert listed[0][3:] == ["2 more lines of advice gain less: --all-advice lists them"]
    assert [x[:14] for x in listed[1]] == [f"advice: seen {i}" for i in range(5)]


def _raw(graph):
    from lite_engine.model_file import Model

    return Model(graph)
