"""Runs inside the emulated Python: one peer, one model, an inference with one thread in float32,
between two calls of getppid.

python peer.py onnxruntime|ncnn|mnn|litert MODEL FEEDS.npz

The models are those that `benchmarks.models` makes for the peers of this machine.
"""

import os
import sys
from pathlib import Path

import numpy as np

from benchmarks.peers import peer

if __name__ == "__main__":
    engine, path, inputs = sys.argv[1:]
    with np.load(inputs) as file:
        inference = peer(engine).open(
            Path(path), {name: file[name] for name in file.files}, 1, "fp32"
        )
    os.getppid()
    result = inference()
    os.getppid()
    print("outputs", *np.ravel(result[0])[:3])
