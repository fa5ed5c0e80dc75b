"""Folders that run a model or a pipeline in a web page, from any static server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from lite_messages import tr

from .._native import web_module_path
from ..files import write_file
from ..model_file import Model
from ..pipeline import Pipeline

TARGET = "web"
#: What the CPU's programs of a page are called in a model's file.
MODULE = "wasm"
#: Beside lite.wasm.
THREADS = "lite_threads.wasm"
_SOURCES = Path(__file__).parent / "web"
README = "../web/README.md"  # from the templates
PIPELINE_README = "../web/pipeline_README.md"
_FILES = ("page.css", "parts.js", "found.js", "lite.js", "lite.d.ts", "thread.js")
#: What each file is, for people.
WHAT = {
    "index.html": tr("the page"),
    "page.js": tr("what the page does"),
    "pipeline.js": tr("what the page does"),
    "page.css": tr("how the page looks"),
    "parts.js": tr("what the page does"),
    "found.js": tr("an answer as a table, an image as a file"),
    "lite.js": tr("runs models and pipelines, for your own page"),
    "lite.d.ts": tr("types of lite.js"),
    "lite.wasm": tr("the runtime as WebAssembly"),
    "lite_threads.wasm": tr("with threads, for pages isolated from other origins"),
    "thread.js": tr("what a thread does"),
    "model.json": tr("name and file of the model"),
    "pipeline.json": tr("name and file of the pipeline"),
}


def fill_web(model: Model, folder: Path, module: Path | None = None) -> Path:
    """Writes everything but the README, with a runtime `module` in place of the whole one, and
    returns the model's file. Raises BackendUnavailableError when the module was not built."""
    made = model.but(targets=[MODULE]).save(folder / "model.lite")
    _fill(folder, "page", module, "model.json", {"name": model.name, "file": made.name})
    return made


def fill_pipeline(pipeline: Pipeline, folder: Path, module: Path | None = None) -> Path:
    """The same for a pipeline; its page answers images, or sounds."""
    made = pipeline.for_targets([MODULE]).save(folder / f"{pipeline.name}.lite")
    about = {"name": pipeline.name, "file": made.name, "sound": pipeline.hears}
    _fill(folder, "pipeline", module, "pipeline.json", about)
    return made


def _fill(folder: Path, kind: str, module: Path | None, named: str, about: dict[str, Any]) -> None:
    """The page with the body and the script of its kind, and what they use."""
    page, body = (_text(name) for name in ("page.html", f"{kind}_body.html"))
    page = page.replace("@BODY@\n", body).replace("@SCRIPT@", f"{kind}.js")
    write_file(folder / "index.html", page)
    for name in (f"{kind}.js", *_FILES):
        write_file(folder / name, _text(name))
    both = (web_module_path(threads=t) for t in (False, True))
    for source in (module, module.with_name(THREADS)) if module else both:
        shutil.copyfile(source, folder / source.name)
    write_file(folder / named, json.dumps(about, ensure_ascii=False, indent=1) + "\n")


def _text(name: str) -> str:
    return (_SOURCES / name).read_text(encoding="utf-8")
