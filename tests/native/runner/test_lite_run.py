"""`lite_run`: files in, files out, on this machine and emulated."""

import json
import subprocess
import zlib

import numpy as np
import pytest
from lite_engine._native import runner_path
from lite_engine.backends.cpu import native
from lite_engine.errors import BackendUnavailableError
from lite_engine.model_file._container import read_container, write_container
from lite_engine.plan.program import WeightTable, encode

from ..runtime.test_runtime import X, chain
from .test_kernels_arm import runner_command

TARGETS = [pytest.param("host", marks=pytest.mark.cpu), pytest.param("arm", marks=pytest.mark.arm)]


def command(where):
    if where == "arm":
        return runner_command(), "arm"
    try:
        return [str(runner_path())], native.target()
    except BackendUnavailableError as error:
        pytest.skip(str(error))


def write(path, plan, *targets, **more):
    table = WeightTable()
    sections = {"META": [b"{}"], "GRAPH": [b"{}"], "WINDEX": [b""], "WEIGHTS": [b""]}
    sections.update({f"PROG.{t}": [encode(plan, table)] for t in targets})
    return write_container(path, {**sections, **more})


def run(runner, *arguments):
    return subprocess.run(
        [*runner, *map(str, arguments)], capture_output=True, text=True, timeout=60, check=False
    )


@pytest.mark.cpu
def test_what_a_section_holds_is_checked(tmp_path):
    """One bit of the weights, which no other check could see."""
    runner, target = command("host")
    weights = {"WINDEX": [bytes(16)], "WEIGHTS": [bytes(64)]}
    model = write(tmp_path / "m.lite", chain("Neg"), target, **weights)
    assert run(runner, model, "--info").returncode == 0
    data = bytearray(model.read_bytes())
    row = data.index(b"WEIGHTS\0")
    data[int.from_bytes(data[row + 8 : row + 16], "little") + 5] ^= 1
    model.write_bytes(data)
    done = run(runner, model, "--info")
    assert done.returncode == 1 and "is damaged (checksum)" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.cpu
def test_a_program_for_the_cpu_opens_no_device(tmp_path):
    """It is refused by its first bytes, before any driver is looked for."""
    runner, target = command("host")
    part = {f"PROG.{target}": [b"LCLP" + bytes(60)]}
    done = run(runner, write(tmp_path / "m.lite", chain("Neg"), **part), "--info")
    assert done.returncode == 1 and "is one for OpenCL" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.cpu
@pytest.mark.parametrize("word", ["sse", "se2", "neo", "2"])
def test_a_part_of_a_features_name_is_no_feature(word, tmp_path):
    runner, target = command("host")
    needs = {"NEEDS": [f"engine 0.1.0\n{target} {word}\n".encode()]}
    done = run(runner, write(tmp_path / "m.lite", chain("Neg"), target, **needs), "--info")
    assert done.returncode == 1 and f"needs a CPU with {word}" in done.stderr


@pytest.mark.parametrize("where", TARGETS)
def test_whole_run(where, tmp_path):
    runner, target = command(where)
    model = write(tmp_path / "m.lite", chain("Neg", "Exp"), target)
    np.save(tmp_path / "x.npy", X)
    profile = tmp_path / "p.json"
    done = run(
        runner,
        model,
        "--input",
        f"x={tmp_path / 'x.npy'}",
        "--output",
        tmp_path / "out",
        "--runs",
        3,
        "--warmup",
        1,
        "--threads",
        2,
        "--profile",
        profile,
        "--tap",
        "m0,x",
        "--tap-dir",
        tmp_path / "taps",
    )
    assert done.returncode == 0, done.stderr
    np.testing.assert_allclose(np.load(tmp_path / "out" / "y.npy"), np.exp(-X), rtol=1e-6)
    assert np.array_equal(np.load(tmp_path / "taps" / "m0.npy"), -X)
    assert np.array_equal(np.load(tmp_path / "taps" / "x.npy"), X)
    report = json.loads(profile.read_text())
    assert report["target"] == target and report["threads"] == 2 and report["runs"] == 3
    assert [s["op"] for s in report["steps"]] == ["Neg", "Exp"]
    assert all(s["variant"].startswith("f32_unary__") and s["ns"] >= 0 for s in report["steps"])
    assert report["total_ns"]["min"] <= report["total_ns"]["median"] <= report["total_ns"]["p90"]

    raw = tmp_path / "x.raw"
    raw.write_bytes(X.tobytes())
    assert run(runner, model, "--input", f"x={raw}", "--output", tmp_path / "raw").returncode == 0
    assert np.array_equal(np.load(tmp_path / "raw" / "y.npy"), np.load(tmp_path / "out" / "y.npy"))


@pytest.mark.cpu
def test_it_warms_up_until_the_times_are_steady(tmp_path):
    """Two windows of seven runs alike, or a second; without --steady no word of it."""
    runner, target = command("host")
    model = write(tmp_path / "m.lite", chain("Neg", "Exp"), target)
    profile = tmp_path / "p.json"
    asked = (runner, model, "--runs", 3, "--warmup", 2, "--profile", profile)
    assert run(*asked, "--steady", 1).returncode == 0
    report = json.loads(profile.read_text())
    warm = report["warm_up"]
    assert warm["runs"] >= 14 and report["first_run_ns"] <= warm["ns"]
    assert warm["steady"] or warm["ns"] >= 1_000_000_000
    assert len(report["total_ns"]["samples"]) == 3
    assert run(*asked).returncode == 0 and "warm_up" not in json.loads(profile.read_text())
    assert "--steady 0 is not understood" in run(*asked, "--steady", 0).stderr


@pytest.mark.cpu
def test_info(tmp_path):
    runner, target = command("host")
    done = run(runner, write(tmp_path / "m.lite", chain("Neg"), target), "--info")
    info = json.loads(done.stdout)
    assert info["inputs"] == [{"name": "x", "dtype": "f32", "shape": [3, 4]}]
    assert info["outputs"][0]["name"] == "y" and info["targets"] == target


@pytest.mark.cpu
def test_one_line_per_error(tmp_path):
    runner, target = command("host")
    other = "arm" if target == "x86" else "x86"
    good = write(tmp_path / "good.lite", chain("Neg"), target)
    np.save(tmp_path / "wide.npy", X.astype(np.float64))
    np.save(tmp_path / "flat.npy", X.ravel())
    (tmp_path / "short.raw").write_bytes(b"123")
    (tmp_path / "text").write_text("not a model at all, but long enough")
    (usage,) = {run(runner, word).stdout for word in ("--help", "-h")}
    assert usage.startswith("usage: lite_run model.lite") and "--threads N" in usage
    none = write_container(tmp_path / "none.lite", {"META": [b"{}"]})
    cases = [
        (1, "no program: its input sizes are open", [none]),
        (1, "no program for", [write(tmp_path / "o.lite", chain("Neg"), other)]),
        (1, "use the", [good, "--target", other]),
        (1, "cannot be read", [tmp_path / "missing.lite"]),
        (1, "not a .lite file", [tmp_path / "text"]),
        (1, "has type", [good, "--input", f"x={tmp_path / 'wide.npy'}"]),
        (1, "shape", [good, "--input", f"x={tmp_path / 'flat.npy'}"]),
        (1, "exactly 48 bytes", [good, "--input", f"x={tmp_path / 'short.raw'}"]),
        (1, "no such input", [good, "--input", f"z={tmp_path / 'flat.npy'}"]),
        (1, "no such tensor", [good, "--tap", "nothing"]),
        (1, "cannot be written", [good, "--output", "/proc/nowhere"]),
        (1, "unknown instruction set", [good, "--max-isa", "mmx"]),
        (2, "no model", []),
        (2, "not understood", [good, "--threads", "0"]),
        (2, "not understood", [good, "--nonsense", "1"]),
    ]
    for code, message, arguments in cases:
        done = run(runner, *arguments)
        assert (done.returncode, message in done.stderr) == (code, True), (arguments, done)
        assert done.stderr.startswith("error: ") and done.stdout == ""
        assert code == 2 or done.stderr.count("\n") == 1


@pytest.mark.cpu
def test_every_flipped_bit_is_noticed(tmp_path):
    """A damaged byte anywhere in header, table or sections is one error, not other numbers."""
    runner, target = command("host")
    model = write(tmp_path / "m.lite", chain("Neg"), target)
    data = model.read_bytes()
    sections = read_container(model)
    assert zlib.crc32(sections[f"PROG.{target}"]) > 0
    body = data.index(bytes(sections[f"PROG.{target}"]))
    places = [0, 9, 13, 26, 36, body, body + 30, len(data) - 1]
    for place in places:
        damaged = bytearray(data)
        damaged[place] ^= 0x10
        (tmp_path / "d.lite").write_bytes(damaged)
        done = run(runner, tmp_path / "d.lite")
        assert done.returncode == 1 and done.stderr.startswith("error: "), place
    for length in (0, 10, 17, 100, len(data) - 1):
        (tmp_path / "d.lite").write_bytes(data[:length])
        assert run(runner, tmp_path / "d.lite").returncode == 1, length
