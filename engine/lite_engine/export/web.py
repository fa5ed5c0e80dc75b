"""A folder that runs a model in a web page, from any static server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from lite_messages import tr

from .._native import web_module_path
from ..errors import TargetMismatchError
from ..files import write_file
from ..model_file import Model, read_model
from ..model_file.web_view import image_input

TARGET = "web"
_SOURCES = Path(__file__).parent / "web"
README = "../web/README.md"  # from the templates
#: What each file is, for people; in the order of the page's own needs.
WHAT = {
    "index.html": tr("the page"),
    "page.js": tr("what the page does"),
    "page.css": tr("how the page looks"),
    "lite.js": tr("runs models, for your own page"),
    "lite.d.ts": tr("types of lite.js"),
    "image.js": tr("turns images into inputs"),
    "answer.js": tr("reads outputs"),
    "lite.wasm": tr("the runtime as WebAssembly"),
    "model.json": tr("name, preprocessing and labels"),
}


def fill_web(model: Model, folder: Path) -> None:
    """Writes everything but the README. Raises BackendUnavailableError when the module was not
    built, TargetMismatchError for a model that needs Python."""
    module = web_module_path()
    made = model.but(targets=["wasm"]).save(folder / "model.lite")
    written = read_model(made)
    if note := written.metadata.get("notes", {}).get("wasm"):
        raise TargetMismatchError(
            tr("{model} cannot run in a page: {note}", model=model.name, note=note)
        )
    for name in WHAT:
        if name not in ("lite.wasm", "model.json"):
            write_file(folder / name, (_SOURCES / name).read_text(encoding="utf-8"))
    shutil.copyfile(module, folder / "lite.wasm")
    about = {
        "name": model.name, "file": made.name, "preprocess": image_input(model),
        "labels": model.metadata.get("labels") or [],
    }  # fmt: skip
    write_file(folder / "model.json", json.dumps(about, ensure_ascii=False, indent=1) + "\n")
