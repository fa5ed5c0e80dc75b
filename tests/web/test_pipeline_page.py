"""A pipeline's exported page in headless Chromium: its JSON is Python's, and it draws it."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lite_engine._native import web_module_path
from lite_engine.errors import UsageError
from lite_engine.export import export_application
from lite_engine.pipeline import Pipeline
from PIL import Image

from tests.pipeline.test_real import same, stages
from tests.small_models import classifier
from tests.web.served import Served

pytestmark = [pytest.mark.wasm, pytest.mark.browser]
#: The bytes of a file in base64 → what the page answers.
RUN = """async (text) => {
  const bytes = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
  return JSON.stringify(await globalThis.lite.run(bytes));
}"""
DRAWN = """() => {
  const canvas = document.getElementById("picture");
  const { width, height } = canvas;
  const { data } = canvas.getContext("2d").getImageData(0, 0, width, height);
  return { width, height, data: Array.from(data) };
}"""


@pytest.fixture
def serve(open_folder: Callable[[Path], Served], tmp_path: Path) -> Callable[..., Served]:
    def serve(pipeline: Pipeline, **options: Any) -> Served:
        return open_folder(export_application(pipeline, tmp_path / "web", "web", **options).folder)

    return serve


def answered(served: Served, file: Path) -> dict[str, Any]:
    text = base64.b64encode(file.read_bytes()).decode()
    made: dict[str, Any] = json.loads(served.page.evaluate(RUN, text))
    return made


def drawn(served: Served) -> np.ndarray:
    made = served.page.evaluate(DRAWN)
    return np.array(made["data"], np.uint8).reshape(made["height"], made["width"], 4)[..., :3]


def photo(folder: Path) -> Path:
    pixels = np.random.default_rng(6).integers(0, 256, (45, 61, 3), np.uint8)
    Image.fromarray(pixels).save(folder / "photo.png")
    return folder / "photo.png"


def two_stages(root: Path) -> tuple[Pipeline, Path]:
    """The project's own finder and reader of text, and a receipt."""
    models = root / "notebooks" / "models"
    stages = [
        {"model": models / "text_finder.onnx", "name": "find"},
        {"crop": {}},
        {"model": models / "ocr.onnx", "name": "read"},
    ]
    return Pipeline(stages, "two"), models / "receipt.png"


def test_its_json_is_pythons(serve: Any, root: Path) -> None:
    pipeline, file = two_stages(root)
    want = pipeline.run(file, "x86")
    assert len(want["answers"]["find"]["items"]) > 1
    served = serve(pipeline)
    got = answered(served, file)
    assert got["image"] == want["image"] and got["pipeline"] == want["pipeline"]
    same(got["answers"], want["answers"])
    assert [s["name"] for s in got["times"]["stages"]] == ["find", "crop", "read"]
    np.testing.assert_array_equal(
        drawn(served), np.asarray(Image.open(io.BytesIO(pipeline.drawn())))
    )
    page = served.page
    page.locator("#answer", has_text="find 2 → read").wait_for()
    page.click("text=JSON")
    shown = json.loads(page.locator("#json").inner_text())
    assert shown == {k: v for k, v in got.items() if k != "times"}


def test_files_of_every_kind(serve: Any, tmp_path: Path) -> None:
    """What the runtime does not read comes from the browser's own decoder, pixel for pixel."""
    pipeline = Pipeline([{"model": classifier(), "name": "m"}], "one")
    file = photo(tmp_path)
    want = pipeline.run(file, "x86")["answers"]["m"]["items"]
    served = serve(pipeline)
    Image.open(file).save(tmp_path / "photo.webp", lossless=True)
    (tmp_path / "bad.png").write_bytes(b"no image")
    for name in ("photo.png", "photo.webp"):
        served.page.evaluate("() => { document.getElementById('json').textContent = ''; }")
        served.page.set_input_files("#file", str(tmp_path / name))
        served.page.wait_for_selector("#json:not(:empty)", state="attached")
        shown = json.loads(served.page.locator("#json").text_content())
        items = shown["answers"]["m"]["items"]
        assert [i["label"] for i in items] == [i["label"] for i in want]
        scores = [i["score"] for i in items]
        assert scores == pytest.approx([i["score"] for i in want], rel=1e-4)
    served.page.set_input_files("#file", str(tmp_path / "bad.png"))
    served.page.locator("#status.bad", has_text="bad.png: the image").wait_for()
    # no answer to the image before
    assert served.page.locator("#json:not(:empty), #answer tr, #picture:visible").count() == 0


def test_a_single_model_is_no_pipeline(serve: Any) -> None:
    served = serve(Pipeline([{"model": classifier(), "name": "m"}], "one"))
    told = served.page.evaluate(
        """async () => { const { loadRuntime } = await import("./lite.js");
        const runtime = await loadRuntime();
        try { runtime.openPipeline(new Uint8Array(100)); }
        catch (error) { return error.message; } }"""
    )
    assert "not a .lite file" in told


def test_what_a_page_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not one of arm, x86, web"):
        export_application(
            Pipeline([{"model": classifier(), "name": "m"}]), tmp_path / "x", "board"
        )


@pytest.mark.slow
@pytest.mark.hours  # a minute of zig; tests/export has a trimmed module of one model
def test_a_trimmed_module(serve: Any, tmp_path: Path, monkeypatch: Any, root: Path) -> None:
    monkeypatch.setenv("LITE_CACHE_DIR", str(root / "build"))
    pipeline, file = two_stages(root)
    served = serve(pipeline, trimmed=True)
    same(answered(served, file)["answers"], pipeline.run(file, "x86")["answers"])
    size = (tmp_path / "web" / "lite.wasm").stat().st_size
    assert size < 0.6 * web_module_path().stat().st_size


@pytest.mark.models
@pytest.mark.sweep
@pytest.mark.parametrize("name", ["objects", "faces", "plate", "keyword", "ocr"])
def test_real_models(serve: Any, name: str, models_dir: Path) -> None:
    made, file = stages(name, models_dir)
    pipeline = Pipeline(made, name)
    want = pipeline.run(file, "x86")["answers"]
    same(answered(serve(pipeline), file)["answers"], want)
