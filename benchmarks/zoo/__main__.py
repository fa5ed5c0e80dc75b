"""python -m benchmarks.zoo NAME -o FILE.onnx"""

import argparse

import onnx

from . import NAMES, build, macs

parser = argparse.ArgumentParser(prog="python -m benchmarks.zoo", description=__doc__)
parser.add_argument("name", choices=NAMES)
parser.add_argument("-o", "--output", required=True, help="ONNX file to write")
args = parser.parse_args()
model = build(args.name)
onnx.save(model, args.output)
print(f"{args.output}: {args.name}, {macs(model) / 1e6:.0f} MMAC, {len(model.graph.node)} nodes")
