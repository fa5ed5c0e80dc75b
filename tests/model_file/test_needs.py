"""What a file needs is checked before anything runs, here and by the runner without Python."""

from __future__ import annotations

import re
import shlex
import subprocess

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine._native import runner_path
from lite_engine.doctor import check_file
from lite_engine.errors import (
    BackendUnavailableError,
    ModelFormatError,
    TargetMismatchError,
    UsageError,
    VersionError,
)
from lite_engine.model_file import computed, read_model, retarget, writer
from lite_engine.model_file._container import read_container, write_container
from lite_engine.model_file.needs import Needs, from_bytes, needs_of, to_bytes
from lite_engine.runtime import choose, host_target
from lite_workbench.cli import main

from tests.small_models import classifier, image


def saved(tmp_path, monkeypatch, needs: Needs):
    monkeypatch.setattr(writer, "needs_of", lambda *asked: needs)
    return optimize(classifier(), targets=["x86", "arm"]).save(tmp_path / "m.lite")


def run(path):
    return subprocess.run([runner_path(), path], capture_output=True, text=True, timeout=60)


def test_an_input_that_this_version_does_not_know_is_refused(tmp_path):
    """A residual of a later version, say, passed over would give other numbers."""
    path = optimize(classifier(), targets=["x86"]).save(tmp_path / "m.lite")
    good = {tag: [bytes(data)] for tag, data in read_container(path).items()}
    more, count = re.subn(rb"= Softmax\((\w+)\)", rb"= Softmax(\1, \1)", good["GRAPH"][0])
    assert count == 1
    write_container(path, {**good, "GRAPH": [more]})
    words = r"Softmax has 2 inputs where this version knows 1: the file was made by a newer version"
    with pytest.raises(VersionError, match=words):
        read_model(path)


def test_round_trip():
    needs = needs_of(["x86", "opencl", "arm"])
    assert from_bytes(to_bytes(needs)) == needs
    assert needs.features == {"x86": ("sse2",), "arm": ("neon",)}


@pytest.mark.parametrize("data", [b"", b"engine", b"x86 sse2\n", b"engine x\n", b"\xff", b"\n\n"])
def test_damage(data):
    with pytest.raises(ModelFormatError, match="NEEDS"):
        from_bytes(data)


@pytest.mark.parametrize(
    ("needs", "good"),
    [("0.9.0", True), ("0.8.10", True), ("0.9.1", False), ("0.10", False), ("10.0.0rc1", False)],
)
def test_versions(needs, good):
    """By numbers, not by letters."""
    if good:
        Needs(needs).check_engine("m", "0.9.0")
    else:
        with pytest.raises(VersionError, match=f"m needs engine {needs} .* this is 0.9.0; convert"):
            Needs(needs).check_engine("m", "0.9.0")


@pytest.mark.cpu
def test_a_newer_engine_is_asked_for(tmp_path, monkeypatch):
    path = saved(tmp_path, monkeypatch, Needs("99.0.0"))
    with pytest.raises(VersionError, match=r"needs engine 99\.0\.0"):
        read_model(path)
    done = run(path)
    assert done.returncode == 1 and "needs runtime 99.0.0 or newer" in done.stderr
    assert done.stderr.count("\n") == 1
    assert check_file(path)[0].state == "bad"


@pytest.mark.cpu
def test_missing_cpu_features(tmp_path, monkeypatch):
    needs = needs_of([])._replace(features=dict.fromkeys(("x86", "arm"), ("sse2", "unobtainium")))
    path = saved(tmp_path, monkeypatch, needs)
    with pytest.raises(BackendUnavailableError, match=r"needs CPU features .*unobtainium"):
        Predictor(path, host_target())
    with pytest.raises(TargetMismatchError, match=r"m cannot run on this machine \(.*unobtainium"):
        choose(read_model(path))
    done = run(path)
    assert done.returncode == 1 and "needs a CPU with " in done.stderr
    assert done.stderr.count("\n") == 1


def test_precision_per_target(tmp_path):
    """Recorded in the file, part of its needs, and honoured or said not to be."""
    model = optimize(classifier(), targets=["arm", "x86", "opencl"],
                     precision="opencl=fp16,x86=bf16,arm=fp16")  # fmt: skip
    again = read_model(model.save(tmp_path / "m.lite"))
    assert again.precisions == {"opencl": "fp16", "x86": "bf16", "arm": "fp16"}
    assert again.needs.features == {"arm": ("neon",), "x86": ("sse2",)}  # each in fp32, too
    assert computed("opencl", "fp16") == "fp16" and computed("x86", "fp16") == "fp32"
    assert computed("arm", "fp16", ["neon"]) == "fp32"
    assert computed("arm", "fp16", ["neon", "neonfp16"]) == "fp16"
    plain = retarget(again, targets="x86", precision="fp32").save(tmp_path / "x.lite")
    assert read_model(plain).needs.features == {"x86": ("sse2",)}


@pytest.mark.cpu
@pytest.mark.skipif(host_target() != "x86", reason="bf16 is a precision of x86")
def test_bf16_falls_back_to_fp32(tmp_path, monkeypatch):
    """On a CPU without its arithmetic, in Python and in the runner; not where it is asked for."""
    from lite_engine.backends.cpu import native

    graph = classifier()
    np.save(tmp_path / "x.npy", image(graph)["x"])
    results = {}
    for precision in ("fp32", "bf16"):
        path = optimize(graph, targets=["x86"], precision=precision).save(
            tmp_path / f"{precision}.lite"
        )
        words = ["--max-isa", "avx2", "--input", f"x={tmp_path / 'x.npy'}", "--output", tmp_path]
        subprocess.run([runner_path(), path, *words], check=True, timeout=60)
        results[precision] = {f.name: f.read_bytes() for f in sorted(tmp_path.glob("*.npy"))}
    assert results["bf16"] == results["fp32"]

    monkeypatch.setattr(native, "cpu_features", lambda: ("sse2", "avx2"))
    decision = choose(read_model(path), "x86")
    assert decision.precision == "fp32"
    assert "bf16 needs a CPU with avx512bf16, so fp32 is used" in decision.text("fp32")
    assert choose(read_model(path), "x86", "bf16").precision == "bf16"


@pytest.mark.arm
def test_what_is_not_held_is_said():
    decision = choose(optimize(classifier(), targets=["arm"], precision="bf16"), "arm")
    assert decision.precision == "fp32"
    assert "bf16 has no kernels on this target, so fp32 is used" in decision.text("fp32")


@pytest.mark.parametrize("precision", ["int8", "arm=int8"])
def test_int8_needs_ranges(precision):
    with pytest.raises(UsageError, match="lite quantize"):
        optimize(classifier(), targets=["arm", "x86"], precision=precision)


def test_a_lite_file_for_other_targets(tmp_path, capsys):
    """`lite convert` takes a .lite file: the command that every mismatch names works."""
    arm = optimize(classifier(), targets=["arm"], metadata={"labels": ["a"]})
    source, out = arm.save(tmp_path / "arm.lite"), tmp_path / "both.lite"
    with pytest.raises(TargetMismatchError) as refused:
        Predictor(arm.save(tmp_path / "for arm.lite"), "opencl")
    command = str(refused.value).partition("`")[2].partition("`")[0]
    assert main(shlex.split(command)[1:]) == 0
    assert read_model(tmp_path / "for arm.lite").targets == ["arm", "opencl"]
    assert main(["convert", str(source), "-o", str(out), "--targets", "arm,x86"]) == 0
    both = read_model(out)
    assert both.targets == ["arm", "x86"] and both.metadata["labels"] == ["a"]
    assert both.journal.entries and both.metadata["notes"] == {}
    assert main(["convert", str(source), "-o", str(out), "--precision", "x86=fp16"]) == 2
    capsys.readouterr()
