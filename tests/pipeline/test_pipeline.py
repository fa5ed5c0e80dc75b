"""Whole pipelines: one file, the same answer from Python, the runners and an exported program."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from lite_engine import optimize
from lite_engine._native import host_arch, runner_path
from lite_engine.errors import LiteError, ModelFormatError, UsageError
from lite_engine.ir import DType, Graph, QuantParams, Value
from lite_engine.model_file import open_model
from lite_engine.pipeline import Frames, Pipeline, Stream, feed, is_bundle
from lite_engine.pipeline.native import NativePipeline
from lite_engine.runtime import host_target
from lite_engine.system import LINUX
from lite_workbench.cli import main
from lite_workbench.lessons import shipped
from PIL import Image

from tests.small_models import classifier

from .pipes import document, model, png

pytestmark = pytest.mark.cpu


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    """A classifier with labels, used by two stages, in YAML and as one file."""
    folder = tmp_path_factory.mktemp("pipeline")
    made = optimize(classifier(), targets=["x86", "arm"])
    made.metadata |= {"preprocess": {"mean": [127.5], "std": [127.5]}, "labels": [*"abcdefghij"]}
    made.save(folder / "digits.lite")
    (folder / "two.json").write_text(json.dumps({
        "name": "two",
        "stages": [
            {"model": "digits.lite", "name": "whole"},
            {"model": "digits.lite", "name": "center", "preprocess": "crop", "read": {"top": 2}},
        ],
    }))  # fmt: skip
    Pipeline.open(folder / "two.json").save(folder / "two.lite")
    return folder


def ran(*command: object, code: int = 0) -> str:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=120)
    assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout if code == 0 else done.stderr


def test_python_and_the_runners_give_one_answer(written, photo, qemu) -> None:
    want = Pipeline.open(written / "two.json").run(photo)
    assert [len(a["items"]) for a in want["answers"].values()] == [5, 2]
    assert {i["label"] for i in want["answers"]["whole"]["items"]} <= set("abcdefghij")
    assert Pipeline.open(written / "two.lite").run(photo) == want
    for prefix, arch in (([], host_arch()), (qemu, "aarch64")):
        got = json.loads(ran(*prefix, runner_path(arch), written / "two.lite", "--image", photo))
        for name, answer in got["answers"].items():
            known = want["answers"][name]["items"]
            assert [i["label"] for i in answer["items"]] == [i["label"] for i in known]
            np.testing.assert_allclose(
                [i["score"] for i in answer["items"]], [i["score"] for i in known], rtol=1e-4
            )


def test_the_reference_backend_runs_the_same_steps(written, photo) -> None:
    pipeline = Pipeline.open(written / "two.lite")
    native, reference = pipeline.run(photo), pipeline.run(photo, "reference")
    for name, answer in native["answers"].items():
        for got, want in zip(answer["items"], reference["answers"][name]["items"], strict=True):
            assert got["label"] == want["label"]
            assert got["score"] == pytest.approx(want["score"], rel=1e-4)


def test_a_model_lies_in_the_file_once(written) -> None:
    assert is_bundle(written / "two.lite") and not is_bundle(written / "digits.lite")
    one, two = ((written / f"{name}.lite").stat().st_size for name in ("digits", "two"))
    assert one < two < 2 * one
    with pytest.raises(UsageError, match="pipeline of several models"):
        open_model(written / "two.lite")


@pytest.mark.skipif(not LINUX, reason="/proc/self/mem is Linux's: its first page gives EIO")
def test_a_file_that_cannot_be_read_is_not_taken_for_a_model(tmp_path: Path) -> None:
    path = tmp_path / "two.lite"
    path.symlink_to("/proc/self/mem")
    with pytest.raises(ModelFormatError, match="cannot be read") as told:
        Pipeline.open(path)
    assert str(path) in str(told.value)


def test_any_model_is_a_pipeline_of_its_own(written, photo) -> None:
    alone = Pipeline.open(written / "digits.lite").run(photo)["answers"]["digits"]
    assert alone == Pipeline.open(written / "two.lite").run(photo)["answers"]["whole"]


def test_integer_inputs_keep_their_scale_in_a_file(tmp_path) -> None:
    graph = Graph("bytes")
    quant = QuantParams(np.array(0.5, np.float32), np.array(3, np.int8))
    x = Value("x", DType.I8, (1, 3, 4, 4), quant=quant)
    graph.inputs = [x]
    graph.outputs = [graph.add("Transpose", [x], {"perm": [0, 2, 3, 1]}, name="t").output]
    found = open_model(optimize(graph).save(tmp_path / "bytes.lite")).graph.inputs[0].quant
    assert found is not None and float(found.scale) == 0.5 and int(found.zero_point) == 3


def test_crops_turn_and_go_to_the_next_model() -> None:
    """A region's crop is what Pillow's own perspective gives; the second model turns it around."""
    pixels = np.zeros((64, 96, 3), np.uint8)
    pixels[20:40, 30:70] = np.linspace(0, 255, 40).astype(np.uint8)[None, :, None]
    found = np.zeros((1, 1, 64, 96), np.float32)
    found[0, 0, 22:38, 32:68] = 0.9
    seen: list[tuple[int, np.ndarray]] = []

    def run(index: int, x: np.ndarray) -> list[np.ndarray]:
        seen.append((index, x))
        return [[found], [np.array([0.0, 1.0], np.float32)], [np.zeros(3, np.float32)]][index]

    native = NativePipeline(
        document(
            [
                model("find", size=[64, 96]),
                model("direction", labels=["0", "180"], size=[20, 40]),
                model("read", size=[20, 40]),
            ],
            [{"model": "find"}, {"crop": {}}, {"model": "direction"},
             {"turn": {"model": "direction", "label": "180", "above": 0.9}}, {"model": "read"}],
        ),
        run,
    )  # fmt: skip
    native.run(png(pixels))
    assert [index for index, _ in seen] == [0, 1, 2]
    np.testing.assert_allclose(seen[2][1], seen[1][1][..., ::-1, ::-1], atol=1e-6)
    item = json.loads(native.answer(times=False))["answers"]["find"]["items"][0]
    corners = np.array(item["corners"]).reshape(4, 2)
    left, top, right, bottom = item["box"]
    np.testing.assert_allclose(
        corners, [[left, top], [right, top], [right, bottom], [left, bottom]], atol=0.02
    )
    quad = (left, top, left, bottom, right, bottom, right, top)
    size = (int(right - left), int(bottom - top))
    own = Image.fromarray(pixels).transform(
        size, Image.Transform.QUAD, quad, Image.Resampling.BILINEAR
    )
    want = np.asarray(own.resize((40, 20), Image.Resampling.BILINEAR))[..., 0] / 255
    # Pillow samples at the centres of pixels, this at their corners: half a pixel of a steep ramp
    assert np.abs(seen[1][1][0, 0] - want).mean() < 0.03


@pytest.mark.parametrize(
    ("stages", "why"),
    [
        ([{"crop": {}}], "no `models`"),
        ([{"model": "digits.lite", "read": {"kind": "poem"}}], "'poem' is not one of text"),
        ([{"model": "digits.lite", "size": 3}], "a stage has no 'size'"),
        ([{"rotate": {}}], "a stage is one of model, crop, turn"),
        ([{"model": "digits.lite"}, {"turn": {"model": "other"}}], "that is not there"),
        ([{"model": "digits.lite"}, {"model": "digits.lite"}], "two models are called"),
        ([{"crop": {}}, {"model": "digits.lite"}], "its first stage runs no model"),
        ([{"model": "digits.lite"}, {"crop": {"grow": 9}}], "`grow` is not a number from 0 to 4"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_wrong_pipeline_is_one_line(written, stages, why: str) -> None:
    path = written / "wrong.json"
    path.write_text(json.dumps({"stages": stages}))
    with pytest.raises(LiteError, match=why):
        Pipeline.open(path)


def test_a_damaged_pipeline_in_a_file_is_refused(written, photo, tmp_path) -> None:
    """Cut and flipped files: the runner prints one line, and stays."""
    whole = (written / "two.lite").read_bytes()
    rng = np.random.default_rng(0)
    path = tmp_path / "spoilt.lite"
    for index in range(12):
        spoilt = bytearray(whole)
        for at in rng.integers(0, 400 if index % 2 else len(whole), 3):
            spoilt[at] ^= 1 + int(rng.integers(0, 255))
        path.write_bytes(spoilt[: len(whole) // 2] if index == 0 else spoilt)
        done = subprocess.run(
            [str(runner_path()), str(path), "--image", str(photo)], capture_output=True, text=True,
            timeout=60,
        )  # fmt: skip
        assert done.returncode in (0, 1) and done.stderr.count("\n") <= 1, done.stderr


def test_the_verb_answers_draws_and_writes(written, photo, tmp_path, capsys) -> None:
    out, drawn = tmp_path / "again.lite", tmp_path / "drawn.png"
    code = main(["pipeline", str(written / "two.json"), "--image", str(photo), "--draw", str(drawn),
                 "-o", str(out)])  # fmt: skip
    said = capsys.readouterr().out
    assert code == 0 and "whole" in said and f"wrote {out}" in said
    assert out.read_bytes() == (written / "two.lite").read_bytes()
    with Image.open(drawn) as picture, Image.open(photo) as plain:
        assert picture.size == plain.size
        assert np.any(np.asarray(picture) != np.asarray(plain))


def test_the_shipped_models_read_the_receipt(tmp_path, qemu) -> None:
    """What lesson 10 shows, in Python and by the runner on both architectures."""
    read = {"kind": "regions", "unclip": 0.4}
    stages = [{"model": shipped("text_finder.onnx"), "name": "find",
               "preprocess": "unit,letterbox=255", "read": read}, {"crop": {}},
              {"model": shipped("ocr.onnx"), "name": "read",
               "preprocess": "letterbox=236"}]  # fmt: skip
    pipeline = Pipeline(stages, "receipt")
    found = [pipeline.run(shipped("receipt.png"))]
    file = pipeline.save(tmp_path / "receipt.lite", ["x86", "arm"])
    for prefix, arch in (([], host_arch()), (qemu, "aarch64")):
        words = [*prefix, runner_path(arch), file, "--image", shipped("receipt.png")]
        found.append(json.loads(ran(*words)))
    for answer in found:
        items = answer["answers"]["find"]["items"]
        texts = [item["answers"]["read"]["text"] for item in items]
        assert texts == ["TOTAL 128.40", "21-11-2026", "COFFEE 3.20"]


@pytest.mark.parametrize("target", ["host", "arm"])
def test_the_exported_application_is_built_from_its_folder_alone(
    written, photo, tmp_path, target: str, request
) -> None:
    prefix: list[str] = []
    compiler = "g++"
    if target == "arm" and host_arch() != "aarch64":
        prefix = [*request.getfixturevalue("qemu"), "-L", "/usr/aarch64-linux-gnu"]
        compiler = "aarch64-linux-gnu-g++"
    if not shutil.which(compiler):
        pytest.skip(f"no {compiler}; sudo apt-get install g++ g++-aarch64-linux-gnu")
    folder = tmp_path / "app"
    name = host_target() if target == "host" else target
    words = ["export", "--app", written / "two.json", "-o", folder, "--target", name]
    assert main([str(word) for word in words]) == 0
    program, drawn = folder / "photo", folder / "drawn.png"
    ran(compiler, "-std=c++17", "-Wall", "-Werror", folder / "app/app.cpp", f"-I{folder}/include",
        f"-L{folder}/lib", "-llite_runtime", "-Wl,-rpath,$ORIGIN/lib", "-o", program)  # fmt: skip
    got = json.loads(ran(*prefix, program, folder / "two.lite", photo, drawn))
    want = Pipeline.open(written / "two.lite")
    labels = [i["label"] for i in want.run(photo)["answers"]["whole"]["items"]]
    assert [i["label"] for i in got["answers"]["whole"]["items"]] == labels
    assert [s["name"] for s in got["times"]["stages"]] == ["whole", "center"]
    assert drawn.read_bytes() == want.drawn()
    assert (folder / "README.md").read_text().count("two.lite") >= 3
    frames = tmp_path / "frames"
    (frames / "4").mkdir(parents=True)
    for i, data in enumerate((photo.read_bytes(), b'no "image"', b"", photo.read_bytes())):
        (frames / f"{i}.jpg").write_bytes(data)
    (frames / "2.jpg").unlink()
    (frames / "2.jpg").symlink_to("gone.jpg")
    os.mkfifo(frames / "2a.jpg")  # who opens one waits for a writer
    (frames / "2b.jpg").symlink_to("2a.jpg")
    (frames / "2c.jpg").symlink_to(os.devnull)
    (frames / "4").chmod(0)
    lines = ran(*prefix, program, folder / "two.lite", "--stream", frames).splitlines()
    first, damaged, gone, last = map(json.loads, lines)
    assert [first["frame"], damaged["frame"], gone["frame"], last["frame"]] == [0, 1, 2, 3]
    assert first["answer"]["answers"] == last["answer"]["answers"] == got["answers"]
    assert first["latency_ms"] > 0 and "image" in damaged["error"]
    assert gone["error"] == "the image is empty or cannot be read"
    runner = runner_path("aarch64" if target == "arm" else host_arch())
    also = ran(*prefix, runner, folder / "two.lite", "--stream", frames).splitlines()
    assert [json.loads(x).get("error") for x in also] == [json.loads(x).get("error") for x in lines]
    with Stream(want) as running:
        told = [str(f.error or "") for f in feed(running, Frames(frames))]
    assert told == [json.loads(x).get("error", "") for x in lines]
    (frames / "4").chmod(0o700)
    usage = "error: usage: app two.lite PHOTO [DRAWN.png] | --stream FOLDER\n"
    for words in ([photo, drawn, "more"], ["--stream"], ["--stream", frames, "more"]):
        command = [*prefix, program, folder / "two.lite", *words]
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (1, usage)
    if target == "host":
        again = ran(sys.executable, "-S", folder / "app/app.py", folder / "lib/liblite_runtime.so",
                    folder / "two.lite", photo)  # fmt: skip
        assert json.loads(again)["answers"] == got["answers"]
