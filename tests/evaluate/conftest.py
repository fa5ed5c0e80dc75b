"""Labeled data that the tests make themselves."""

from __future__ import annotations

from pathlib import Path

import lite_workbench as lw
import numpy as np
import pytest
from PIL import Image


@pytest.fixture(scope="session")
def digits() -> tuple[np.ndarray, np.ndarray]:
    """1,200 images of digits (32,32) uint8 and their classes: the held-out ones, shifted, dimmed
    and with noise, so that the model makes mistakes."""
    data = np.load(lw.shipped("digits_held_back.npz"))
    rng = np.random.default_rng(5)
    chosen = rng.integers(0, len(data["images"]), 1200)
    images = data["images"][chosen].astype(np.float32)
    for i, (dx, dy) in enumerate(rng.integers(-2, 3, (len(images), 2))):
        images[i] = np.roll(images[i], (dx, dy), (0, 1))
    images = images * rng.uniform(0.6, 1, (len(images), 1, 1)) + rng.normal(0, 20, images.shape)
    return np.clip(images, 0, 255).astype(np.uint8), data["labels"][chosen].astype(np.int64)


@pytest.fixture(scope="session")
def digit_folders(digits, tmp_path_factory) -> Path:
    """The first 100 of them as a folder per class, and a list of files and labels beside."""
    folder = tmp_path_factory.mktemp("digits")
    listed = []
    for i, (image, label) in enumerate(zip(digits[0][:100], digits[1][:100], strict=True)):
        path = folder / "classes" / str(label) / f"{i:03}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
        listed.append(f"classes/{label}/{i:03}.png {label}")
    (folder / "list.txt").write_text("\n".join(listed) + "\n")
    np.savez(folder / "data.npz", images=digits[0][:100], labels=digits[1][:100])
    return folder
