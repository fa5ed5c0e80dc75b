"""Small good files for the native fuzz targets (native.py), made by our own writers."""

from __future__ import annotations

import io
import json
import struct
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine import optimize
from lite_engine.backends.cpu import native
from lite_engine.backends.cpu.custom import KERNEL
from lite_engine.backends.opencl.cases import cases
from lite_engine.backends.opencl.cases.graphs import conv
from lite_engine.backends.opencl.native_plan import encode_opencl
from lite_engine.backends.opencl.profile import PROFILES
from lite_engine.backends.opencl.registry import Target
from lite_engine.model_file._container import write_container
from lite_engine.model_file.plugin_programs import NAME_BYTES
from lite_engine.model_file.program_file import write_program_file
from lite_engine.model_file.writer import weight_sections
from lite_engine.plan import make_plan
from lite_engine.plan.program import WeightTable, encode
from lite_engine.quantize import quantize_weights
from PIL import Image

from tests.native.cases import merged, plans
from tests.native.tiny import one_step_plan
from tests.small_models import classifier

MOST_BYTES = 1 << 16
SOME_PROFILES = ("cpu, 8 lanes", "gpu", "adreno")


def by_kernel() -> Iterator[tuple[str, Any]]:
    """One small plan of each kernel."""
    seen: dict[str, list[Any]] = {}
    for plan in plans():
        if sum(t.nbytes for t in plan.tensors) < 4000:
            seen.setdefault(plan.steps[0].kernel, []).append(plan)
    for kernel, found in sorted(seen.items()):
        yield kernel, merged(found[:2])


def seeds(target: str, folder: Path) -> int:
    """Writes the seeds of a target and returns how many."""
    folder.mkdir(parents=True, exist_ok=True)
    if target == "npy":
        for i, array in enumerate((np.zeros((2, 3), np.float32), np.arange(6).reshape(2, 3))):
            np.save(folder / f"{i}.npy", array)
        np.save(folder / "wrong.npy", np.zeros((6, 1), np.float16))
    elif target == "image":
        image_seeds(folder)
    elif target == "sound":
        sound_seeds(folder)
    elif target == "stream":
        stream_seeds(folder)
    elif target == "outputs":
        output_seeds(folder)
    elif target == "pipeline":
        pipeline_seeds(folder)
        detector_seeds(folder)
    elif target == "opencl":
        opencl_seeds(folder)
    elif target == "program":
        for kernel, plan in by_kernel():
            (folder / kernel).write_bytes(encode(plan, WeightTable()))
    else:
        for kernel, plan in list(by_kernel())[::8]:
            write_program_file(plan, folder / f"{kernel}.lite", (native.target(),))
        model = optimize(classifier(), targets=["x86", "arm"])
        model.save(folder / "model.lite")
        for bits in (8, 16):
            small = model.but(graphs={}, source=quantize_weights(model.graph, bits))
            small.save(folder / f"weights{bits}.lite")
        backend_seeds(folder)
    return len(list(folder.iterdir()))


def backend_seeds(folder: Path) -> None:
    """Programs of a backend that the target has, and of one that it lacks, beside one for CPUs; a
    library and a kernel text, which stay closed."""
    x = np.ones((2, 3), np.float32)
    blob = np.arange(40, dtype=np.uint8)
    for name, fallback in (("fuzz", True), ("fuzz", False), ("other", True)):
        table = WeightTable()
        step = one_step_plan(f"backend::{name}", KERNEL, [blob, x], [x], {"n": 3}, [0])
        own = encode(step, table)
        plain = encode(one_step_plan("Relu", "f32_unary", [x], [x]), table)
        weights, index = weight_sections(table)
        sections: dict[str, list[bytes | memoryview]] = {
            "META": [b"{}"], "GRAPH": [b"{}"], "CLTEXT.0": [b"//@ kernel k\nkernel void k() {}"],
            "PLUG.0": [name.encode().ljust(NAME_BYTES, b"\0") + own],
        }  # fmt: skip
        if fallback:
            sections["PROG.x86"] = [plain]
        if name == "fuzz":
            sections["LIB0.x86"] = [b"\x7fELF" + bytes(60)]
        else:
            sections["CLTEXT.1"] = [b"no kernel"]
        write_container(
            folder / f"backend-{name}-{fallback}.lite",
            {**sections, "WINDEX": [index], "WEIGHTS": weights},
        )


def image_seeds(folder: Path) -> None:
    shades = np.arange(11 * 13 * 3, dtype=np.uint8).reshape(11, 13, 3)
    image = Image.fromarray(shades)
    for i, options in enumerate(
        ({}, {"progressive": True}, {"subsampling": 2}, {"subsampling": 1})
    ):
        image.save(folder / f"{i}.jpg", **options)
    exif = Image.Exif()
    exif[0x0112] = 6  # turned by a quarter
    image.save(folder / "parts.jpg", restart_marker_rows=1, exif=exif)
    image.convert("CMYK").save(folder / "adobe.jpg")
    image.save(folder / "stored.png", compress_level=0)
    for mode in ("RGB", "L", "P", "1", "LA"):
        image.convert(mode).save(folder / f"{mode}.png")
        if mode != "LA":
            image.convert(mode).save(folder / f"{mode}.bmp")


def stream_seeds(folder: Path) -> None:
    """Frames with bytes between them, a thumbnail, restarts, and pieces of four sizes."""
    frames = []
    for i in range(3):
        file = io.BytesIO()
        shades = np.full((9, 10, 3), 60 * i, np.uint8)
        Image.fromarray(shades).save(file, "JPEG", restart_marker_rows=i, progressive=i == 1)
        frames.append(file.getvalue())
    inner = b"Exif\0\0" + frames[0]
    thumbnail = b"\xff\xe1" + (len(inner) + 2).to_bytes(2, "big") + inner
    frames.append(frames[1][:2] + thumbnail + frames[1][2:])
    for i, between in enumerate((b"", b"--boundary\r\n\r\n", b"\xff", b"\xff\xd9")):
        stream = between.join([*frames[i:], *frames[:i], frames[0][:-9]])
        (folder / f"{i}.mjpeg").write_bytes(stream + bytes([0, 7, 63, 255]))


#: Before dims: the output holds whole numbers.
WHOLE = -1
#: What models take, and how an image becomes it.
INPUTS: tuple[dict[str, Any], ...] = (
    {"dtype": "f32"}, {"dtype": "u8"}, {"dtype": "i8", "scale": 0.0078125, "zero_point": -1},
)  # fmt: skip
PREPARED: tuple[dict[str, Any], ...] = (
    {}, {"colour": "bgr", "mean": [104, 117, 123]}, {"colour": "grey", "mean": [1], "std": [255]},
    {"fit": "crop", "crop": 0.9, "layout": "nhwc", "mean": [127.5], "std": [127.5, 1, 2]},
    {"fit": "height", "pad": 3}, {"fit": "stretch", "mean": [0]},
)  # fmt: skip


def pipeline_seeds(folder: Path) -> None:
    """Pipelines of each reading with a crop and a turn, and bytes for the outputs."""
    plain: list[tuple[dict[str, Any], list[int]]] = [
        ({"kind": kind} if kind else {}, [1, 1, 10, 12])
        for kind in ("", "text", "top", "boxes", "mask", "regions")
    ]
    boxes: dict[str, Any] = {"kind": "boxes", "threshold": 0.1, "anchors": [[1, 2]], "bins": 2}
    points = {"kind": "keypoints", "points": 2, "threshold": 0.1}
    heads = [
        ({**boxes, "decode": "yolov3"}, [1, 8, 2, 2]),
        ({**boxes, "decode": "yolov5"}, [1, 2, 2, 8]),
        ({**boxes, "decode": "yolov8"}, [1, 11, 4, 4]),
        ({**boxes, "decode": "yolox", "strides": [2]}, [1, 4, 8]), (points, [1, 2, 5, 5]),
        ({**boxes, "decode": "nanodet", "strides": [2, 4]}, [1, 5, 11]),
        (points, [1, 9, 11]), (points, [1, 3, 11]), (points, [1, 1, 2, 3]), (points, [1, 6]),
        ({**boxes, "decode": "yolov5"}, [1, 1, 2, 2, 8]),
        ({**boxes, "decode": "yolov5"}, [1, 2, 2, 1, 8]),
        ({**boxes, "decode": "yolov5"}, [1, 1, 8, 2, 2]),
        ({"kind": "vector", "gallery": [[1, 2, 3], [0, 0, 1]]}, [1, 3]),
        ({"kind": "image"}, [1, 3, 10, 10]),
        ({"kind": "mask", "colors": [[1, 2, 3]]}, [1, 3, 10, 10]),
        ({"kind": "mask"}, [WHOLE, 1, 10, 12]), ({"kind": "mask"}, [WHOLE, 1, 1, 9, 9]),
        ({"kind": "top"}, [1, 1, 1, 7]), ({"kind": "top"}, [2, 5]), (boxes, [2, 4, 6]),
    ]  # fmt: skip
    for i, (read, dims) in enumerate(plain + heads):
        given = {**INPUTS[i % len(INPUTS)], "batch": 2 if dims[0] == 2 else 1}
        size = {"size": [4, 4 if i >= len(plain) else 5]}
        model = {"section": "MODEL.0", "input": given, "outputs": [{}] * (2 if i == 3 else 1),
                 "preprocess": {"fit": "letterbox", **PREPARED[i % len(PREPARED)], **size},
                 "labels": ["a", "b", "-", "\u00e9\u4e2d\U0001f40c"],
                 "widths": [2, 4] if PREPARED[i % len(PREPARED)].get("fit") == "height" else [],
                 "read": read}  # fmt: skip
        stages = [{"model": "m"}, {"crop": {"grow": 0.1}}, {"model": "n"},
                  {"turn": {"model": "n", "label": "a", "above": 0}}]  # fmt: skip
        whole = {"format": 1, "models": [{**model, "name": "m"}, {**model, "name": "n"}],
                 "stages": stages}  # fmt: skip
        whole_numbers = dims[0] == WHOLE
        dims = dims[whole_numbers:]
        shape = bytes([0, len(dims) - 1 + 15 * whole_numbers, *dims])  # one output
        data = shape + bytes(60 if (i // 7) % 2 else 3 for i in range(120))
        if read.get("kind") == "boxes" and i == 3:  # four classes and four weights of prototypes
            data = bytes([1, 2, 1, 13, 12, *[60] * 156, 3, 1, 4, 3, 3, *[40] * 36])
        (folder / f"{i}-{read.get('kind', 'guessed')}").write_bytes(
            json.dumps(whole).encode() + b"\0" + data * 3
        )


def sound_seeds(folder: Path) -> None:
    """WAV files of each width, for a model that hears all or a part of them."""
    features = {"rate": 8000, "samples": 200, "window": 64, "stride": 32, "filters": 8, "low": 20,
                "high": 3000, "coefficients": 4}  # fmt: skip
    model = {"name": "m", "section": "MODEL.0", "input": {"dtype": "f32"}, "outputs": [{}],
             "features": features, "labels": ["a", "b"], "read": {"kind": "top"}}  # fmt: skip
    whole = {"format": 1, "input": "sound", "models": [model], "stages": [{"model": "m"}]}
    text = json.dumps(whole).encode() + b"\0"
    for bits, form in ((8, 1), (16, 1), (24, 1), (32, 1), (32, 3)):
        data = bytes(range(100)) * (bits // 8)
        block = bits // 8
        head = struct.pack("<HHIIHH", form, 1, 8000, 8000 * block, block, bits)
        body = b"WAVEfmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", len(data))
        riff = b"RIFF" + struct.pack("<I", len(body) + len(data)) + body + data
        (folder / f"{bits}-{form}").write_bytes(text + riff)


def output_seeds(folder: Path) -> None:
    """Every adapter of the pipelines' seeds, for outputs without a pipeline."""
    made = folder.parent / "pipelines"
    made.mkdir(exist_ok=True)
    pipeline_seeds(made)
    detector_seeds(made)
    for path in made.iterdir():
        text, _, numbers = path.read_bytes().partition(b"\0")
        model = json.loads(text)["models"][0]
        how = {"labels": model["labels"], "read": model["read"], "outputs": model["outputs"],
               "placed": [4, 4, 4, 3, 0, 0], "picture": [9, 7]}  # fmt: skip
        (folder / path.name).write_bytes(json.dumps(how).encode() + b"\0" + numbers)


SUPPRESSIONS = ("hard", "diou", "weighted", "soft-linear", "soft-gaussian", "matrix-linear",
                "matrix-gaussian")  # fmt: skip


def detector_seeds(folder: Path) -> None:
    """Outputs of detectors that are read without `decode`; values are 64ths."""
    corners, row = [5, 6, 40, 50], [64, 40, 5, 6, 40, 50]
    forms = {
        "tflite": [([1, 2, 4], corners * 2), ([1, 2], [0, 64]), ([1, 2], [60, 50]), ([1], [127])],
        "paddle": [([2, 6], row * 2)], "caffe": [([1, 1, 2, 7], [0, *row] * 2)],
        "ssd": [([1, 2, 4], corners * 2), ([1, 2, 3], [1, 60, 2, 3, 50, 4])],
        "yolo": [([1, 9, 8], [20, 20, 9, 9, 60, 60, 5, 6] * 9)],
        "fcos": [([1, 3, 2, 2], [60] * 12), ([1, 4, 2, 2], [60] * 16), ([1, 1, 2, 2], [9] * 4)],
    }  # fmt: skip
    for name, outputs in forms.items():
        model = {"name": "m", "section": "MODEL.0", "input": {"dtype": "f32"},
                 "outputs": [{}] * len(outputs), "preprocess": {"size": [4, 4]},
                 "labels": ["a", "b", "c"], "read": {"kind": "boxes"}}  # fmt: skip
        if name == "fcos":
            model["read"] = {"kind": "boxes", "decode": "fcos"}
        data = bytes([len(outputs) - 1])
        for dims, values in outputs:
            data += bytes([len(dims) - 1, *dims, *values])
        for nms in SUPPRESSIONS if name == "yolo" else ("hard",):
            model["read"] |= {"nms": nms, "agnostic": nms < "m", "sigma": 0.5}
            whole = {"format": 1, "models": [model], "stages": [{"model": "m"}]}
            (folder / f"detector-{name}-{nms}").write_bytes(
                json.dumps(whole).encode() + b"\0" + data
            )


def opencl_seeds(folder: Path) -> None:
    """The OpenCL part of small plans for kinds of devices, behind the sizes of their weights."""
    graphs = [(f"{kernel}{i}", g) for kernel, own in cases().items() for i, g in enumerate(own[:2])]
    graphs.append(("winograd", conv((1, 32, 12, 12), 32, 3)))
    for (name, graph), profile in product(graphs, SOME_PROFILES):
        precision = "fp32" if profile.startswith("cpu") else "fp16"
        table = WeightTable()
        target = Target(PROFILES[profile])
        plan = make_plan(graph, "opencl", precision=precision)
        data = encode_opencl(plan, target, table, ways=2)
        sizes = [np.ascontiguousarray(blob).nbytes for blob in table.blobs]
        head = struct.pack(f"<B{len(sizes)}I", len(sizes), *sizes)
        if len(head + data) < MOST_BYTES and max(sizes, default=0) < MOST_BYTES:
            (folder / f"{name}-{profile.split(',')[0]}").write_bytes(head + data)
