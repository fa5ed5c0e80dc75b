"""Prints the executed instructions of a model under emulation, and of peers beside it.

    python -m benchmarks.emulated m.lite
    benchmarks/emulated/arm_python.sh FOLDER
    python -m benchmarks.emulated m.lite --root FOLDER/root --feeds m.npz \\
        --peer onnxruntime=m.onnx --peer ncnn=m.ncnn --peer litert=m.tflite
"""

import argparse
from pathlib import Path

from . import count, count_peer

parser = argparse.ArgumentParser(
    prog="python -m benchmarks.emulated", description=__doc__,
    formatter_class=argparse.RawDescriptionHelpFormatter,
)  # fmt: skip
parser.add_argument("model", type=Path)
parser.add_argument("runner", type=Path, nargs="?")
parser.add_argument("--cpu", default="neoverse-n1")
parser.add_argument("--peer", action="append", default=[], metavar="ENGINE=MODEL")
parser.add_argument("--root", type=Path, help="the folder root of arm_python.sh")
parser.add_argument("--feeds", type=Path, help="inputs of the peers, an .npz by name")
args = parser.parse_args()
if args.peer and not (args.root and args.feeds):
    parser.error("--peer needs --root and --feeds")
first = count(args.model, runner=args.runner, cpu=args.cpu)
second = count(args.model, runner=args.runner, cpu=args.cpu, runs=2)
ours = second - first
print(f"start to first result: {first / 1e6:.1f} M instructions")
print(f"each further inference: {ours / 1e6:.1f} M")
for pair in args.peer:
    engine, _, model = pair.partition("=")
    theirs = count_peer(engine, Path(model), args.feeds, args.root, args.cpu)
    print(f"{engine}: {theirs / 1e6:.1f} M, ours / theirs {ours / theirs:.2f}", flush=True)
