"""Prints the executed instructions of a model under emulation."""

import argparse
from pathlib import Path

from . import count

parser = argparse.ArgumentParser(prog="python -m benchmarks.emulated", description=__doc__)
parser.add_argument("model", type=Path)
parser.add_argument("runner", type=Path, nargs="?")
parser.add_argument("--cpu", default="max")
args = parser.parse_args()
first = count(args.model, runner=args.runner, cpu=args.cpu)
second = count(args.model, runner=args.runner, cpu=args.cpu, runs=2)
print(f"start to first result: {first / 1e6:.1f} M instructions")
print(f"each further inference: {(second - first) / 1e6:.1f} M")
