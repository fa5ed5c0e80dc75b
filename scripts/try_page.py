"""Writes *Try it here*, a page on which the reader's browser runs the models, without a server.

try_page.py [FOLDER]     default: site/try
"""

from __future__ import annotations

import argparse
import html
import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).parent.parent
#: What the page offers: shipped model, shipped image.
SHIPPED = (("digits.onnx", "digits.png"), ("ocr.onnx", "ocr_date.png"))
#: The model with a planted fault: a convolution of it and the name of its file.
FAULTY = ("digits", "/b3/pw/Conv", "digits_faulty")


@dataclass(frozen=True)
class Texts:
    """What this page says in a language, beside the widgets; `models` by the stem of the file."""

    file: str
    name: str
    title: str
    intro: str
    models: dict[str, str]


TEXTS = {
    "en": Texts(
        "index.html", "English", "Try it here",
        "The models run in this browser: the runtime is WebAssembly, nothing is sent anywhere. "
        "Choose a model, or open an image or a .lite file that lite convert wrote with --targets "
        "wasm. The answer, the times of every layer and the roofline are this browser's; layers "
        "are compared with recorded values of the NumPy reference.",
        {"digits": "Digits", "digits_faulty": "Digits, one layer of it wrong",
         "ocr": "Text lines (OCR)"},
    ),
    "zh": Texts(
        "zh.html", "简体中文", "在线试用",
        "模型在此浏览器中运行：运行时为 WebAssembly，不会向任何地方发送数据。请选择模型，"
        "或打开图像，或打开由 lite convert --targets wasm 生成的 .lite 文件。"
        "预测结果、各层耗时和 roofline 均为此浏览器的实测值；"
        "各层输出与预先记录的 NumPy 参考值进行对比。",
        {"digits": "数字识别", "digits_faulty": "数字识别（其中一层有错误）",
         "ocr": "文本行识别（OCR）"},
    ),
}  # fmt: skip


def write_try(folder: Path) -> Path:
    """The page in each language and what it fetches, in one folder for any static server."""
    import lite_workbench as lw
    from lite_engine.model_file import optimize
    from lite_workbench.report.live import record_values, save_for_pages, write_runtime

    folder.mkdir(parents=True, exist_ok=True)
    models: list[dict[str, Any]] = []
    for file, image in SHIPPED:
        session = lw.open(lw.shipped(file))
        session.set_input(lw.shipped(image))
        stem = Path(file).stem
        model = optimize(session.graph)
        save_for_pages(model, folder / f"{stem}.lite")
        shutil.copyfile(lw.shipped(image), folder / image)
        values = record_values(model, session.feeds, folder, stem)
        models.append({"title": stem, "file": f"{stem}.lite", "image": image, "values": values})
        if stem == FAULTY[0]:
            name = f"{FAULTY[2]}.lite"
            save_for_pages(spoiled(model, FAULTY[1]), folder / name)
            models.append({"title": FAULTY[2], "file": name, "image": image, "values": values})
    config = {**write_runtime(folder), "models": models, "drop": True}
    for language in TEXTS:  # a process has one language
        subprocess.run(
            [sys.executable, str(Path(__file__).resolve()), str(folder), "--page", language],
            input=json.dumps(config), text=True, encoding="utf-8", check=True, cwd=ROOT,
            env={**os.environ, "LITE_LANGUAGE": language, "PYTHONIOENCODING": "utf-8"},
        )  # fmt: skip
    return folder / TEXTS["en"].file


def write_page(folder: Path, language: str, config: dict[str, Any]) -> None:
    """The page in this process's language; titles of `config` are stems of the models' files."""
    from lite_engine import __version__
    from lite_workbench.report.live import live_section
    from lite_workbench.report.page import page

    texts = TEXTS[language]
    section = live_section(texts.intro)
    links = (
        f'<a href="{t.file}" lang="{code}" hreflang="{code}">{html.escape(t.name)}</a>'
        for code, t in TEXTS.items()
        if code != language
    )
    section.bar = f'<p class="intro">{" ".join(links)}</p>{section.bar}'
    models = [{**model, "title": texts.models[model["title"]]} for model in config["models"]]
    version = f"Lite Workbench {__version__}"
    made = page(texts.title, version, [section], {**config, "models": models})
    (folder / texts.file).write_text(made, "utf-8")


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
    parser.add_argument("--page", choices=TEXTS, help="this page alone, its config on stdin")
    args = parser.parse_args()
    if args.page:
        write_page(args.folder, args.page, json.load(sys.stdin))
    else:
        write_try(args.folder)


if __name__ == "__main__":
    sys.exit(main())
