"""Runs every lesson and writes it with its outputs as a page of the documentation.

gallery.py [FOLDER]     default docs/reference/gallery; nothing there is edited by hand

What a page shows is what a saved notebook shows where no kernel runs: static images and tables.
"""

from __future__ import annotations

import argparse
import base64
import re
import shutil
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter

ROOT = Path(__file__).parent.parent
#: A lesson takes less than a minute on a quiet machine.
TIMEOUT_S = 600
#: What nbconvert's page would fetch from elsewhere; lessons have no formulas and no diagrams.
NO_REQUESTS = dict.fromkeys(("require_js_url", "jquery_url", "mathjax_url", "mermaid_js_url"), "")

PLOTLY = "application/vnd.plotly.v1+json"
#: Plotly draws with a script of several MB, which a page does not carry for a figure.
INTERACTIVE = "<p><em>An interactive Plotly figure: run the lesson to see it.</em></p>"
#: nbconvert tells a link in a sentence from its words by a colour alone.
PROSE = ".jp-RenderedHTMLCommon.jp-RenderedMarkdown p"
ICON = '<link rel="icon" href="data:,">'  # a browser would ask the server for one
LINKS = f"<style>{PROSE} a:any-link{{text-decoration:underline}}</style>"


def page_of(lesson: Path) -> str:
    """A lesson, executed in a folder of its own, as HTML that needs no other file."""
    book = nbformat.read(lesson, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        where = {"metadata": {"path": folder}}
        NotebookClient(book, timeout=TIMEOUT_S, kernel_name="python3", resources=where).execute()
    book.metadata.pop("widgets", None)
    for cell in book.cells:
        for output in cell.get("outputs", []):
            if PLOTLY in output.get("data", {}):
                output["data"] = {"text/html": INTERACTIVE}
    pages = HTMLExporter(exclude_input_prompt=True, exclude_output_prompt=True, **NO_REQUESTS)
    html, _ = pages.from_notebook_node(book)
    html = html.replace("</head>", f"{ICON}{LINKS}</head>", 1)
    html = html.replace(f"{ROOT}/", "")  # where the models lie on the machine that built the pages
    return re.sub(r'src="(models/[\w.]+)"', lambda m: f'src="{_inline(lesson, m[1])}"', html)


def _inline(lesson: Path, name: str) -> str:
    data = base64.b64encode((lesson.parent / name).read_bytes()).decode()
    return f"data:image/png;base64,{data}"


def main(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    for lesson in sorted((ROOT / "notebooks").glob("*.ipynb")):
        (folder / f"{lesson.stem}.html").write_text(page_of(lesson), "utf-8")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folder", nargs="?", type=Path, default=ROOT / "docs" / "reference" / "gallery"
    )
    main(parser.parse_args().folder)
