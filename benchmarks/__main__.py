"""`make bench`: the zoo on our engine and its five peers, interleaved, as ratios.

    python -m benchmarks [--set ten|wide] [--nets resnet50,…] [--engines lite,onnxruntime,…]
                         [--threads 1,2] [--precision fp32|bf16|fp16|int8] [--batch 1]
                         [--seconds 1.2] [--cpu-time] [--cold] [--layers] [--losses]
                         [--json FILE] [--files DIR]

Ratio: our least time / the least of the best peer; smaller is better. A peer is a peer when its
float output is ours. `--cold` measures process start to first result and peak memory instead,
`--layers` each of our layers against the roofs of this machine, `--losses` adds the layers that
lose most against the best peer that has a profile. `--set wide` takes networks that nobody tuned
for (`benchmarks.wide`); one of them, or any of torchvision, timm and transformers, is wide/NAME,
as in wide/resnet34, wide/timm.ghostnet_100 and wide/transformers.roberta. `--nets FILE.onnx` takes
any model, with the inputs of FILE.npz if that exists. Peers live in environments of their own
(`python -m benchmarks.environments`, LITE_BENCH_PEERS).
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

from lite_engine import settings
from lite_engine.profile.environment import environment

from benchmarks import table, wide
from benchmarks.cold import cold_starts
from benchmarks.environments import versions
from benchmarks.losses import find_losses, print_losses
from benchmarks.models import WIDE, Files
from benchmarks.peers import ENGINES
from benchmarks.roofs import layers, print_layers
from benchmarks.schedule import choose, measure

#: The ten networks of the bars.
TEN = (
    "mobilenet_v1", "mobilenet_v2", "mobilenet_v3_small", "shufflenet_v2", "squeezenet", "resnet18",
    "resnet50", "yolov3_tiny", "unet", "ocr_recogniser",
)  # fmt: skip
SETS = {"ten": TEN, "wide": tuple(WIDE + name for name in wide.NAMES)}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--set", default="ten", choices=SETS)
    parser.add_argument(
        "--nets", help="networks of the zoo, wide/NAME, FILE.onnx; default: all of the set"
    )
    parser.add_argument("--engines", default=",".join(ENGINES))
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--precision", default="fp32", choices=("fp32", "bf16", "fp16", "int8"))
    parser.add_argument("--batch", type=int, default=1, help="samples that a run takes at once")
    parser.add_argument("--seconds", type=float, default=1.2, help="per engine, network, threads")
    parser.add_argument("--cpu-time", action="store_true", help="table of CPU time, not wall time")
    parser.add_argument("--cold", action="store_true", help="cold starts, no steady state")
    parser.add_argument("--layers", action="store_true", help="our layers against their roofs")
    parser.add_argument("--losses", action="store_true", help="layers that lose against a peer")
    parser.add_argument("--json", type=Path, help="file for every figure")
    parser.add_argument("--files", type=Path, help="folder of converted models, kept")
    args = parser.parse_args()
    try:
        engines = choose(args.engines)
    except ValueError as error:
        parser.error(str(error))
    files = Files((args.files or _cache()).absolute(), args.batch)
    start = time.monotonic()
    result: dict[str, Any] = {
        "environment": {**environment(), "load_average": os.getloadavg(), **versions(engines)},
        "precision": args.precision, "batch": args.batch, "unit": "ms unless the key says so",
        "nets": {},
    }  # fmt: skip
    key = "process_s" if args.cold else "min_cpu_ms" if args.cpu_time else "min_ms"
    threads = [int(t) for t in args.threads.split(",")]
    if not args.layers:
        table.print_head(engines, cold=args.cold)
    for network in args.nets.split(",") if args.nets else SETS[args.set]:
        for count in threads:
            try:
                source, feeds = files.network(network)
            except RuntimeError as error:
                parser.error(str(error))
            if args.layers:
                found = layers(files.model("lite", source, feeds, args.precision), feeds, count)
                print_layers(network, found)
            elif args.cold:
                found = cold_starts(files, network, engines, count, args.precision)
                table.print_row(network, count, engines, found, key)
            else:
                found = measure(files, network, engines, count, args.precision, args.seconds)
                table.print_row(network, count, engines, found, key)
                if args.losses:
                    lost = find_losses(files, network, found, count, args.precision)
                    print_losses(lost)
                    result.setdefault("losses", {})[f"{network}/{count}"] = lost
            result["nets"][f"{network}/{count}"] = found
    result["seconds"] = time.monotonic() - start
    if not args.layers:
        result["ratios"] = table.ratios(result["nets"], key)
        table.print_foot(result["nets"], result["ratios"])
    print(f"{result['seconds']:.0f} s, {result['environment']['cpu']}")
    if args.json:
        args.json.write_text(json.dumps(result, indent=1))


def _cache() -> Path:
    return Path(settings.cache_dir()) / "benchmarks"


if __name__ == "__main__":
    main()
