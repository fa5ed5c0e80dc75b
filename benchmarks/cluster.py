"""`python -m benchmarks.cluster`: what worker processes gain, and ImageNet's evaluation in small.

    python -m benchmarks.cluster [--network mobilenet_v1] [--images 400] [--repeat 5]
                                 [--part 500] [--json FILE]

Images of noise (JPEG, 256×256) are evaluated by one worker process with one thread, by two, and in
this process with one and with two threads, in turns; what starts a cluster is not counted. The
least of the repeats counts: another program may be running. Two workers should take at most 0.6 of
one worker's time, and no longer than one process with two threads.

The shape of an evaluation of ImageNet's 50,000 images, 8 versions and 4 devices is then measured at
1/PART: so many images through 8 sides, 4 times over, on one thread. From it follow the times of an
inference and of reading an image, and what the whole takes on one core.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from lite_engine import Model, Predictor, optimize
from lite_engine.importers import load
from lite_engine.profile.environment import environment
from lite_workbench.cluster import Cluster
from lite_workbench.evaluate import Dataset, Sample, Side, evaluate
from PIL import Image

from benchmarks import zoo

#: Two workers against one, and against one process with two threads.
LIMITS = {"two_workers_to_one": 0.6, "two_workers_to_two_threads": 1.0}
IMAGENET, VERSIONS, DEVICES = 50_000, 8, 4


def main(words: list[str] | None = None) -> dict[str, Any]:
    """The figures, as printed and written."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--network", default="mobilenet_v1", help="a network of the zoo")
    parser.add_argument("--images", type=int, default=400)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument(
        "--part", type=int, default=500, help="of ImageNet's images, one of so many"
    )
    parser.add_argument("--json", type=Path, help="file for every figure")
    args = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="lite-cluster-") as name:
        folder = Path(name)
        path = folder / "network.onnx"
        path.write_bytes(zoo.build(args.network).SerializeToString())
        model = optimize(load(path), targets=["x86"])
        model.metadata["preprocess"] = {"mean": [127.5], "std": [127.5]}
        made: dict[str, Any] = {
            "environment": {**environment(), "load_average": os.getloadavg()},
            "network": args.network, "images": args.images, "unit": "seconds, least of the repeats",
            **workers(model, images(folder, args.images), args.repeat),
            "imagenet": imagenet(model, images(folder, IMAGENET // args.part), args.part),
        }  # fmt: skip
    for key, limit in LIMITS.items():
        print(f"{key}: {made[key]:.2f} (limit {limit})")
    print("imagenet:", ", ".join(f"{k} {v:.4g}" for k, v in made["imagenet"].items()))
    if args.json:
        args.json.write_text(json.dumps(made, indent=1) + "\n")
    return made


def images(folder: Path, count: int) -> Dataset:
    """Images of noise; their labels mean nothing."""
    rng, samples = np.random.default_rng(0), []
    for number in range(count):
        path = folder / f"{number:05}.jpg"
        if not path.exists():
            pixels = rng.integers(0, 256, (256, 256, 3), dtype=np.uint8)
            Image.fromarray(pixels).save(path, quality=90)
        samples.append(Sample(path.name, path, number % 1000))
    return Dataset("noise", "classification", samples)


def side(model: Model, threads: int, precision: str | None = None) -> Side:
    """The model on this CPU."""
    made = Predictor(model, threads=threads, precision=precision)
    return Side(f"{precision} {threads}", made)


def workers(model: Model, data: Dataset, repeat: int) -> dict[str, Any]:
    """Seconds of each way, and the ratios of LIMITS."""
    with Cluster(workers=1).open() as one, Cluster(workers=2).open() as two:
        ways: dict[str, Callable[[], Any]] = {
            "one_worker": lambda: evaluate([side(model, 1)], data, cluster=Cluster(client=one)),
            "two_workers": lambda: evaluate([side(model, 1)], data, cluster=Cluster(client=two)),
            "one_thread": lambda: evaluate([side(model, 1)], data),
            "two_threads": lambda: evaluate([side(model, 2)], data),
        }
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for number in range(repeat + 1):  # the first time plans, packs and sends the model
            for name, run in ways.items():
                began = time.perf_counter()
                run()
                if number:
                    seconds[name].append(time.perf_counter() - began)
    least = {name: min(times) for name, times in seconds.items()}
    return {
        "seconds": seconds,
        "two_workers_to_one": least["two_workers"] / least["one_worker"],
        "two_workers_to_two_threads": least["two_workers"] / least["two_threads"],
    }


def imagenet(model: Model, data: Dataset, part: int) -> dict[str, float]:
    """What was measured, and `whole_hours` on one core."""
    sides = [side(model, 1, p) for p in ("fp32", "bf16") for _ in range(VERSIONS // 2)]
    for number, one in enumerate(sides):
        one.name = str(number)
    evaluate(sides, data.first(1))
    began = time.perf_counter()
    evaluate(sides[:1], data)
    single = time.perf_counter() - began
    began = time.perf_counter()
    for _ in range(DEVICES):
        evaluate(sides, data)
    seconds = time.perf_counter() - began
    inferences = len(data) * VERSIONS * DEVICES
    return {
        "images": len(data), "inferences": inferences, "seconds": seconds,
        "one_version_seconds": single, "ms_per_inference": 1e3 * seconds / inferences,
        "whole_hours": seconds * part / 3600,
    }  # fmt: skip


if __name__ == "__main__":
    main()
