"""The code blocks of README, CONTRIBUTING and docs/, what they need to run, and which cannot."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from lite_engine import edit, load, optimize, write_onnx
from lite_engine.ir import DType, Graph, Value
from lite_workbench.cli import main

from tests.small_models import Builder
from tests.tools import missing_wasm

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "notebooks" / "models"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)

#: Commands that cannot run in a test, by how they begin, and why. They are still parsed.
NOT_RUN = {
    "make ": "it sets up this machine or runs these tests",
    "pip install": "it changes this environment or needs the network",
    "scripts/image.sh": "it needs docker, podman or buildah and the network",
    "docker run": "it serves until it is stopped",
    "pytest": "it runs these tests",
    "python -m tests.quantize.text_pictures": "the folder photos/ has to hold COCO's images",
    "python3 -m http.server": "it serves until it is stopped",
    "lite lab": "it serves until it is stopped; tests/workbench/test_lab_command.py",
    "lite devices setup emulated": "it needs the network",
    "lite devices add": "there is no board; tests/devices runs a server of ssh",
    "lite devices test board": "there is no board; tests/devices",
    "lite pipeline ocr.yaml": "there are no pages with labels; tests/pipeline has made ones",
    "lite evaluate ocr.yaml": "there are no pages with labels; tests/pipeline has made ones",
    "lite_run plates.lite --stream": "there are no frames; tests/pipeline/test_native_stream.py",
    "lite pipeline plates.yaml --stream": "there are no frames; tests/pipeline/test_stream.py",
    "lite tune pruned.lite": "the file that `lite prune` would write; tests/profile/test_forms.py",
    "lite prune model.onnx": "the pages' model is too small for sparse kernels; tests/workbench",
    "lite profile model.lite --device": "there is no board; tests/devices",
    "lite compare model.lite --backends reference,arm --devices": "no board; tests/devices",
    "lite compare model.lite --backends arm,opencl --device": "no board; tests/devices",
    "lite convert model.tflite --activations dynamic":
        "the pages' models have float weights; tests/importers/test_tflite_dynamic.py",
    "lite compare model.lite dynamic.lite": "the file that the command before it would write",
    "lite info inference": "a published model, which the project does not ship",
    "lite convert det1.prototxt": "a published model, which the project does not ship",
    "lite convert shufflenet/": "a published model, which the project does not ship",
    "lite run shufflenet.lite": "a published model, which the project does not ship",
    "lite quantize model.onnx --preprocess imagenet --shape x:1x3x640x640":
        "a published model, which the project does not ship",
    "lite evaluate model.lite --data /shared/imagenet": "tests/evaluate/test_cluster.py has one",
    "lite sweep model.lite --threads 1,2,4 --data photos/ --scheduler":
        "tests/evaluate/test_shards.py has one",
    "lite evaluate model.lite --data photos/ --mlflow https":
        "tests/evaluate/test_saved_runs.py has a store",
    "lite quantize model.onnx -o int8.lite --calibration photos/ --workers 8":
        "eight processes; tests/evaluate/test_shards.py",
    "lite evaluate model.lite --data photos/ --workers 8":
        "eight processes; tests/evaluate/test_cluster.py",
}  # fmt: skip
#: Python blocks that cannot run in a test, by what they have in them.
NOT_RUN_PYTHON = {
    "session.boards.add": "there is no board; tests/workbench and tests/devices have one",
    'lw.open("plates.yaml")': "there are no pages with labels; tests/pipeline has made ones",
    "session.set_labels": "the project's own models read images; tests/workbench/test_inputs.py",
    "%load_ext": "a notebook's; tests/notebooks runs this lesson",
}
#: What commands name that run only where lite.wasm was built.
WASM = ("--target web", "--backend wasm", "reference,wasm")
#: Pages whose blocks another test runs, with what they claim.
ELSEWHERE = {
    "docs/board.md": "tests/devices/test_walks.py",
    "docs/phone.md": "tests/devices/test_walks.py",
    "docs/edit.md": "tests/edit/test_page.py",
    "docs/backends.md": "tests/plugins/test_page.py",
    "docs/own_operators.md": "tests/plugins/test_custom_kernels.py",
}
#: Pages that take more than a dozen seconds; they run with `make test-long`.
LONG = {"docs/deploy.md", "docs/evaluate.md", "docs/quantization.md", "docs/workbench.md"}
#: The lessons run in `make test` as notebooks, and as pages with `make test-long`.
LESSONS = "docs/lessons/"


@dataclass(frozen=True)
class Step:
    """A piece that runs: Python or one command line."""

    language: str
    line: int
    text: str


def pages() -> list[Path]:
    named = [ROOT / name for name in ("README.md", "README.zh-CN.md", "CONTRIBUTING.md")]
    return [
        *named,
        *sorted((ROOT / "docs").glob("*.md")),
        *sorted((ROOT / "docs/lessons").glob("*.md")),
        *sorted((ROOT / "docs/zh").glob("*.md")),
    ]


def blocks(page: Path) -> Iterator[tuple[str, int, str]]:
    """(language, line, text) of each code block."""
    source = page.read_text(encoding="utf-8")
    for found in FENCE.finditer(source):
        yield found[1], source.count("\n", 0, found.start()) + 2, found[2]


def command_lines(body: str, line: int) -> Iterator[tuple[int, str]]:
    """Whole command lines, continued ones joined, without comments."""
    at = line
    for text in body.replace("\\\n", "\0").splitlines():
        if command := re.sub(r"\s*(^|\s)#.*", "", text.replace("\0", " ")).strip():
            yield at, " ".join(command.split())
        at += 1 + text.count("\0")


def why_not(command: str) -> str:
    """Why a command does not run here; "" where it does."""
    if any(mark in command for mark in WASM) and missing_wasm():
        return "lite.wasm is not built"
    return next((why for start, why in NOT_RUN.items() if command.startswith(start)), "")


def steps(page: Path) -> Iterator[tuple[Step, str]]:
    """What a page tells people to type, and why it does not run here ("" where it does)."""
    for language, line, body in blocks(page):
        if language in ("python", "py"):
            why = next((why for mark, why in NOT_RUN_PYTHON.items() if mark in body), "")
            yield Step("python", line, body), why
        elif language in ("", "sh", "bash", "console"):
            for at, command in command_lines(body, line):
                why = why_not(command)
                if command.split()[0] in ("lite", "lite_run", "lite_run_opencl") or why:
                    yield Step("command", at, command), why


# ---- the files that the pages speak of


def image_model(size: int, *, classes: int = 4) -> Graph:
    """A classifier of images called `image`, with layers that the pages name."""
    b = Builder((1, 3, size, size), "model")
    b.x.name = "image"
    y = b.add("Relu", b.conv(b.x, 3, 8, 3, name="conv5", strides=[2, 2]))
    y = b.add("Relu", b.conv(y, 8, 8, 3, name="dw", group=8))
    y = b.add("GlobalAveragePool", b.conv(y, 8, 16, 1, name="head"), name="pool")
    y = b.add("Gemm", b.add("Flatten", y), b.weights(128, 16), b.weights(128), transB=1)
    y = b.add("Gemm", b.add("Relu", y), b.weights(classes, 128), b.weights(classes), transB=1)
    y = b.add("Softmax", y, name="probability")
    return b.done(y)


def detector(rows: list[list[float]]) -> Graph:
    """Gives these rows of class, score and box for any image."""
    b = Builder((1, 3, 32, 32), "detector")
    nothing = b.add("Mul", b.add("ReduceMean", b.x, b.ints(1, 2, 3), keepdims=0), b.scalar(0))
    known = b.graph.constant(np.array(rows, np.float32))
    return b.done(b.add("Add", known, b.add("Reshape", nothing, b.ints(1, 1)), name="boxes"))


def photos(folder: Path, names: list[str]) -> None:
    from PIL import Image

    rng = np.random.default_rng(3)
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        small = rng.integers(0, 255, (6, 8, 3), dtype=np.uint8)
        Image.fromarray(small).resize((64, 48)).save(path)


def workplace(folder: Path) -> None:
    """Every file that a page takes for granted, made small."""
    write_onnx(image_model(32), folder / "model.onnx")
    write_onnx(image_model(224), folder / "mobilenet_v1.onnx")
    shutil.copy(folder / "model.onnx", folder / "float.onnx")
    shutil.copy(folder / "model.onnx", folder / "model.tflite")  # read by its contents
    optimize(folder / "model.onnx", targets=["x86", "arm", "opencl"]).save(folder / "model.lite")
    optimize(folder / "mobilenet_v1.onnx", targets=["x86", "opencl"]).save(folder / "m.lite")
    write_onnx(detector([[1, 0.9, 0.1, 0.2, 0.8, 0.9]]), folder / "detector.onnx")
    optimize(MODELS / "ocr.onnx", targets=["x86", "arm", "opencl"]).save(folder / "reader.lite")
    shutil.copy(MODELS / "digits.onnx", folder)
    norm = edit.extract(load(folder / "digits.onnx"), ["/b3/dw/Conv"], ["/b3/Relu"])
    write_onnx(norm, folder / "norm.onnx")
    photos(folder, ["photo.jpg", "cat.jpg", *(f"images/{i}.jpg" for i in range(6))])
    photos(folder, [f"calibration/{i}.jpg" for i in range(8)])
    classes = ("bird", "cat", "dog", "fish")
    photos(folder, [f"photos/{c}/{i}.jpg" for c in classes for i in range(1, 7)])
    photos(folder, [f"val/{i}.jpg" for i in range(8)])
    (folder / "val.txt").write_text("".join(f"{i}.jpg {i % 4}\n" for i in range(8)))
    for name in ("labels.txt", "words.txt", "classes.txt"):
        (folder / name).write_text("\n".join(classes))
    source, samples = (str(folder / name) for name in ("model.onnx", "calibration"))
    made = main(
        ["quantize", source, "--calibration", samples, "-o", str(folder / "quantized.lite")]
    )
    assert made == 0
    shutil.copy(folder / "quantized.lite", folder / "int8.lite")
    for language, _, body in blocks(ROOT / "docs/pipelines.md"):
        if language == "yaml" and (named := re.match(r"name: (\w+)", body)):
            (folder / f"{named[1]}.yaml").write_text(body)
    rng = np.random.default_rng(5)
    np.savez(folder / "texts.npz", image=rng.random((8, 3, 32, 32), np.float32))
    np.save(folder / "image.npy", np.zeros((1, 3, 32, 32), np.float32))
    relu = Graph("relu6")
    relu.inputs = [Value("x", DType.F32, ("n", 16, "h", "w"))]
    relu.outputs = [relu.add("Clip", relu.inputs, {"min": 0.0, "max": 6.0}).output]
    write_onnx(relu, folder / "relu6.onnx")
