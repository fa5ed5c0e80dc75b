"""Writes *Try it here*, a page on which the reader's browser runs the models, without a server.

try_page.py [FOLDER]     default: site/try
"""

from __future__ import annotations

import argparse
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
#: What the page offers: title, shipped model, shipped image.
SHIPPED = (
    ("Digits", "digits.onnx", "digits.png"),
    ("Text lines (OCR)", "ocr.onnx", "ocr_date.png"),
)
#: The model with a planted fault: a convolution of it and what the page calls it.
FAULTY = ("digits", "/b3/pw/Conv", "Digits, one layer of it wrong")
INTRO = (
    "The models run in this browser: the runtime is WebAssembly, nothing is sent anywhere. Choose "
    "a model, or open an image or a .lite file that lite convert wrote with --targets wasm. The "
    "answer, the times of every layer and the roofline are this browser's; layers are compared "
    "with recorded values of the NumPy reference."
)


def write_try(folder: Path) -> Path:
    """The page and what it fetches, in one folder for any static server."""
    import lite_workbench as lw
    from lite_engine import __version__
    from lite_engine.model_file import optimize
    from lite_workbench.report.live import (
        live_section,
        record_values,
        save_for_pages,
        write_runtime,
    )
    from lite_workbench.report.page import page

    folder.mkdir(parents=True, exist_ok=True)
    models: list[dict[str, Any]] = []
    for title, file, image in SHIPPED:
        session = lw.open(lw.shipped(file))
        session.set_input(lw.shipped(image))
        stem = Path(file).stem
        model = optimize(session.graph)
        save_for_pages(model, folder / f"{stem}.lite")
        shutil.copyfile(lw.shipped(image), folder / image)
        values = record_values(model, session.feeds, folder, stem)
        models.append({"title": title, "file": f"{stem}.lite", "image": image, "values": values})
        if stem == FAULTY[0]:
            name = f"{stem}_faulty.lite"
            save_for_pages(spoiled(model, FAULTY[1]), folder / name)
            models.append({"title": FAULTY[2], "file": name, "image": image, "values": values})
    config = {**write_runtime(folder), "models": models, "drop": True}
    made = page("Try it here", f"Lite Workbench {__version__}", [live_section(INTRO)], config)
    path = folder / "index.html"
    path.write_text(made, "utf-8")
    return path


def spoiled(model: Any, layer: str) -> Any:
    """The model with the weights of one layer's first and last filter swapped."""
    out = model.but()
    out.graph = model.graph.copy()
    node = out.graph.node(layer)
    weights = np.array(node.inputs[1].const)
    weights[[0, -1]] = weights[[-1, 0]]
    node.set_input(1, out.graph.constant(weights))
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "site" / "try")
    write_try(parser.parse_args().folder)


if __name__ == "__main__":
    sys.exit(main())
