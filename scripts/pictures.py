"""Draws the pictures of README and docs from the real product in a headless Chromium.

pictures.py [FOLDER]     default docs/images; nothing there is edited by hand

JupyterLab runs the five-minute story on the OCR model with its planted fault. Written are the
Profile, Compare and Quantize steps (PNG, 256 colours) and the story as a short animation (WebP).
"""

from __future__ import annotations

import argparse
import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from PIL import Image  # noqa: E402

from tests.chromium import open_chromium  # noqa: E402
from tests.ui.lab_page import LabPage  # noqa: E402
from tests.ui.lab_server import Server  # noqa: E402

MODELS = ROOT / "notebooks" / "models"
SIZE = (1240, 2200)  # the highest step is whole in it
COLOURS = 256
WIDTH, SECONDS = 860, 2.4
STORY = """import lite_workbench as lw
session = lw.open("ocr.onnx")
session.threads = 1  # other programs may run: threads would wait for each other
session.convert(targets=["x86", "arm", "opencl"])
session.quantize("ocr_held_back.npz", limit=24)
session.explore()
session.use("float")
session.run("ocr_total.png", backend="x86")
session.profile("x86", runs=100)
session.plant_fault("b3/dw", "drop_last_column")
session.run(backend="opencl")
workbench = lw.Workbench(session)
workbench"""


#: Nothing runs, no tip is over a chart, and no result is that of before.
STILL = """() => !document.querySelector(
  '.lite-stepper .running, .lite > .tip.on, .lite-stale')
  && document.getAnimations().every((a) => a.playState !== 'running')"""
FRAMES = "() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"


class Album:
    """The Workbench in one page, pictured."""

    def __init__(self, page: LabPage, folder: Path) -> None:
        self.lab, self.page, self.folder = page, page.page, folder
        self.frames: list[Image.Image] = []

    def picture(self) -> Image.Image:
        self.page.mouse.move(2, 2)
        self.page.wait_for_function(STILL)
        self.page.evaluate(FRAMES)
        shot = self.page.locator(".lite-workbench").screenshot()
        return Image.open(io.BytesIO(shot)).convert("RGB")

    def keep(self, name: str) -> None:
        # One round of k-means brings flat areas back to their own colours.
        flat = self.picture().quantize(
            COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE
        )
        flat.save(self.folder / f"{name}.png", optimize=True)

    def frame(self) -> None:
        picture = self.picture()
        height = round(picture.height * WIDTH / picture.width)
        self.frames.append(picture.resize((WIDTH, height), Image.Resampling.LANCZOS))

    def animation(self, name: str) -> None:
        height = max(f.height for f in self.frames)
        frames = []
        for frame in self.frames:
            sheet = Image.new("RGB", (WIDTH, height), "white")
            sheet.paste(frame, (0, 0))
            frames.append(sheet)
        frames[0].save(
            self.folder / f"{name}.webp", save_all=True, append_images=frames[1:],
            duration=int(SECONDS * 1000), loop=0, quality=55, method=6,
        )  # fmt: skip


def tell(album: Album) -> None:
    """The story, step by step; waits are for states, never for times."""
    page, find = album.page, album.page.locator
    find(".lite-workbench").wait_for()
    album.lab.step("Quantize")
    find(".lite-sensitivity .frame").wait_for()
    album.keep("quantize")
    album.lab.step("Profile")
    find(".lite-latency [data-k='b5/dw'] .hit").click(force=True)
    find(".lite-inspector", has_text="b5/dw").wait_for()
    album.keep("profile")
    album.lab.step("Run")
    find(".lite-notice", has_text="outputs differ").locator("visible=true").first.wait_for()
    album.frame()
    page.click("[data-action=compare] >> text=Compare x86 and OpenCL")
    find(".verdict .what", has_text="goes wrong at b3/dw").wait_for()
    find(".lite-difference h3", has_text="b3/dw").wait_for()
    find("[data-part=map]", has_text="column 159 (the last)").wait_for()
    album.keep("compare")
    album.frame()
    victim = find(".lite-errors [data-k='b4/project'] .hit").locator("visible=true").first
    victim.click(force=True, position={"x": 2, "y": 4})  # above the line of tolerance
    find(".lite-difference", has_text="b4/project").wait_for()
    album.frame()
    page.click("[data-action=run_on_a]")
    find(".verdict .what", has_text="agree on all").wait_for(timeout=120_000)
    find(".lite-notice", has_text="runs on x86").locator("visible=true").wait_for()
    album.frame()
    album.lab.step("Deploy")
    find(".lite-notice", has_text="b3/dw runs on x86").locator("visible=true").wait_for()
    album.frame()
    album.animation("story")


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    with open_chromium() as browser, tempfile.TemporaryDirectory() as home:
        server = Server(Path(home), "/")
        try:
            server.wait()
            for name in ("ocr.onnx", "ocr_total.png", "ocr_held_back.npz"):
                shutil.copy(MODELS / name, server.root)
            page: Any = LabPage(browser, server, dark=False, size=SIZE)
            page.open([STORY])
            if not page.run_all():
                raise SystemExit("error: the cell failed; run it in `make lab`")
            page.page.set_default_timeout(120_000)
            tell(Album(page, folder))
            if page.errors or page.outside:
                raise SystemExit(f"error: the page said {page.errors + page.outside}")
        finally:
            server.close()
    total = 0
    for path in sorted(folder.iterdir()):
        total += path.stat().st_size
        print(f"{path.name:<16} {path.stat().st_size / 1e3:8.0f} kB")
    print(f"{'total':<16} {total / 1e3:8.0f} kB")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "docs" / "images")
    main(parser.parse_args().folder)
