"""Pictures with text of all sizes, to calibrate a text detector on.

    python -m tests.quantize.text_pictures PHOTOS OUT

Words from small print to headlines, one under the other, on photographs and on plain grounds; some
on a box, some outlined. The same folder gives the same pictures.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIDE = 640
SIZES = 14, 170  # pixels of the letters, evenly on a logarithmic scale
WORDS = (
    "Lite Workbench deployment calibration 1234567 OPEN SALE exit text regions 2026 engine quality "
    "bar PRICE 49.90 hello WORLD"
).split()


def draw(photos: Path, out: Path, seed: int = 0) -> Path:
    """One picture for each photograph; returns the folder."""
    rng = np.random.default_rng(seed)
    out.mkdir(parents=True, exist_ok=True)
    for index, photo in enumerate(sorted(photos.iterdir())):
        picture = Image.open(photo).convert("RGB").resize((SIDE, SIDE))
        if index % 3 == 2:
            picture = Image.new("RGB", (SIDE, SIDE), _colour(rng))
        _fill(ImageDraw.Draw(picture), rng)
        picture.save(out / f"{index:02d}.png")
    return out


def _fill(on: ImageDraw.ImageDraw, rng: np.random.Generator) -> None:
    y = int(rng.integers(0, 40))
    while y < SIDE - 40:
        size = int(np.exp(rng.uniform(*np.log(SIZES))))
        if rng.random() < 0.5:
            _line(on, rng, y, size)
        y += size + int(rng.integers(4, 60))


def _line(on: ImageDraw.ImageDraw, rng: np.random.Generator, y: int, size: int) -> None:
    font = ImageFont.load_default(size)
    text = " ".join(rng.choice(WORDS, int(rng.integers(1, 4))))
    fill = _colour(rng)
    at = int(rng.integers(0, SIDE // 2)), y
    if rng.random() < 0.3:
        on.rectangle(on.textbbox(at, text, font=font), fill=_colour(rng))
    outline = size // 20 if rng.random() < 0.3 else 0
    on.text(at, text, fill, font, stroke_width=outline, stroke_fill=_colour(rng))


def _colour(rng: np.random.Generator) -> tuple[int, int, int]:
    red, green, blue = rng.integers(0, 256, 3).tolist()
    return red, green, blue


if __name__ == "__main__":
    draw(Path(sys.argv[1]), Path(sys.argv[2]))
