"""The page's own preprocessing gives the bits of lite_engine's, which uses Pillow."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from lite_engine.preprocess import Preprocess

ROOT = Path(__file__).parents[2]
SCRIPT = """
import { readFileSync, writeFileSync } from "node:fs";
import { imageInput } from "SOURCE";
const jobs = JSON.parse(readFileSync("jobs.json"));
jobs.forEach(({ width, height, how }, i) => {
  const data = new Uint8Array(readFileSync(`${i}.rgba`));
  writeFileSync(`${i}.f32`, new Uint8Array(imageInput({ width, height, data }, how).buffer));
});
"""
#: (height, width) of the image, what is done with it, and by how many levels of a byte it may
#: differ: Pillow 13 resizes an image that is much taller than wide along its columns first, and
#: rounds between.
CASES = [
    ((37, 53), "unit", (1, 3, 37, 53), 0),
    ((37, 53), "imagenet", (1, 3, 16, 16), 0),
    ((37, 53), "imagenet,crop", (1, 3, 24, 24), 0),
    ((53, 37), "pm1,bgr,letterbox", (1, 20, 33, 3), 0),
    ((8, 9), "raw,grey", (1, 1, 28, 31), 0),
    ((24, 94), "mean=127,std=128,bgr", (1, 3, 24, 94), 0),
    ((100, 3), "unit,letterbox=7", (1, 3, 32, 32), 1),
]


@pytest.mark.skipif(shutil.which("node") is None, reason="no Node.js; sudo apt-get install nodejs")
def test_bits_of_pillow(tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    jobs, wanted = [], []
    for i, ((height, width), text, shape, _) in enumerate(CASES):
        rgb = rng.integers(0, 256, (height, width, 3), dtype=np.uint8)
        rgba = np.concatenate([rgb, np.full((height, width, 1), 255, np.uint8)], -1)
        (tmp_path / f"{i}.rgba").write_bytes(rgba.tobytes())
        how = Preprocess.parse(text).fitted(shape)
        jobs.append({"width": width, "height": height, "how": {**how.to_dict(), "pad": how.pad}})
        wanted.append(how.apply(rgb))
    (tmp_path / "jobs.json").write_text(json.dumps(jobs))
    source = (ROOT / "engine/lite_engine/export/web/image.js").as_uri()
    (tmp_path / "run.mjs").write_text(SCRIPT.replace("SOURCE", source))
    subprocess.run(["node", "run.mjs"], cwd=tmp_path, check=True, timeout=60)
    for i, (case, array) in enumerate(zip(CASES, wanted)):
        made = np.fromfile(tmp_path / f"{i}.f32", np.float32).reshape(array.shape)
        np.testing.assert_allclose(
            made, array, rtol=0, atol=case[3] * 1.001 / 255, err_msg=str(case)
        )
