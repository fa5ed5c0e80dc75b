"""An exported folder, served by a plain server, in headless Chromium: answers, times, requests."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_engine import Predictor, optimize
from lite_engine.export import export_model
from lite_engine.importers import load
from lite_engine.ir import DType, Graph, Value
from lite_engine.model_file import Model
from lite_engine.pipeline import Pipeline
from PIL import Image

from tests.small_models import classifier
from tests.web.served import Served

pytestmark = [pytest.mark.wasm, pytest.mark.browser]
MODELS = {
    "plates": "lprnet_plate_ocr/DERIVED_lprnet.onnx",
    "detector": "tflite/ssd_mobilenet_v1_coco_quant.tflite",
    "faces": "ultraface_rfb320/version-RFB-320.onnx",
}
RUN = """async (inputs) => {
  const given = Object.fromEntries(Object.entries(inputs).map(([name, { kind, data }]) =>
    [name, new globalThis[kind](data)]));
  const outputs = Object.values(globalThis.lite.model.run(given));
  return outputs.map(({ name, shape, data }) => ({ name, shape, data: Array.from(data, Number) }));
}"""
KINDS = {"float32": "Float32Array", "uint8": "Uint8Array", "int8": "Int8Array"}


@pytest.fixture
def serve(open_folder: Callable[[Path], Served], tmp_path: Path) -> Callable[..., Served]:
    def serve(made: Graph | Model, **options: Any) -> Served:
        model = optimize(made) if isinstance(made, Graph) else made
        return open_folder(export_model(model, tmp_path / "web", "web").folder, **options)

    return serve


def agrees(served: Served, graph: Graph, inputs: dict[str, np.ndarray]) -> None:
    """Every output as the NumPy reference has it, within 1e-5 of the largest value."""
    given = {
        name: {"kind": KINDS[str(a.dtype)], "data": a.ravel().tolist()}
        for name, a in inputs.items()
    }
    made = {o["name"]: o for o in served.page.evaluate(RUN, given)}
    wanted = Predictor(optimize(graph), "reference").run(inputs)
    assert made.keys() == wanted.keys()
    for name, array in wanted.items():
        assert tuple(made[name]["shape"]) == array.shape
        limit = 1e-5 * max(float(np.abs(array).max()), 1.0)
        np.testing.assert_allclose(np.reshape(made[name]["data"], array.shape), array, 0, limit)


def random_inputs(graph: Graph) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(3)
    out = {}
    for value in graph.inputs:
        dtype = value.dtype.np
        if dtype.kind == "f":
            out[value.name] = rng.uniform(-1, 1, value.shape).astype(dtype)
        else:
            out[value.name] = rng.integers(0, 100, value.shape).astype(dtype)
    return out


def test_a_page_answers_as_the_reference(serve: Any) -> None:
    graph = classifier()
    served = serve(graph)
    agrees(served, graph, random_inputs(graph))
    served.page.click("#again")
    served.page.locator("#times", has_text="of 10 runs").wait_for()
    served.page.click("summary")
    served.page.locator("#layers", has_text="simd128").wait_for()


def test_an_image_is_prepared_run_and_shown(serve: Any, tmp_path: Path) -> None:
    graph = classifier()
    served = serve(graph)
    Image.new("RGB", (50, 40), (200, 30, 60)).save(tmp_path / "red.png")
    served.page.set_input_files("#file", str(tmp_path / "red.png"))
    served.page.wait_for_selector("#times:not(:empty)")
    served.page.locator("#answer tr").nth(1).wait_for()


RUN_FILE = """async (text) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return JSON.stringify((await globalThis.lite.run(bytes)).answers);
}"""


def test_the_answer_is_that_of_the_pipeline(serve: Any, tmp_path: Path) -> None:
    """With the labels and the adapter that travel with the model: one reading everywhere."""
    graph = classifier()
    model = optimize(graph)
    model.metadata |= {
        "preprocess": {"mean": [127.5], "std": [127.5]}, "labels": [*"abcdefghij"],
        "adapter": {"kind": "top", "top": 3, "softmax": True},
    }  # fmt: skip
    photo = tmp_path / "photo.png"
    pixels = np.random.default_rng(4).integers(0, 256, (45, 61, 3), np.uint8)
    Image.fromarray(pixels).save(photo)
    served = serve(model)
    got = json.loads(served.page.evaluate(RUN_FILE, b64encode(photo.read_bytes()).decode()))
    want = Pipeline([{"model": model, "name": model.name}]).run(photo, "x86")["answers"]
    (mine,), (known,) = got.values(), want.values()
    assert [i["label"] for i in mine["items"]] == [i["label"] for i in known["items"]]
    scores = [i["score"] for i in mine["items"]]
    assert len(scores) == 3
    assert scores == pytest.approx([i["score"] for i in known["items"]], rel=1e-4)
    first = served.page.locator("#answer tr").first.inner_text().split()[0]
    assert first == known["items"][0]["label"]


def test_a_model_without_an_image_shows_ranges(serve: Any) -> None:
    graph = Graph("numbers")
    graph.inputs = [Value("x", DType.F32, (1, 4))]
    graph.outputs = [graph.add("Relu", graph.inputs, {}, name="r").output]
    served = serve(optimize(graph))
    assert served.page.locator("#file").is_hidden()
    served.page.click("#again")
    served.page.locator("#ranges tr", has_text="f32 1×4").wait_for()


def test_a_file_without_a_program_says_why(serve: Any) -> None:
    served = serve(classifier())
    told = served.page.evaluate(
        """async () => { const { loadRuntime } = await import("./lite.js");
        const runtime = await loadRuntime();
        try { runtime.open(new Uint8Array(100)); } catch (error) { return error.message; } }"""
    )
    assert "not a .lite file" in told


THREADS = """async (threads) => {
  const { fetchBytes, loadRuntime } = await import("./lite.js");
  const runtime = await loadRuntime(undefined, { threads });
  const model = runtime.open(await fetchBytes("model.lite"));
  const data = Float32Array.from({ length: 3 * 20 * 20 }, (_, i) => Math.sin(i));
  const answers = [];
  for (let run = 0; run < 50; ++run)
    answers.push(String(Object.values(model.run({ x: data }))[0].data));
  const { threads: used, steps, run_ms } = model.times();
  runtime.close();
  return { threads: runtime.threads, used, answers: [...new Set(answers)], run_ms,
    order: steps.every(({ ms }) => ms >= 0) };
}"""


def test_threads_of_an_isolated_page(serve: Any) -> None:
    """Three threads give, run after run, the bits of one; a page that is not isolated has one."""
    served = serve(classifier(), isolated=True)
    assert served.page.evaluate("crossOriginIsolated")
    one, three = (served.page.evaluate(THREADS, n) for n in (1, 3))
    assert (one["threads"], three["threads"]) == (one["used"], three["used"]) == (1, 3)
    assert len(one["answers"]) == 1 and three["answers"] == one["answers"]
    assert three["order"] and three["run_ms"] > 0
    fetched = {url.rsplit("/", 1)[1] for url in served.requests}
    assert {"lite.wasm", "lite_threads.wasm", "thread.js"} <= fetched


def test_a_page_that_is_not_isolated_has_one_thread(serve: Any) -> None:
    served = serve(classifier())
    assert served.page.evaluate(THREADS, 3)["used"] == 1
    assert not any("threads" in url or "thread.js" in url for url in served.requests)


@pytest.mark.models
@pytest.mark.sweep
@pytest.mark.parametrize("name", MODELS)
def test_real_models(serve: Any, name: str, models_dir: Path) -> None:
    graph = load(models_dir / MODELS[name])
    served = serve(graph)
    agrees(served, graph, random_inputs(graph))
