"""Mutants of every kernel, for a given time, under AddressSanitizer: each is refused or runs.

    scripts/native.sh asan && python -m tests.native.opencl.campaign SECONDS [SEED]

Of one case of each kernel 100 mutants, then of the next case. Prints how many ended in which way;
stops at the first fault with what the sanitizer says.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from lite_engine.backends.opencl.cases import cases

from tests.native.opencl.test_mutation import run, written

EACH = 100


def main(seconds: float, seed: int = 1) -> None:
    runner = Path(__file__).parents[3] / "build" / "asan" / "plan_run"
    ends: Counter[str] = Counter()
    end = time.monotonic() + seconds
    with tempfile.TemporaryDirectory() as folder:
        while True:
            for kernel, graphs in cases().items():
                graph = graphs[seed % len(graphs)]
                _, changed = written(graph, Path(folder), seed, EACH)
                ends.update(run(runner, Path(folder), changed))
                print(f"{kernel} {seed}: {sum(ends.values())} {dict(ends)}", flush=True)
                if time.monotonic() > end:
                    return
            seed += 1


if __name__ == "__main__":
    main(float(sys.argv[1]), *map(int, sys.argv[2:]))
