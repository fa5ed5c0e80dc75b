"""python -m lite_engine.testing OPERATOR …: an operator's kernels on every backend of this machine.

Prints a row for each kernel and backend, and every case that disagrees. Ends with 1 when any does.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from lite_messages import tr

from ..ops import all_ops, find_op
from . import cases, places, run


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m lite_engine.testing", description=__doc__)
    parser.add_argument("operators", nargs="*", metavar="OPERATOR", help="default: all")
    parser.add_argument("--place", default="", help=tr("only backends whose name contains this"))
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--list", action="store_true", help=tr("list the cases, run nothing"))
    options = parser.parse_args(argv)
    unknown = [name for name in options.operators if find_op(name) is None]
    if unknown:
        parser.error(f"operator {unknown[0]} is not known")
    chosen = options.operators or [op.name for op in all_ops() if op.kernels]
    where = [] if options.list else [p for p in places() if options.place in p.name]
    kernels = [k for name in chosen for k in find_op(name).kernels]  # type: ignore[union-attr]
    wrong = 0
    for kernel in kernels:
        made = list(cases(kernel))
        if options.list:
            print(*(f"{kernel}  {case}" for case in made), sep="\n")
        if not made:
            print(f"{kernel}  no case: give the operator `samples`")
            wrong += 1
        for place in where:
            if place.backend != kernel.backend:
                continue
            results = run(made, place, threads=options.threads)
            errors = Counter(r.error for r in results if r.error)
            agreed = len(results) - errors.total()
            if results:
                print(f"{kernel!s:44} {place.name:14} {agreed} of {len(results)} agree")
            for r in results:
                if r.error:
                    print(f"    {r.case}: {r.error}")
            wrong += errors.total()
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
