"""Mutants of every kernel, for a given time, under AddressSanitizer: each is refused or runs.

    scripts/native.sh asan && python -m tests.native.opencl.campaign SECONDS [SEED [oclgrind]]

Of one case of each kernel 100 mutants, then of the next case; with `oclgrind` 8 of each, for the
generic GPU that Oclgrind is, which sees the accesses of work-items. Prints how many ended in which
way; stops at the first fault with what the sanitizer or Oclgrind says.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from lite_engine.backends.opencl.cases import cases

from tests.native.opencl.test_mutation import ON_OCLGRIND, run, written
from tests.tools import simulator

EACH, SIMULATED = 100, 8


def main(seconds: float, seed: int = 1, driver: str = "") -> None:
    runner = Path(__file__).parents[3] / "build" / "asan" / "plan_run"
    ends: Counter[str] = Counter()
    end = time.monotonic() + seconds
    simulated = driver == "oclgrind"
    target, count = (ON_OCLGRIND, SIMULATED) if simulated else (None, EACH)
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report"
        variables = {"OCLGRIND_LOG": str(report)} if simulated else {}
        if simulated:
            variables["OCL_ICD_VENDORS"] = simulator() or sys.exit("no Oclgrind here")
        while True:
            for kernel, graphs in cases().items():
                graph = graphs[seed % len(graphs)]
                _, changed = written(graph, Path(folder), seed, count, target)
                ends.update(run(runner, Path(folder), changed, **variables))
                if report.exists() and (found := report.read_text()):
                    sys.exit(found)
                print(f"{kernel} {seed}: {sum(ends.values())} {dict(ends)}", flush=True)
                if time.monotonic() > end:
                    return
            seed += 1


if __name__ == "__main__":
    main(float(sys.argv[1]), int(next(iter(sys.argv[2:]), "1")), *sys.argv[3:])
